"""The threads that read chunks, and the stream that waits for one."""

from __future__ import annotations

import threading
from typing import Any, ClassVar, cast

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.building import reader_settings
from rowtide.connector.snapshot.incremental.reading import chunk_reader
from rowtide.connector.snapshot.incremental.reading.chunk_reader import ChunkReader, ReaderSettings
from rowtide.connector.snapshot.incremental.scan import Failed, Mark, Scan
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.configurations import PROPERTIES

MARK = Mark(0, SourceOffset("b.000001", 4))


class Worker:
    """A worker whose server is behind."""

    calls: ClassVar[list[str]] = []

    def __init__(self, *_args: object) -> None: ...

    def begin(self, _scan: Scan, _mark: Mark) -> None:
        self.calls.append("begin")
        raise SnapshotError("behind")

    def position(self) -> SourceOffset | None:
        self.calls.append("position")
        return None

    def close(self) -> None:
        self.calls.append("close")


def scan() -> Scan:
    return Scan(*(cast("Any", None) for _ in range(5)), condition="", size=10)


def await_found(reader: ChunkReader) -> None:
    while not reader.found:
        threading.Event().wait(0.001)


def test_a_connection_whose_server_refuses_a_chunk_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """The address may lead to another server by now."""
    monkeypatch.setattr(chunk_reader, "ChunkWorker", Worker)
    reader = ChunkReader(cast("Any", None), ReaderSettings(1, 0, None, 10))
    reader.read(scan(), MARK)
    await_found(reader)
    assert Worker.calls == ["begin", "position", "close"]
    ((_scan, found),) = reader.found
    assert found == Failed("behind")
    reader.close()


def test_the_stream_does_not_wait_for_chunks_of_a_scan_that_was_replaced() -> None:
    reader = ChunkReader(cast("Any", None), ReaderSettings(1, 0, None, 10, hold_s=60))
    replaced, now = scan(), scan()
    reader.found.append((replaced, Failed("")))
    thread = threading.Thread(target=reader.hold, args=(now, MARK))
    thread.start()
    thread.join(0.1)
    assert thread.is_alive()
    reader.close()
    thread.join()


@pytest.mark.parametrize(("acknowledge", "holds"), [(None, True), ("received", True), ("delivered", False)])
def test_the_stream_does_not_wait_while_commits_wait_for_what_it_has_read(
    acknowledge: str | None, *, holds: bool
) -> None:
    more = {} if acknowledge is None else {"rowtide.semi.sync": "true", "rowtide.semi.sync.acknowledge": acknowledge}
    config = from_properties({**PROPERTIES, **more})
    settings = reader_settings(config, Tables(Server(Flavor.MYSQL)), continues=False)
    assert (settings.hold_s > 0) is holds
