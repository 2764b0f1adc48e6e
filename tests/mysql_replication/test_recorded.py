"""The rows of recorded binlogs, beside mysql-replication's own: they agree, or the difference is a listed one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import pytest
from pymysqlreplication.constants import FIELD_TYPE, NONE_SOURCE
from pymysqlreplication.event import QueryEvent
from pymysqlreplication.json_binary import JsonDiff
from pymysqlreplication.row_event import DeleteRowsEvent, RowsEvent, TableMapEvent, UpdateRowsEvent, WriteRowsEvent

from rowtide.connector.errors import ProtocolError, UnknownTable
from rowtide.connector.protocol import events
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.protocol.header import ROWS_TYPES, EventHeader, EventType
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import StreamBroken
from rowtide.mysql_replication import reader as reader_module
from rowtide.mysql_replication.events import EventPacket
from tests.support.mysql_replication import library_rows, recorded_events, recorded_reader
from tests.support.recordings.golden import Case, cases

pytestmark = pytest.mark.filterwarnings("ignore:datetime.datetime.utcfromtimestamp:DeprecationWarning")

REFUSED_BY_LIBRARY = {
    "mariadb-compressed-binlog": AttributeError,  # it has no class for compressed rows
    "geometry-and-vector": NotImplementedError,  # VECTOR
    "rare-charsets": UnicodeDecodeError,  # utf32 is big-endian in MySQL
    "strings-and-charsets": UnicodeDecodeError,  # MySQL's latin1 has characters that cp1252 lacks
}


def explained(ours: Any, theirs: Any, column: Any) -> bool:
    """Whether a difference of values is in docs/mysql-replication.md: the server's SELECT shows ours."""
    if isinstance(ours, str) and isinstance(
        theirs, bytes
    ):  # UUID, INET, and character sets that Python names otherwise
        return True
    match column.type:
        case FIELD_TYPE.YEAR:
            return bool((ours, theirs) == (0, 1900))
        case FIELD_TYPE.TIMESTAMP2:
            return ours is None and theirs == dt.datetime(1970, 1, 1)  # noqa: DTZ001
        case FIELD_TYPE.TIME2:  # the fraction of a negative time
            return isinstance(ours, dt.timedelta) and ours < dt.timedelta() and abs(ours - theirs) < dt.timedelta(0, 2)
        case FIELD_TYPE.STRING if isinstance(ours, bytes):  # BINARY is padded
            return bool(ours.rstrip(b"\0") == (theirs or b"").rstrip(b"\0"))
        case FIELD_TYPE.STRING:  # an address of zeros has no bytes either
            return theirs == "" and set(ours) <= set("0-.:")
        case FIELD_TYPE.VARCHAR | FIELD_TYPE.BLOB if isinstance(ours, bytes):  # it has '' for no bytes
            return bool((ours, theirs) == (b"", ""))
        case FIELD_TYPE.VARCHAR:
            return bool((ours, theirs) == ("z", "\u7a00"))  # UTF-16 is big-endian in MySQL
        case FIELD_TYPE.JSON:
            return documents_agree(ours, theirs)
    return False


def documents_agree(ours: Any, theirs: Any) -> bool:
    """Whether documents agree, but for negative times and binary values, which mysql-replication has wrong."""
    if isinstance(ours, dict):
        return list(ours) == list(theirs) and all(documents_agree(ours[key], theirs[key]) for key in ours)
    if isinstance(ours, list) and isinstance(theirs, JsonDiff):  # it has the first difference only
        return documents_agree(ours[0], theirs)
    if isinstance(ours, list):
        return len(ours) == len(theirs) and all(map(documents_agree, ours, theirs))
    if isinstance(ours, JsonDiff):
        return (ours.op, ours.path) == (theirs.op, theirs.path) and documents_agree(ours.value, theirs.value)
    if isinstance(ours, dt.timedelta):
        return isinstance(theirs, dt.time)
    if isinstance(ours, bytes) and isinstance(theirs, str):
        return bool(ours.decode(errors="ignore") == theirs)
    return type(ours) is type(theirs) and bool(ours == theirs)


@pytest.mark.parametrize("name", cases())
def test_the_rows_are_those_of_mysql_replication(name: str) -> None:
    refused = 0
    for event in recorded_events(Case(name)):
        if not isinstance(event, RowsEvent):
            continue
        try:
            expected = library_rows(event)
        except REFUSED_BY_LIBRARY.get(name, ()):  # type: ignore[misc]
            refused += 1
            assert event.rows
            continue
        columns = {column.name: column for column in event.columns}
        assert len(event.rows) == len(expected)
        for found, known in zip(event.rows, expected, strict=True):
            assert found.keys() == known.keys()
            for part in ("values", "before_values", "after_values"):
                sources = part.replace("values", "none_sources")
                for column, value in found.get(part, {}).items():
                    theirs = known[part][column]
                    if type(value) is type(theirs) and value == theirs:
                        assert found[sources].get(column) == known[sources].get(column)
                    else:
                        assert explained(value, theirs, columns[column]), (part, column, value, theirs)
                        assert (value is None) == (column in found[sources])
    assert bool(refused) == (name in REFUSED_BY_LIBRARY)


@pytest.mark.parametrize("name", ["transactions", "transaction-compression", "ddl-stream", "mariadb-ddl", "gtid-off"])
def test_a_stream_that_breaks_anywhere_loses_and_repeats_no_row(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection breaks after each event once; the next stream begins where the reader asks."""
    case = Case(name)
    rows = [WriteRowsEvent, UpdateRowsEvent, DeleteRowsEvent]
    expected = [event.rows for event in recorded_events(case, only_events=rows)]
    first = min(case.binlog.iterdir())
    with first.open("rb") as stream:
        packets = list(binlog_packets(stream, first.name, active=True))
    places = [4]
    for packet in packets:
        places.append(places[-1] + len(packet))
    broken: set[int] = set()

    class Breaking:
        """A stream that breaks after the next event that no stream before it has broken after."""

        def __init__(self, _config: object, start: SourceOffset, **_: object) -> None:
            self._place = places.index(start.pos) if start.file == "binlog.000001" else len(packets)

        def events(self) -> Iterator[list[bytes]]:
            if self._place:
                yield packets[:1]
            for number in range(self._place, len(packets)):
                yield [packets[number]]
                if number not in broken:
                    broken.add(number)
                    raise StreamBroken("the connection broke")

        def close(self) -> None:
            """Nothing is open."""

    monkeypatch.setattr(reader_module, "BinlogStream", Breaking)
    monkeypatch.setattr(reader_module, "_WAIT_S", 0)
    monkeypatch.setattr(reader_module, "_MOST_FAILURES", len(packets) + 1)
    reader = recorded_reader(case, only_events=rows)
    reader._begin_at(SourceOffset("binlog.000001", 4))
    found = [event.rows for event in reader]
    assert len(broken) == len(packets)
    assert found == expected[: len(found)]
    assert len(found) == sum(packet[4] in ROWS_TYPES for packet in packets) or name == "transaction-compression"


def test_a_dropped_column_is_named_in_the_rows_before() -> None:
    found = [event for event in recorded_events(Case("ddl-stream")) if isinstance(event, RowsEvent)]
    assert len({tuple(column.name for column in event.columns) for event in found if event.table == "t"}) > 1
    assert all(set(row.get("values") or row["after_values"]) == {c.name for c in event.columns}
               for event in found for row in event.rows)  # fmt: skip


def test_compressed_transactions_and_events_are_read() -> None:
    for name in ("transaction-compression", "mariadb-compressed-binlog"):
        found = list(recorded_events(Case(name)))
        assert sum(len(event.rows) for event in found if isinstance(event, RowsEvent)) > 0
        assert all(event.query for event in found if isinstance(event, QueryEvent))
        positions = [event.packet.log_pos for event in found if event.packet.log_pos]
        assert positions == sorted(positions)


def test_filters_and_kinds_select_events() -> None:
    case = Case("ddl-stream")
    every = [event for event in recorded_events(case) if isinstance(event, (RowsEvent, TableMapEvent))]
    tables = {event.table for event in every}
    assert len(tables) > 1
    for table in sorted(tables)[:2]:
        only = list(recorded_events(case, only_events=[type(e) for e in every], only_tables=[table]))
        others = list(recorded_events(case, only_events=[type(e) for e in every], ignored_tables=[table]))
        assert {event.table for event in only} == {table}
        assert {event.table for event in others} == tables - {table}
        assert len(only) + len(others) == len(every)
    schemas = {event.schema for event in every}
    assert {event.schema for event in recorded_events(case, only_events=[TableMapEvent], only_schemas=schemas)}
    assert not list(recorded_events(case, only_events=[TableMapEvent], ignored_schemas=schemas))


def test_a_frozen_schema_has_each_table_id_once() -> None:
    found = [event.table_id for event in recorded_events(Case("transactions"), only_events=[TableMapEvent])]
    frozen = recorded_events(Case("transactions"), only_events=[TableMapEvent], freeze_schema=True)
    assert len(found) > len(set(found))
    assert [event.table_id for event in frozen] == list(dict.fromkeys(found))


def test_a_table_without_a_structure_is_an_error_with_its_place() -> None:
    structure = TableStructure("shop", "orders", (MappedColumn(BinlogType.LONG, 0, nullable=False),))
    structures = recorded_reader(Case("transactions"))._structures
    with pytest.raises(UnknownTable, match=r"rows of table shop.orders,.* schema_history .*\(at binlog\.000001:4\)"):
        structures.rows(structure, SourcePosition("binlog.000001", 4))


def test_an_incident_is_an_error_with_its_place() -> None:
    reader = recorded_reader(Case("transactions"))
    reader._begin_at(SourceOffset("binlog.000001", 4))
    event = events.Incident(EventHeader(1, EventType.INCIDENT, 1, 30, 120, 0), 1, "LOST_EVENTS")
    with pytest.raises(ProtocolError, match=r"INCIDENT 1: LOST_EVENTS.*binlog\.000001"):
        list(reader._one(event, EventPacket(bytes(30), checksum=True, log_pos=120)))


def test_none_sources_name_the_reason() -> None:
    found = {
        source
        for event in recorded_events(Case("temporal-connect"))
        if isinstance(event, RowsEvent)
        for row in event.rows
        for source in row.get("none_sources", {}).values()
    }
    assert {NONE_SOURCE.NULL, NONE_SOURCE.OUT_OF_DATETIME2_RANGE} <= found
