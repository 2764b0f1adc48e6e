"""An instance whose server cannot be reached, and filters that are invalid."""

from __future__ import annotations

import logging
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

from rowtide.canal.configuration.load import read_instance
from rowtide.canal.entries.entry import Entry, EntryHeader, TransactionEnd
from rowtide.canal.entries.pipeline import EntryBatch
from rowtide.canal.entries.sink import PassedEntry
from rowtide.canal.instance.client_positions import Resumption
from rowtide.canal.instance.instance import Instance
from rowtide.canal.instance.positions import CanalPosition
from rowtide.canal.instance.reading import EntryReader
from rowtide.canal.instance.source import CanalSource
from rowtide.canal.instance.storage import META, FolderStorage
from rowtide.connector.delivery.event_store import StoreClosed
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.history_store import InMemorySchemaHistory

OFFSET = SourceOffset("binlog.000001", 100)


def instance(folder: Path, address: str = "127.0.0.1:1", more: str = "") -> Instance:
    (folder / "canal.properties").write_text("")
    (folder / "d").mkdir(exist_ok=True)
    (folder / "d" / "instance.properties").write_text(
        f"canal.instance.master.address={address}\ncanal.instance.dbUsername=canal\n{more}\n"
    )
    return Instance(read_instance(folder, "d"), FolderStorage(folder / "data", "d"))


def until(reached: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_server_that_cannot_be_reached_is_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.canal.instance.reading._FIRST_WAIT_S", 0.01)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    found = instance(tmp_path, f"127.0.0.1:{port}")
    found.start()
    until(lambda: found.error is not None)
    with socket.create_server(("127.0.0.1", port)) as listener:
        listener.settimeout(30)
        listener.accept()[0].close()
    found.stop()


def test_clients_never_acknowledge_more_than_was_counted(tmp_path: Path) -> None:
    """Metrics of a store that is full, while the reader waits to put the rest of its entries."""
    found = instance(tmp_path, more="canal.instance.memory.buffer.size=2\ncanal.instance.memory.batch.mode=ITEMSIZE")
    entry = Entry(EntryHeader("binlog.000001", 69, 31, 1, 1), TransactionEnd(1))

    def put() -> None:
        with pytest.raises(StoreClosed):
            found.put([PassedEntry(entry, OFFSET)] * 4, Resumption(OFFSET))

    reader = Thread(target=put)
    found.destination.subscribe("1001", "")
    reader.start()
    until(lambda: found.destination.store.unread == 2)
    found.destination.ack("1001", found.destination.get("1001", 1).id)
    traffic = found.state.traffic
    assert traffic is not None
    assert traffic.put.entries >= traffic.acked.entries == 1
    assert traffic.put.bytes >= traffic.acked.bytes > 0
    found.close()
    reader.join()


@pytest.mark.parametrize(
    ("mariadb", "found", "start"), [(True, None, ""), (True, "0-1-5", "0-1-5"), (False, None, None)]
)
def test_a_mariadb_without_transactions_has_no_gtids_instead_of_unknown_ones(
    mariadb: bool, found: str | None, start: str | None
) -> None:
    nothing: Any = None
    source = CanalSource(nothing, nothing, nothing, mariadb)
    assert source.present(replace(OFFSET, gtids=found, snapshot="INITIAL")) == replace(OFFSET, gtids=start)


def test_an_unexpected_error_is_logged_with_its_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing(*_args: object) -> CanalSource:
        raise KeyError("unexpected")

    monkeypatch.setattr(CanalSource, "connect", failing)
    found = instance(tmp_path)
    found.start()
    until(lambda: found.error is not None)
    found.stop()
    assert [bool(record.exc_info) for record in caplog.records if record.levelno == logging.ERROR] == [True]


def test_an_invalid_filter_of_a_client_is_ignored_now_and_after_a_restart(tmp_path: Path) -> None:
    found = instance(tmp_path)
    found.destination.subscribe("1001", "shop[.]a")
    found.destination.subscribe("1001", "shop[")
    assert found.sink.tables.white.text == "shop[.]a"
    meta = tmp_path / "data" / META
    assert instance(tmp_path).sink.tables.white.text == "shop[.]a"
    meta.write_text(meta.read_text().replace("shop[.]a", "shop["))  # Canal stores it
    assert instance(tmp_path).sink.tables.white.text == r".*\..*"


def test_what_a_client_has_not_acknowledged_when_it_unsubscribes_comes_again(tmp_path: Path) -> None:
    found = instance(tmp_path)
    destination = found.destination
    destination.subscribe("1001")
    batch = ended(100)
    found.put([PassedEntry(entry, batch.offset) for entry in batch.entries], Resumption(batch.offset))
    first = destination.get("1001", 1)
    destination.unsubscribe("1001")
    destination.subscribe("1001")
    assert destination.get("1001", 1).entries == first.entries != []


def test_a_full_store_is_reported_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("rowtide.canal.instance.instance._FULL_S", 0.01)
    found = instance(tmp_path, more="canal.instance.memory.buffer.size=2\ncanal.instance.memory.batch.mode=ITEMSIZE")
    batches = [ended(pos) for pos in (100, 200, 300)]
    entries = [PassedEntry(entry, batch.offset) for batch in batches for entry in batch.entries]
    putting = Thread(target=lambda: found.put(entries, Resumption(OFFSET)))
    putting.start()
    until(lambda: "have not acknowledged 2 entries" in caplog.text)
    assert found._resumption is None
    store = found.destination.store
    taken = [entry.position.pos for _ in range(2) for entry in store.get(2).batches]
    putting.join()
    assert taken == [100, 200, 300]


def put(found: Instance, resumption: Resumption, *batches: EntryBatch) -> list[int]:
    """Put batches as a reader does that begins at a position; returns the positions of the entries in the store."""
    source: Any = SimpleNamespace(config=SimpleNamespace(failure=None))
    reader = EntryReader(found, source, Tables(Server(Flavor.MYSQL)), resumption, InMemorySchemaHistory())
    for batch in batches:
        reader._put(reader._wanted(batch))
    return [entry.position.pos for entry in found.destination.store.get(100, 0).batches]


def ended(pos: int, seconds: int = 1) -> EntryBatch:
    header = EntryHeader("binlog.000001", pos, 31, 1, seconds)
    return EntryBatch([Entry(header, TransactionEnd(1))], replace(OFFSET, pos=pos + 31))


def test_only_the_first_event_is_omitted_as_done(tmp_path: Path) -> None:
    """The events of a compressed transaction have one position; after RESET MASTER, positions come again."""
    resumption = Resumption(OFFSET, CanalPosition("binlog.000001", 100, 1, 0))
    assert put(instance(tmp_path), resumption, ended(100, 10), ended(100, 20), ended(90, 30)) == [100, 90]


def test_after_an_error_the_time_to_begin_at_still_counts(tmp_path: Path) -> None:
    found = instance(tmp_path)
    assert put(found, Resumption(OFFSET, since_ms=50_000), ended(100, 10)) == []
    assert found._resumption == Resumption(replace(OFFSET, pos=131), since_ms=50_000)
    assert put(found, found._resumption, ended(131, 60)) == [131]
    assert found._resumption == Resumption(replace(OFFSET, pos=162))


def test_a_large_read_is_handed_over_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A compressed transaction is one packet of very many events, which must not all be in memory."""
    monkeypatch.setattr("rowtide.canal.instance.reading._PUT_BYTES", 2 * 31)
    found = instance(tmp_path)
    source: Any = SimpleNamespace(config=SimpleNamespace(failure=None))
    reader = EntryReader(found, source, Tables(Server(Flavor.MYSQL)), Resumption(OFFSET), InMemorySchemaHistory())
    parts: list[int] = []
    monkeypatch.setattr(found, "put", lambda entries, _resumption: parts.append(len(entries)))
    pipeline: Any = SimpleNamespace(receive=lambda _packet: ([ended(pos)] for pos in range(100, 105)))
    reader._write([b""], pipeline)
    assert parts == [2, 2, 1]


def test_what_was_read_before_an_error_is_handed_over(tmp_path: Path) -> None:
    found = instance(tmp_path)
    source: Any = SimpleNamespace(config=SimpleNamespace(failure=None))
    reader = EntryReader(found, source, Tables(Server(Flavor.MYSQL)), Resumption(OFFSET), InMemorySchemaHistory())

    def receive(packet: bytes) -> Any:
        if packet:
            raise ValueError("damaged")
        yield [ended(100)]

    pipeline: Any = SimpleNamespace(receive=receive)
    with pytest.raises(ValueError, match="damaged"):
        reader._write([b"", b"x"], pipeline)
    assert [entry.position.pos for entry in found.destination.store.get(100, 0).batches] == [100]
    assert found._resumption == Resumption(replace(OFFSET, pos=131))
