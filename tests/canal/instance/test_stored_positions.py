"""The position of the Kafka mode in meta.dat: Canal's and rowtide's own, after acknowledgement."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from rowtide.canal.entries.entry import Content, Entry, EntryHeader, EntryStatement, TransactionBegin, TransactionEnd
from rowtide.canal.entries.entry import EventType as Type
from rowtide.canal.entries.sink import PassedEntry
from rowtide.canal.instance.client_positions import ClientPositions
from rowtide.canal.instance.kafka import CLIENT_ID, StoredPositions
from rowtide.canal.instance.positions import Master
from rowtide.canal.instance.storage import META, FolderStorage
from rowtide.connector.records.offset import SourceOffset

OFFSET = SourceOffset("binlog.000001", 4, ts_sec=1)


def opened(folder: Path) -> ClientPositions:
    found = ClientPositions(FolderStorage(folder, "d"), Master("localhost", 3306))
    found.subscribed(CLIENT_ID, "")
    return found


def passed(pos: int, content: Content, **offset: object) -> PassedEntry:
    changed = replace(OFFSET, pos=pos + 31, **offset)  # type: ignore[arg-type]
    return PassedEntry(Entry(EntryHeader("binlog.000001", pos, 31, 1, 1), content), changed)


def canals(folder: Path) -> int | None:
    """The position that Canal would resume at."""
    (client,) = json.loads((folder / META).read_text())["clientDatas"]
    return client["cursor"]["postion"]["position"] if "cursor" in client else None


ROWS = EntryStatement(Type.QUERY, "INSERT")


def test_an_offset_within_a_transaction_is_rowtides_own_and_canal_resumes_before_it(tmp_path: Path) -> None:
    positions = opened(tmp_path)
    stored = StoredPositions(positions)
    entries = [passed(100, TransactionEnd(1)), passed(200, ROWS, event=2), passed(300, TransactionEnd(2))]
    stored.read(entries)
    assert stored.record(entries[0].offset) is None
    stored.save(entries[1].offset)
    assert canals(tmp_path) == 100
    assert stored.load() == entries[1].offset
    assert StoredPositions(opened(tmp_path)).load() == entries[1].offset
    stored.save(entries[2].offset)
    assert canals(tmp_path) == 300
    assert stored.load() == entries[2].offset


def test_an_offset_that_was_stored_already_changes_nothing(tmp_path: Path) -> None:
    stored = StoredPositions(opened(tmp_path))
    entries = [passed(100, TransactionEnd(1)), passed(200, TransactionEnd(2))]
    stored.read(entries)
    stored.save(entries[1].offset)
    stored.save(entries[0].offset)
    assert canals(tmp_path) == 200


def test_a_snapshot_has_a_position_at_its_end_only(tmp_path: Path) -> None:
    positions = opened(tmp_path)
    assert not positions.snapshot_begins()
    stored = StoredPositions(positions)
    entries = [passed(100, TransactionBegin(0), snapshot="INITIAL"), passed(100, ROWS, snapshot="INITIAL")]
    end = passed(100, TransactionEnd(0))
    stored.read([*entries, end])
    stored.save(entries[1].offset)
    assert canals(tmp_path) is None
    assert opened(tmp_path).snapshot_begins()
    stored.save(end.offset)
    assert canals(tmp_path) == 100
    assert not opened(tmp_path).snapshot_begins()


def test_a_position_that_canal_has_written_is_recognised(tmp_path: Path) -> None:
    positions = opened(tmp_path)
    stored = StoredPositions(positions)
    entries = [passed(100, TransactionEnd(1))]
    stored.read(entries)
    stored.save(entries[0].offset)
    assert not opened(tmp_path).moved(CLIENT_ID)
    meta = tmp_path / META
    meta.write_text(meta.read_text().replace('"position":100', '"position":900'))
    assert opened(tmp_path).moved(CLIENT_ID)


def test_the_position_of_the_kafka_mode_counts_whatever_other_clients_have(tmp_path: Path) -> None:
    positions = opened(tmp_path)
    positions.subscribed(1, "")
    stored = StoredPositions(positions)
    entries = [passed(100, TransactionEnd(1))]
    stored.read(entries)
    stored.save(entries[0].offset)
    assert stored.load() == entries[0].offset
    assert positions.resumption(1) is not None
