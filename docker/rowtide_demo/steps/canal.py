"""The steps of ``docker/demo --canal``: ``rowtide canal`` sends messages to Kafka, from which tables are made."""

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition
from rowtide_stack import Kafka, MySQL

from rowtide_demo.connector_properties import canal_files
from rowtide_demo.errors import DemoError
from rowtide_demo.runtime.child_process import ChildProcess
from rowtide_demo.shop.schema import DATABASE, TABLES
from rowtide_demo.shop.workload import Workload
from rowtide_demo.steps.context import Context
from rowtide_demo.steps.preparation import UTC
from rowtide_demo.steps.streaming import run_workload

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor

__all__ = ["FlatTables", "change_with_canal", "load_with_canal", "prove_with_canal"]

Row = dict[str, str | None]
_QUIET = 1.0  # seconds without messages after which all have come


class FlatTables:
    """Tables made from FlatMessages, as in a program of Canal's users.

    Attributes:
        tables: the rows of each table by their primary key.
        messages: the number of messages.
        rows: the number of rows in them.
    """

    def __init__(self, kafka: Kafka) -> None:
        self.tables: dict[str, dict[tuple[str | None, ...], Row]] = {table: {} for table in TABLES}
        self.messages = self.rows = 0
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": "demo",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": "read_committed",
            }
        )
        self._topics: set[str] = set()
        self._last = time.monotonic()

    def close(self) -> None:
        """End the consumer."""
        self._consumer.close()

    def read(self) -> int:
        """Apply the available messages, and return the number of rows so far."""
        if len(self._topics) < len(TABLES):
            self._find_topics()
        for record in self._consumer.consume(1000, 0.1):
            if record.error() is None:
                self._apply(json.loads(record.value() or b""))
                self._last = time.monotonic()
        return self.rows

    def _find_topics(self) -> None:
        """Read new topics, each from its beginning. Without partitionHash, they have one partition."""
        names = {name for name in self._consumer.list_topics(timeout=10).topics if name.startswith(f"{DATABASE}_")}
        for name in names - self._topics:
            self._consumer.incremental_assign([TopicPartition(name, 0, 0)])
        self._topics = names

    @property
    def quiet(self) -> bool:
        """Whether no message has arrived for a while."""
        return time.monotonic() - self._last > _QUIET

    def _apply(self, message: Mapping[str, Any]) -> None:
        self.messages += 1
        table = self.tables[message["table"]]
        if message["isDdl"]:  # the only statement while messages are sent adds a column
            for row in table.values():
                row.setdefault("points", "100")
            return
        for place, row in enumerate(message["data"]):
            self.rows += 1
            key = message["pkNames"]
            if message["type"] != "INSERT":
                before = row | message["old"][place] if message["type"] == "UPDATE" else row
                del table[tuple(before[name] for name in key)]
            if message["type"] != "DELETE":
                table[tuple(row[name] for name in key)] = row


def load_with_canal(context: Context, mysql: MySQL, kafka: Kafka) -> tuple[ChildProcess, FlatTables]:
    """Start ``rowtide canal`` and wait until the initial load is in Kafka."""
    folder = context.folder / "conf"
    for path, text in canal_files(mysql, kafka).items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    total = context.sizes.total
    with context.screen.step("initial load") as step:
        canal = context.start("rowtide canal", [context.rowtide, "canal", folder])
        found = context.stack.enter_context(closing(FlatTables(kafka)))

        def reached() -> bool:
            step.update(f"{found.read():,} rows", found.rows, total)
            return found.rows >= total

        context.until(reached, lambda: found.rows, canal)
        step.result = f"{found.rows:,} rows in {found.messages:,} FlatMessages"
    return canal, found


def change_with_canal(context: Context, mysql: MySQL, canal: ChildProcess, found: FlatTables) -> None:
    """Change the tables, and wait until each change is in Kafka."""
    loaded = found.rows
    with context.screen.step("changes") as step, mysql.connect(init_command=UTC, autocommit=False) as connection:
        workload = Workload(connection, context.sizes)
        run_workload(context, workload, canal, step, lambda: f"{workload.rows:,} rows changed")

        def reached() -> bool:
            step.update(f"{found.read() - loaded:,} of {workload.rows:,} changed rows in Kafka")
            return found.rows - loaded >= workload.rows and found.quiet

        context.until(reached, lambda: found.rows, canal)
        if loaded != context.sizes.total or found.rows - loaded != workload.rows:
            raise DemoError(f"{workload.rows} rows were changed, but the messages have {found.rows - loaded}")
        step.result = f"{workload.rows:,} rows in {workload.transactions:,} transactions"


def prove_with_canal(context: Context, mysql: MySQL, found: FlatTables) -> None:
    """Compare every value of every table with MySQL.

    Raises:
        DemoError: a table differs.
    """
    count = 0
    with context.screen.step("proof") as step, mysql.connect(init_command=UTC) as connection:
        structure = _columns(connection)
        for table, rows in found.tables.items():
            step.update(table)
            with connection.cursor() as cursor:
                cursor.execute(f"SELECT {_selected(structure, table)} FROM {DATABASE}.{table}")
                names = [column.name for column in structure[table]]
                keys = [place for place, column in enumerate(structure[table]) if column.key]
                selected: dict[tuple[str | None, ...], Sequence[Any]] = {
                    tuple(str(row[place]) for place in keys): row for row in cursor.fetchall()
                }
            if selected.keys() != rows.keys():
                raise DemoError(f"table {table}: MySQL has different rows from the messages")
            for key, row in rows.items():
                for column, value in zip(structure[table], selected[key], strict=True):
                    if not _equal(column.type, row[column.name], value):
                        raise DemoError(
                            f"table {table}, row {key}: {column.name} is {value!r}, not {row[column.name]!r}"
                        )
            count += len(rows) * len(names)
        step.result = f"all {count:,} values are those of MySQL"


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its name, its ``DATA_TYPE`` in information_schema, and whether it is part of the primary key."""

    name: str
    type: str
    key: bool


Structure = dict[str, list[Column]]
"""The columns of each table, in order."""


def _columns(connection: "Connection[Cursor]") -> Structure:
    found: Structure = {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, column_name, data_type, column_key FROM information_schema.columns "
            "WHERE table_schema = %s ORDER BY table_name, ordinal_position",
            (DATABASE,),
        )
        for table, name, data_type, key in cursor.fetchall():
            found.setdefault(table, []).append(Column(name, data_type, key == "PRI"))
    return found


_NUMBERS = {"enum", "set", "bit"}
_TEXTS = {"date", "datetime", "timestamp", "time"}


def _selected(structure: Structure, table: str) -> str:
    """Return the columns in the form in which Canal writes them."""
    return ", ".join(
        f"`{column.name}` + 0"
        if column.type in _NUMBERS
        else f"CAST(`{column.name}` AS CHAR)"
        if column.type in _TEXTS
        else f"`{column.name}`"
        for column in structure[table]
    )


def _equal(kind: str, text: str | None, value: Any) -> bool:
    if text is None or value is None:
        return text is value
    if kind in ("decimal", "double"):
        return Decimal(text) == Decimal(value) if kind == "decimal" else float(text) == value
    if kind == "json":
        return bool(json.loads(text) == json.loads(value))
    if isinstance(value, bytes):
        return text.encode("latin-1") == (value.rstrip(b"\0") if kind == "binary" else value)
    return text == str(int(value) if kind in _NUMBERS else value)
