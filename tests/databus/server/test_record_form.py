"""The messages of databus: keys that ascend, and rows and statements as the client reads them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from databus_streams import SERVERS, batches, settings_of
from recorded_server import recorded_stream

from rowtide.connector.records.batch import Batch
from rowtide.connector.rows.row_compiler import Column
from rowtide.databus.events import KafkaKey, QueryEvent, RowsEvent, decode_message
from rowtide.databus.server.record_form import DatabusForm, RowsEventCodec
from rowtide.envelope.table import TableSchema

Message = tuple[KafkaKey, RowsEvent | QueryEvent]


def messages(made: Sequence[Batch]) -> list[Message]:
    found = [(key, value) for batch in made for key, value, _ in batch.messages]
    return [decode_message("shop", offset, key, value) for offset, (key, value) in enumerate(found)]


@pytest.mark.parametrize("rows", [1, 2, 4096])
@pytest.mark.parametrize("name", SERVERS)
def test_positions_ascend_strictly_as_the_clients_of_the_original_need(
    name: str, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These drop what is not behind the last message. XA transactions count at XA COMMIT."""
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
def test_statements_name_the_database_and_have_the_structure_behind_them(name: str) -> None:
    found = [(key, event) for key, event in messages(batches(recorded_stream(name))) if isinstance(event, QueryEvent)]
    assert {key.action for key, _ in found} == {"DDL"}
    assert {event.action for _, event in found} >= {"create", "alter"}
    for _, event in found:
        assert f"`{event.table.schema}`." in event.query or f"{event.table.schema}." in event.query, event
        assert bool(event.table.columns) is (event.action != "drop"), event


def test_images_without_columns_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The original publishes null in their place."""
    made: list[RowsEventCodec] = []

    def codec(form: DatabusForm, records: TableSchema, columns: Sequence[Column]) -> RowsEventCodec:
        made.append(RowsEventCodec(form.topic, records, columns))
        return made[-1]

    monkeypatch.setattr(DatabusForm, "codec", codec)
    batches(recorded_stream("mysql"))
    all_columns, only_first = b"\xff\xff", b"\x01\x00"
    assert made[0].decode(b"", 0, 0, all_columns) == []
    with pytest.raises(ValueError, match=r"after image of a row of table .* lacks the columns .*binlog_row_image=FULL"):
        made[0].decode(b"", 0, 0, only_first)
    with pytest.raises(ValueError, match=r"before image of a row"):
        made[0].decode(b"", 0, 0, only_first, all_columns)
