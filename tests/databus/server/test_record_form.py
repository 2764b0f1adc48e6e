"""The messages of databus: keys that ascend, and rows and statements as the client reads them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from json import loads
from types import SimpleNamespace
from typing import cast

import pytest

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.codecs.rows import EventContext
from rowtide.connector.rows.row_compiler import Column
from rowtide.databus.events import KafkaKey, QueryEvent, RowsEvent, decode_message
from rowtide.databus.server.record_form import DatabusForm, RowsEventCodec
from rowtide.envelope.table import TableSchema
from tests.support.databus.streams import SERVERS, batches, settings_of
from tests.support.mysql.recorded_server import recorded_stream

Message = tuple[KafkaKey, RowsEvent | QueryEvent]


def messages(made: Sequence[Batch]) -> list[Message]:
    found = [(key, value) for batch in made for key, value, _ in batch.messages]
    return [decode_message("shop", offset, key, value) for offset, (key, value) in enumerate(found)]


@pytest.mark.parametrize("rows", [1, 2, 4096])
@pytest.mark.parametrize("name", SERVERS)
def test_positions_ascend_strictly_as_the_clients_of_the_original_need(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These drop what is not after the last message. XA transactions count at XA COMMIT."""
    monkeypatch.setattr("rowtide.databus.server.record_form._MAX_ROWS", rows)
    positions = [(key.position.number, key.position.pos) for key, _ in messages(batches(recorded_stream(name)))]
    assert len(positions) > 20
    assert positions == sorted(set(positions))


@pytest.mark.parametrize("name", SERVERS)
def test_all_messages_are_in_partition_0_of_one_topic(name: str) -> None:
    """Also TRUNCATE, which has a record in Debezium's form, unless ``skipped.operations`` has it."""
    server = recorded_stream(name)
    settings = replace(settings_of(server.connector), skipped_operations=frozenset())
    made = [batch for batch in batches(server, settings) if batch.messages]
    assert {(batch.topic, batch.partition) for batch in made} == {("shop", 0)}


@pytest.mark.parametrize("name", SERVERS)
def test_rows_are_those_of_debezium_s_records(name: str) -> None:
    """Each change has one row, or two, with the values that Python has of the same event."""
    server = recorded_stream(name)
    changes = batches(server, replace(settings_of(server.connector), form=None, changes=True))
    expected: list[list[object]] = []
    for change in (change for batch in changes for change in batch.changes):
        expected += [list(row.values()) for row in (change.before, change.after) if row is not None]
    found = [row for _, event in messages(batches(server)) if isinstance(event, RowsEvent) for row in event.values()]
    assert len(found) > 30
    assert sorted(map(str, found)) == sorted(map(str, expected))


@pytest.mark.parametrize("name", SERVERS)
def test_statements_name_the_database_and_have_the_structure_after_them(name: str) -> None:
    found = [(key, event) for key, event in messages(batches(recorded_stream(name))) if isinstance(event, QueryEvent)]
    assert {key.action for key, _ in found} == {"DDL"}
    assert {event.action for _, event in found} >= {"create", "alter"}
    for _, event in found:
        assert f"`{event.table.schema}`." in event.query or f"{event.table.schema}." in event.query, event
        assert bool(event.table.columns) is (event.action != "drop"), event


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[RowsEventCodec]:
    """The codecs that are made."""
    found: list[RowsEventCodec] = []

    def codec(form: DatabusForm, records: TableSchema, columns: Sequence[Column]) -> RowsEventCodec:
        found.append(RowsEventCodec(form.topic, records, columns))
        return found[-1]

    monkeypatch.setattr(DatabusForm, "codec", codec)
    return found


class _Ends:
    """The row_end of images: two rows are deleted, and one is changed."""

    def of(self, _event: Rows, _layout: Callable[[bytes], Sequence[bool]]) -> list[bool]:
        return [True, False, True, False, True, True]


def test_rows_of_a_system_versioned_table_that_end_together_have_one_message(made: list[RowsEventCodec]) -> None:
    """On MariaDB, the position after that of an event is the next event's."""
    batches(recorded_stream("mariadb"))
    made[0]._current = _Ends()  # type: ignore[assignment]
    event = SimpleNamespace(kind=RowsKind.UPDATE, start=0, end=60)
    rows = [((), (cell,)) for cell in ("MQ==", "MQ==", "Mg==", "Mg==", "Mw==", "NA==")]
    position = SourcePosition("binlog.000001", 100, None, 1, None, None, 0, 0, ordinal=3)
    context = EventContext("", "", "", [], position=position)
    found = [
        (KafkaKey.decode(key).position.pos, loads(value or b""))
        for key, value, _ in made[0].messages(cast("Rows", event), rows, 0, context)
    ]
    assert [(pos, value["Action"], value["Rows"]) for pos, value in found[:1]] == [
        (103, "delete", [["MQ=="], ["Mg=="]]),
    ]
    assert [(value["Action"], value["Rows"]) for _, value in found[1:]] == [("update", [["Mw=="], ["NA=="]])]


def test_images_without_columns_are_refused(made: list[RowsEventCodec]) -> None:
    """The original publishes null in their place."""
    batches(recorded_stream("mysql"))
    all_columns, only_first = b"\xff\xff", b"\x01\x00"
    assert made[0].decode(b"", 0, 0, all_columns) == []
    with pytest.raises(ValueError, match=r"after image of a row of table .* lacks the columns .*binlog_row_image=FULL"):
        made[0].decode(b"", 0, 0, only_first)
    with pytest.raises(ValueError, match=r"before image of a row"):
        made[0].decode(b"", 0, 0, only_first, all_columns)
