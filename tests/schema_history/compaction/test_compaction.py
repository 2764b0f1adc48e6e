"""Recovery from a summary has the result of recovery from all records, at every position."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.compacting_history import CompactingHistory, save_summary
from rowtide.schema_history.compaction.history_reader import HistoryReader, StoredHistory, read_history
from rowtide.schema_history.compaction.summary import CoveredPositions, Summary, UnusableSummary
from rowtide.schema_history.compaction.summary_store import FileSummaries
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter
from rowtide.schema_history.recovery.session_settings import required_sessions
from rowtide.schema_history.recovery.table_history import RecordedStructure, TableHistory
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_record import RecordedTable, history_record
from rowtide.schema_history.store.history_store import InMemorySchemaHistory, StoredText
from tests.support.in_memory_summaries import InMemorySummaries

UUIDS = ("1e0355b3-e5bc-11f1-acec-02fc00000001", "2e0355b3-e5bc-11f1-acec-02fc00000002")
SERVERS = (
    Server(Flavor.MYSQL, "8.4.3", collation="utf8mb4_0900_ai_ci"),
    Server(Flavor.MARIADB, "11.4.5-MariaDB", collation="utf8mb4_uca1400_ai_ci"),
)
STATEMENTS = (
    "SET character_set_server=latin1, collation_server=latin1_swedish_ci",
    "CREATE DATABASE d CHARACTER SET latin1",
    "CREATE TABLE d.a (id INT UNSIGNED PRIMARY KEY, t TEXT, UNIQUE u (t(10))) COMMENT 'of ä 😀'",
    "CREATE TABLE d.b LIKE d.a",
    "CREATE TABLE d.c LIKE d.b",
    "ALTER TABLE d.a ADD x ENUM('p','q,''r') NOT NULL",
    "CREATE INDEX i ON d.a (x)",
    "RENAME TABLE d.a TO d.z, d.b TO d.a, d.z TO d.b",
    "ALTER TABLE d.b RENAME TO d.e, ADD y VARCHAR(10) DEFAULT 'é'",
    "ALTER DATABASE d CHARACTER SET ucs2",
    "CREATE TABLE d.f (t TEXT)",
    "DROP TABLE d.c",
    "CREATE DATABASE other",
    "CREATE TABLE other.g LIKE d.a",
    "DROP DATABASE d",
    "CREATE DATABASE d",
    "CREATE TABLE d.a (z INT)",
    "TRUNCATE TABLE d.a",
)
KINDS = ("gtids", "two sources", "file", "mixed")


def place(number: int, kind: str, flavor: Flavor) -> dict[str, Any]:
    """The position of a statement."""
    found: dict[str, Any] = {"ts_sec": number // 2, "file": f"binlog.{number // 5:06}", "pos": 100 + number % 5 * 100}
    if kind == "file" or (kind == "mixed" and number < 4):
        return {**found, "server_id": 1}
    if flavor is Flavor.MARIADB:
        second = f",1-2-{number // 2 + 1}" if kind == "two sources" and number > 1 else ""
        return {**found, "gtids": f"0-1-{number + 1}{second}", "server_id": 1}
    second = f",{UUIDS[1]}:1-{number // 2 + 1}" if kind == "two sources" and number > 1 else ""
    return {**found, "gtids": f"{UUIDS[0]}:1-{number + 1}{second}", "server_id": 1}


def texts(kind: str, server: Server, order: list[int], source: str = "p") -> list[str]:
    """The history of all statements; ``order`` tells how often a crash makes records come again."""
    tables, by_statement = Tables(server), []
    for number, statement in enumerate(STATEMENTS):
        event = QueryEvent(statement, "d", sql_mode=0)
        applied = tables.apply(event)
        changes = zip(applied.changes, required_sessions(tables, event, applied), strict=True)
        at = place(number, kind, server.flavor)
        by_statement.append([history_record(c, source, at, number, session=session) for c, session in changes])
    found: list[str] = []
    for number, records in enumerate(by_statement):
        found += records
        for back in range(order[number % len(order)], 0, -1):
            found += [text for again in by_statement[max(0, number - back + 1) : number + 1] for text in again]
    return found


def answer(kept: StoredHistory, server: Server, position: BinlogPosition | None) -> tuple[object, int]:
    """The result of recovery, and the number of records that were read for it."""
    reading, found = read_history(kept, server, position), []
    for prefer_ddl in (False, True):
        tables = reading.tables(prefer_ddl=prefer_ddl)
        names = tables.names()
        found.append((names, list(tables), list(tables.databases()), dict(tables.variables)))
    return found, reading.unsummarised


@given(
    st.sampled_from(KINDS),
    st.sampled_from(SERVERS),
    st.lists(st.sampled_from([0, 0, 0, 1, 3]), min_size=1, max_size=6),
    st.lists(st.integers(0, 40), min_size=1, max_size=3),
    st.sampled_from(["shared", "alone"]),
)
@settings(max_examples=4, deadline=None)
def test_recovery_from_a_summary_is_recovery_from_all_records(
    kind: str, server: Server, order: list[int], cuts: list[int], shared: str
) -> None:
    store, summaries = InMemorySchemaHistory(), InMemorySummaries()
    foreign = texts(kind, server, [0], source="other") if shared == "shared" else []
    for number, text in enumerate(texts(kind, server, order)):
        store.append(text)
        if foreign:
            store.append(foreign.pop())
        if number in cuts:
            save_summary(
                StoredHistory(store, "p", summaries),
                read_history(StoredHistory(store, "p", summaries), server, None),
                0,
            )
    used = 0
    for number in range(len(STATEMENTS)):
        at = BinlogPosition.from_map({**place(number, kind, server.flavor), "event": number % 2})
        (compact, behind), (whole, records) = (
            answer(StoredHistory(store, "p", each), server, at) for each in (summaries, None)
        )
        assert compact == whole, number
        used += behind < records
    if min(cuts) < len(STATEMENTS) - 4:
        assert used, "no summary was ever used"


MARIADB = ("0-1-3", "0-2-3", "0-1-4,1-1-1")
positions = st.builds(
    BinlogPosition,
    st.sampled_from(["a.000001", "a.000002", "b.000001"]),
    st.integers(0, 3),
    st.sampled_from([None, "", *(f"{UUIDS[0]}:{ids}" for ids in ("1-3", "1-5", f"1-3,{UUIDS[1]}:1")), *MARIADB]),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.integers(0, 2),
    st.booleans(),
)  # fmt: skip


@given(st.lists(positions, max_size=8), positions)
@settings(max_examples=60, deadline=None)
def test_all_positions_are_within_a_position_if_the_latest_are(
    places: list[BinlogPosition], at: BinlogPosition
) -> None:
    reach = PositionFilter(at)
    assert CoveredPositions(places).all_within(at) == all(reach.includes(one) for one in places)
    assert len(CoveredPositions(places).latest) <= len(set(places))


def test_only_the_latest_positions_are_kept() -> None:
    places = [BinlogPosition.from_map(place(number, "two sources", Flavor.MYSQL)) for number in range(200)]
    assert CoveredPositions(places).latest == (places[-1],)


def summed(store: InMemorySchemaHistory, server: Server = SERVERS[0], source: str = "p") -> InMemorySummaries:
    summaries = InMemorySummaries()
    kept = StoredHistory(store, source, summaries)
    save_summary(kept, read_history(kept, server, None), 0)
    assert len(summaries.summaries) == 1
    return summaries


@pytest.fixture
def store() -> InMemorySchemaHistory:
    return InMemorySchemaHistory(*texts("gtids", SERVERS[0], [0]))


@pytest.mark.parametrize(
    "damage",
    [
        lambda packed: packed[: len(packed) // 2],
        lambda _: b"",
        lambda _: zlib.compress(b'{"format":3}'),
        lambda packed: zlib.compress(zlib.decompress(packed).replace(b'{"format":3', b'{"format":4')),
        lambda packed: zlib.compress(zlib.decompress(packed)[:-20]),
        lambda packed: zlib.compress(zlib.decompress(packed).replace(b'"tables":[', b'"tables":[999,')),
    ],
)
def test_a_damaged_summary_is_not_used(store: InMemorySchemaHistory, damage: Any) -> None:
    summaries = summed(store)
    summaries.summaries = [damage(summaries.summaries[0])]
    reading = read_history(StoredHistory(store, "p", summaries), SERVERS[0], None)
    assert reading.unsummarised == reading.records == len(store.records)
    with pytest.raises(UnusableSummary):
        Summary(summaries.summaries[0]).restore(None)


def test_a_summary_of_another_history_is_not_used(store: InMemorySchemaHistory) -> None:
    history = StoredHistory(store, "p", summed(store))
    other = Server(Flavor.MYSQL, "9.7.0", collation="utf8mb4_0900_ai_ci")
    assert read_history(history, SERVERS[0], None).unsummarised == 0
    assert read_history(history, other, None).unsummarised == len(store.records)
    store.records[-1] = store.records[-1].replace('"ts_ms" : 17', '"ts_ms" : 18')
    assert read_history(history, SERVERS[0], None).unsummarised == len(store.records), "another last record"
    store.records.pop()
    assert read_history(history, SERVERS[0], None).unsummarised == len(store.records), "shorter"


def test_a_summary_ahead_of_the_position_is_not_used_and_none_is_written(store: InMemorySchemaHistory) -> None:
    summaries = summed(store)
    at = BinlogPosition.from_map(place(5, "gtids", Flavor.MYSQL))
    reading = read_history(StoredHistory(store, "p", summaries), SERVERS[0], at)
    assert reading.unsummarised == len(store.records)
    assert reading.summary() is None


def test_the_older_summary_is_used_for_an_older_position() -> None:
    whole = texts("gtids", SERVERS[0], [0])
    store, summaries = InMemorySchemaHistory(), InMemorySummaries()
    history = CompactingHistory(StoredHistory(store, "p", summaries), SERVERS[0], 5)
    for text in whole:
        history.append(text)
    assert [Summary(packed).header.records for packed in summaries.summaries] == [15, 20]
    at = BinlogPosition.from_map(place(14, "gtids", Flavor.MYSQL))
    reading = read_history(StoredHistory(store, "p", summaries), SERVERS[0], at)
    assert reading.records - reading.unsummarised == 15


def test_a_snapshot_results_in_one_summary_at_its_end() -> None:
    summaries = InMemorySummaries()
    history = CompactingHistory(StoredHistory(InMemorySchemaHistory(), "p", summaries), SERVERS[0], 3)
    with history.buffered():
        for text in texts("gtids", SERVERS[0], [0]):
            history.append(text)
        assert not summaries.summaries
    assert len(summaries.summaries) == 1


def test_a_summary_that_cannot_be_written_does_not_stop_the_connector(caplog: pytest.LogCaptureFixture) -> None:
    class Full(InMemorySummaries):
        def save(self, packed: bytes) -> None:
            raise SchemaHistoryError("the disk is full")

    history = CompactingHistory(StoredHistory(InMemorySchemaHistory(), "p", Full()), SERVERS[0], 1)
    for text in texts("gtids", SERVERS[0], [0])[:3]:
        history.append(text)
    assert "the disk is full" in caplog.text
    damaged = CompactingHistory(StoredHistory(InMemorySchemaHistory("{"), "p", InMemorySummaries()), SERVERS[0], 1, 1)
    assert damaged.exists()
    assert "damaged record" in caplog.text


def test_files(tmp_path: Path) -> None:
    path = tmp_path / "history"
    store, summaries = FileSchemaHistory(path), FileSummaries(tmp_path / "history.p")
    kept = StoredHistory(store, "p", summaries)
    assert list(summaries.load()) == []
    history = CompactingHistory(kept, SERVERS[0], 7)
    whole = texts("gtids", SERVERS[0], [0])
    for text in whole:
        history.append(text)
    history.close()
    assert [Summary(packed).header.records for packed in summaries.load()] == [14, 7]
    assert read_history(kept, SERVERS[0], None).unsummarised == len(whole) - 14
    assert answer(kept, SERVERS[0], None)[0] == answer(StoredHistory(store, "p"), SERVERS[0], None)[0]
    (tmp_path / "history.p.compact").write_bytes(b"half")
    assert read_history(kept, SERVERS[0], None).unsummarised == len(whole) - 7
    assert sorted(file.name for file in tmp_path.iterdir()) == ["history", "history.p.compact", "history.p.compact.1"]
    # what Debezium reads is the same as without
    assert [json.loads(line) for line in path.read_text().splitlines()] == [json.loads(text) for text in whole]


def test_a_summary_has_every_field_of_a_table_history() -> None:
    # A new one must be added to the summary, and FORMAT raised.
    assert [field.name for field in fields(TableHistory)] == ["id", "entries", "recorded"]
    assert [field.name for field in fields(RecordedTable)] == ["kind", "id", "previous_id", "packed", "comment"]
    entry = ["ddl", "database", "databases", "sources", "recorded", "renamed", "session"]
    assert [field.name for field in fields(RecordedStructure)] == entry


def test_a_long_chain_of_tables_created_like_each_other() -> None:
    store, tables = InMemorySchemaHistory(), Tables(SERVERS[0])
    statements = ["CREATE DATABASE d", "CREATE TABLE d.t0 (a INT)"]
    statements += [f"CREATE TABLE d.t{number} LIKE d.t{number - 1}" for number in range(1, 12)]
    for number, statement in enumerate(statements):
        for change in tables.apply(QueryEvent(statement, "d", sql_mode=0)).changes:
            store.append(history_record(change, "p", place(number, "gtids", Flavor.MYSQL), number))
    summaries = summed(store)
    assert len(summaries.summaries[0]) < 3_000
    assert (
        answer(StoredHistory(store, "p", summaries), SERVERS[0], None)[0]
        == answer(StoredHistory(store, "p"), SERVERS[0], None)[0]
    )


def test_lost_records_are_an_error_although_a_summary_covers_them(store: InMemorySchemaHistory) -> None:
    from rowtide.schema_history.store.history_store import TrimmedHistory

    class Trimmed(InMemorySchemaHistory):
        def texts(self, start: int = 0) -> Iterator[StoredText]:
            yield StoredText(0, 2, "", TrimmedHistory("trimmed"))
            yield from super().texts(start)

    with pytest.raises(TrimmedHistory):
        read_history(StoredHistory(Trimmed(*store.records), "p", summed(store)), SERVERS[0], None)


def test_reading_is_public_state(store: InMemorySchemaHistory) -> None:
    reading: HistoryReader = read_history(StoredHistory(store, "p"), SERVERS[0], None)
    assert reading.summary() is None, "without a place for summaries none is made"
