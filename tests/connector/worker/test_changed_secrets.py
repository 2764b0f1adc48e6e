"""Connectors start again when secrets change in their files, and only then."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest
from mode import Service

from rowtide.connector.config import from_properties
from rowtide.connector.worker import changed_secrets, connectors
from rowtide.connector.worker.changed_secrets import values_in_files, watch
from rowtide.connector.worker.connectors import Connectors
from tests.connector.worker.test_standby import until
from tests.support.configurations import PROPERTIES
from tests.support.processes.made_tasks import Connector

KAFKA = "producer.override.sasl.jaas.config"


@pytest.fixture(autouse=True)
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changed_secrets, "_LOOK_S", 0.01)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = tmp_path / "secrets.properties"
    found.write_text("kafka=one\ndatabase=x\n")
    return found


def properties(file: Path) -> dict[str, str]:
    return {
        **PROPERTIES,
        KAFKA: f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" '
        f'password="${{file:{file}:kafka}}";',
        "producer.override.security.protocol": "SASL_SSL",
        "producer.override.sasl.mechanism": "PLAIN",
        "database.password": f"${{file:{file}:database}}",
    }


def test_values_that_are_read_at_a_start(file: Path) -> None:
    found = values_in_files(properties(file))
    assert found is not None
    assert found.keys() == {KAFKA}, "the database's password is read at each log-in"
    assert 'password="one"' in found[KAFKA]
    assert from_properties(properties(file)).file_values == found
    file.unlink()
    assert values_in_files(properties(file)) is None
    assert values_in_files(PROPERTIES) == from_properties(PROPERTIES).file_values == {}


class Watched:
    """Connectors that are watched: those that were restarted, in their order."""

    def __init__(self, written: dict[str, str]) -> None:
        self.restarted: list[str] = []
        self.running: dict[str, tuple[object, dict[str, str], dict[str, str] | None]] = {}
        self.looks = 0
        self.start(written)

    def start(self, written: dict[str, str]) -> None:
        """Start the connector, or start it again."""
        self.running["shop"] = (object(), written, values_in_files(written))

    def look(self) -> dict[str, tuple[object, dict[str, str], dict[str, str] | None]]:
        self.looks += 1
        return self.running

    async def restart(self, name: str) -> None:
        self.restarted.append(name)

    async def several_looks(self) -> None:
        """Wait until it was looked three more times."""
        end = self.looks + 3
        await until(lambda: self.looks >= end)

    def watch(self, act: Callable[[], object]) -> None:
        """Watch while ``act`` awaits."""

        async def run() -> None:
            task = asyncio.ensure_future(watch(Service(), self.look, self.restart))
            await self.several_looks()
            await act()  # type: ignore[misc]
            task.cancel()

        asyncio.run(run())


def test_a_change_restarts_a_connector_once(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    salted = {"column.mask.hash.SHA-256.with.salt.pepper": f"${{file:{file}:kafka}}"}
    watched = Watched(properties(file) | salted)
    caplog.set_level(logging.INFO, changed_secrets.log.name)

    async def act() -> None:
        assert not watched.restarted
        file.write_text("kafka=two\ndatabase=x\n")
        await until(lambda: watched.restarted)
        await watched.several_looks()

    watched.watch(act)
    assert watched.restarted == ["shop"]
    (message,) = caplog.messages
    changed = f"column.mask.hash.SHA-256.with.salt.********, {KAFKA}"
    assert message == f"connector shop starts again: the files of {changed} have changed"


def test_a_change_before_the_first_look_restarts_a_connector(file: Path) -> None:
    """Such as that of an agent which writes the file when a pod starts."""
    watched = Watched(properties(file))
    file.write_text("kafka=two\ndatabase=x\n")

    async def act() -> None:
        await until(lambda: watched.restarted)

    watched.watch(act)


def test_other_changes_restart_none(file: Path) -> None:
    """The password of the database, a file that is gone for a moment, and a restart for another reason."""
    watched = Watched(properties(file))

    async def act() -> None:
        file.write_text("kafka=one\ndatabase=y\nmore=z\n")
        await watched.several_looks()
        text = file.read_text()
        file.unlink()
        await watched.several_looks()
        file.write_text(text)
        await watched.several_looks()
        file.write_text("kafka=two\n")
        watched.start(properties(file))
        await watched.several_looks()

    watched.watch(act)
    assert not watched.restarted


def test_the_connector_of_a_worker_has_the_new_secret(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connectors, "ConnectorService", Connector)

    async def run() -> None:
        workers = Connectors([from_properties(properties(file))])
        await workers.start()
        (service,) = workers.services.values()
        assert isinstance(service, Connector)
        await until(lambda: service.tasks[-1].runs)
        await asyncio.sleep(0.1)
        file.write_text("kafka=two\ndatabase=x\n")
        await until(lambda: len(service.tasks) == 2 and service.tasks[-1].runs)
        assert service.tasks[0].stopped
        assert service.config.kafka.producer["sasl.password"] == "two"
        await workers.stop()

    asyncio.run(run())
