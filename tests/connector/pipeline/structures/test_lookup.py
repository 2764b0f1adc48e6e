"""Structures that contradict a TABLE_MAP: repaired from the server, or an error that names the way out."""

from __future__ import annotations

import json
import logging

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import ColumnCountMismatch, ConnectorError, SchemaError, StructureUncertain, UnknownTable
from rowtide.connector.pipeline.structures.lookup import Structures
from rowtide.connector.protocol.events.table_structure import BinlogType, MappedColumn, TableStructure
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import parse_record
from tests.support.configurations import PROPERTIES

SERVER = Server(Flavor.MYSQL, "8.4.3")
PLACE = SourcePosition("binlog.000007", 400, ts_us=1_700_000_000_000_000)
ROWS = TableStructure(
    "d", "t", (MappedColumn(BinlogType.LONG, 0, nullable=False), MappedColumn(BinlogType.VARCHAR, 20, nullable=True))
)
NOW = (
    "CREATE TABLE `t` (\n  `id` int NOT NULL,\n  `b` varchar(20) DEFAULT NULL,\n  PRIMARY KEY (`id`)\n) "
    "ENGINE=InnoDB DEFAULT CHARSET=latin1"
)


class Now:
    """A server that returns its answers one after the other."""

    def __init__(self, *answers: str | Exception) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[TableId, SourcePosition]] = []

    def statement(self, table: TableId, since: SourcePosition) -> str:
        self.asked.append((table, since))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def is_view(self, name: TableId) -> bool:
        raise NotImplementedError(name)


class Checked:
    """Structures with one table, and a clock that the test sets."""

    def __init__(self, known: str | None, current: Now | None) -> None:
        self.tables = Tables(SERVER)
        if known is not None:
            self.tables.apply(QueryEvent(f"CREATE TABLE t ({known})", "d"))
        self.seconds = 0
        settings = pipeline_settings(from_properties(PROPERTIES), "run")
        self.structures = Structures(settings, self.tables, lambda: self.seconds * 1_000_000_000, current)

    def __call__(self, rows: TableStructure = ROWS) -> tuple[Table, list[str]]:
        offset = SourceOffset("binlog.000007", 300, event=2)
        table, entries = self.structures.checked(rows, PLACE, lambda: offset)
        return table, [entry.text for entry in entries]


@pytest.mark.parametrize("known", [None, "id BIGINT PRIMARY KEY, b VARCHAR(5)", "id INT PRIMARY KEY"])
def test_the_structure_is_taken_from_the_server(known: str | None, caplog: pytest.LogCaptureFixture) -> None:
    now = Now(NOW)
    checked = Checked(known, now)
    with caplog.at_level(logging.WARNING):
        table, texts = checked()
    assert [(column.name, column.column_type, column.charset) for column in table.columns] == [
        ("id", "int", None),
        ("b", "varchar(20)", "latin1"),
    ]
    assert now.asked == [(TableId("d", "t"), PLACE)]
    assert "is taken from the server's SHOW CREATE TABLE" in caplog.text
    assert ("the table was changed without an event" if known else "the schema history lacks it") in caplog.text
    assert "(at binlog.000007:400)" in caplog.text
    assert checked() == (table, [])  # and is what is known from then on
    changes = [json.loads(text)["tableChanges"][0]["type"] for text in texts]
    assert changes == (["CREATE"] if known is None else ["DROP", "CREATE"])
    assert json.loads(texts[-1])["position"]["pos"] == 300
    (recovered,) = recover(map(parse_record, texts), SERVER, None)
    assert recovered == table


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            StructureUncertain("it was altered later than these rows were written"),
            "it was altered later than these rows",
        ),
        (NOW.replace("varchar(20)", "varchar(30)"), r"it does not fit either: column b has the type VARCHAR\(20\)"),
        (NOW.replace("varchar(20)", "what(20)"), "DDL statement not understood"),
        ("CREATE ALGORITHM=UNDEFINED VIEW `t` AS select 1", "it begins with 'CREATE ALGORITHM"),
    ],
)
def test_an_answer_of_the_server_that_does_not_fit_is_an_error(answer: str | Exception, reason: str) -> None:
    with pytest.raises(SchemaError, match=f"The server's SHOW CREATE TABLE cannot replace it: {reason}"):
        Checked("id INT, b VARCHAR(20)", Now(answer))()


class Lost(ConnectorError):
    """A connection that broke."""


def test_a_lost_connection_is_raised() -> None:
    """The rows are then read again: they are neither left out nor an error."""
    checked = Checked("id INT, b VARCHAR(20)", Now(Lost("the connection broke"), NOW))
    with pytest.raises(Lost):
        checked()
    assert checked()[0].primary_key == ("id",)


def test_a_failed_lookup_is_not_repeated_for_every_row() -> None:
    now = Now(StructureUncertain("too far behind"), NOW)
    checked = Checked(None, now)
    for _ in range(3):
        with pytest.raises(UnknownTable, match="too far behind"):
            checked()
    checked.seconds = 31
    assert checked()[0].primary_key == ("id",)
    assert len(now.asked) == 2


def test_the_error_names_both_structures_and_the_way_out() -> None:
    with pytest.raises(SchemaError) as caught:
        Checked("id INT NOT NULL, b VARCHAR(20) CHARSET latin1 NOT NULL", None)()
    assert str(caught.value) == (
        "table d.t differs from its structure in the schema history: column b may be NULL. The row events have (LONG "
        "NOT NULL, VARCHAR(20)), the schema history (id int NOT NULL, b varchar(20) NOT NULL). The table was changed "
        "without an event in the binlog (SET sql_log_bin=0?), or the schema history is incomplete. Restart with "
        "snapshot.mode=recovery if no structure has changed since this position, otherwise once with "
        "snapshot.mode=always for "
        "a new snapshot. Or set inconsistent.schema.handling.mode=warn to skip such rows. With "
        "binlog_row_metadata=FULL on the server, the structure could be taken from the row events"
    )
    with pytest.raises(ColumnCountMismatch, match="2 columns, the schema history has 1"):
        Checked("id INT", None)()


def test_a_full_table_map_is_enough_by_itself() -> None:
    full = TableStructure("d", "t", (MappedColumn(BinlogType.LONG, 0, nullable=False, name="k", unsigned=True),))
    table, texts = Checked("id INT", Now())(full)
    assert [(column.name, column.column_type) for column in table.columns] == [("k", "int unsigned")]
    assert len(texts) == 2


def test_the_server_is_used_where_a_full_table_map_is_not_enough() -> None:
    typed = MappedColumn(BinlogType.TYPED_ARRAY, 0, nullable=False, name="id")
    with pytest.raises(
        SchemaError, match=r"TABLE_MAP cannot replace it: column id has the binlog type 20.*fit either"
    ) as caught:
        Checked("id INT", Now(NOW))(TableStructure("d", "t", (typed,)))
    assert "binlog_row_metadata" not in str(caught.value)


def test_rows_with_longer_values_are_read(caplog: pytest.LogCaptureFixture) -> None:
    longer = MappedColumn(BinlogType.VARCHAR, 20, nullable=True, collation=8)
    checked = Checked("a VARCHAR(10) CHARSET latin1", Now(StructureUncertain("who knows")))
    with caplog.at_level(logging.WARNING):
        table, texts = checked(TableStructure("d", "t", (longer,)))
    assert (table, texts) == (checked.tables.table("d", "t"), [])
    assert "but decodes them correctly (at binlog.000007:400)" in caplog.text
