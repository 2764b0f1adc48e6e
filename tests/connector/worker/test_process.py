"""The process of a worker: how it ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest
from configurations import PROPERTIES

from rowtide.connector.config import from_properties
from rowtide.connector.worker.faust_app import create_app
from rowtide.connector.worker.process import Worker


class Exited(Exception):
    """The process has ended, with this code."""


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[Worker]:
    """A worker whose process can end in a test."""

    def end(code: int) -> None:
        raise Exited(code)

    monkeypatch.setattr(os, "_exit", end)
    loop = asyncio.new_event_loop()
    yield Worker(create_app(from_properties(PROPERTIES)), loop=loop)
    loop.close()


@pytest.mark.parametrize("hangs", ["the connector", "something else"])
def test_what_hangs_decides_about_the_exit_code(worker: Worker, capsys: pytest.CaptureFixture[str], hangs: str) -> None:
    (service,) = worker.app.connectors.services.values()
    if hangs == "something else":
        service.connector._ended = "STOPPED"
    with pytest.raises(Exited, match="1" if hangs == "the connector" else "0"):
        worker._give_up()
    assert ("did not stop within" in capsys.readouterr().err) == (hangs == "the connector")
