"""Exact values: every type with its limits in snapshot, stream, incremental snapshot and engine, and in SELECT."""

from __future__ import annotations

import base64
import datetime as dt
import json
import logging
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

import pytest

import rowtide
from rowtide.connector.errors import SchemaError
from tests.support.connector_properties import address
from tests.support.incremental_stream import BesideStream
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from pathlib import Path

    from rowtide_stack import Database

    from rowtide.connector.records.batch import Output

pytestmark = pytest.mark.servers

EXACT = {"rowtide.values": "exact"}
SESSION = "SET SESSION sql_mode = '', time_zone = '+00:00'"
_MANY = Context(prec=100)
EPOCH = dt.date(1970, 1, 1).toordinal()

BINARY = {"binary", "varbinary", "blob", "long varbinary"}
FLOATING = {"float", "float4", "double", "float8", "real"}
INTEGERS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
DATES = ["'0000-00-00'", "'0001-01-01'", "'0069-12-31'", "'0099-12-31'", "'0100-01-01'", "'2024-00-10'", "'2024-02-00'",
         "'1582-10-10'", "'1970-01-01'", "'9999-12-31'"]  # fmt: skip
TIMES = ["'-838:59:59'", "'-00:00:01'", "'00:00:00'", "'24:00:00'", "'838:59:59'"]
FLOATS = [
    "0",
    "-0.0",
    "0.1",
    "1.1",
    "16777216",
    "16777217",
    "3.4028235e38",
    "1.17549435e-38",
    "-1e-45",
    "123456.7",
    "0.3333333",
]
DOUBLES = [
    "0",
    "0.1",
    "1e300",
    "5e-324",
    "-1.7976931348623157e308",
    "9007199254740993",
    "0.30000000000000004",
    "123456789.123456789",
]
TEXTS = [
    "''",
    "' a '",
    "'NULL'",
    "'null'",
    "'a\\nb\\t\\\\\"''%'",
    "_utf8mb4 0xF09F9880C3A9",
    "'__debezium_unavailable_value'",
]
BYTES = ["''", "0x00", "0x0001FF00", "0xC3A9", "'abc'"]


def integers(name: str) -> dict[str, list[str]]:
    bits = INTEGERS[name]
    half = 2 ** (bits - 1)
    unsigned = half - 1 if bits == 64 else 2 * half - 1  # the type of the schema is Debezium's
    return {
        name: [str(number) for number in (-half, -1, 0, 1, half - 1)],
        f"{name} unsigned": [str(number) for number in (0, half - 1, unsigned)],
        f"{name} zerofill": ["0", "5", str(half - 1)],
    }


COLUMNS: dict[str, list[str]] = {
    **{kind: values for name in INTEGERS for kind, values in integers(name).items()},
    "bool": ["0", "1", "2", "-128", "101", "102", "127"],
    "boolean": ["0", "1", "101"],
    "tinyint(1)": ["0", "1", "2", "-1"],
    "decimal(10,2)": ["0", "-0.01", "99999999.99", "-99999999.99"],
    "decimal(65,30)": ["0." + "0" * 29 + "1", "-" + "9" * 35 + "." + "9" * 30],
    "decimal(5,0) unsigned": ["0", "99999"],
    "numeric(20)": ["18446744073709551615", "-18446744073709551616"],
    "float": FLOATS,
    "float(7,3)": ["0", "9999.999", "0.001"],
    "double": DOUBLES,
    "double(20,4)": ["0.0001", "123456789012.3456"],
    "real": DOUBLES,
    "double precision": DOUBLES,
    "float4": FLOATS,
    "float8": DOUBLES,
    "float(24)": FLOATS,
    "float(53)": DOUBLES,
    "dec(10,2)": ["0", "-99999999.99"],
    "dec": ["0", "-9999999999"],
    "fixed(5,1)": ["9999.9"],
    "int1": ["-128"],
    "int2 unsigned": ["65535"],
    "int3": ["-8388608"],
    "middleint unsigned": ["16777215"],
    "int4 unsigned": ["4294967295"],
    "int8 unsigned": ["9223372036854775807"],
    "integer unsigned": ["4294967295"],
    "nchar(30)": TEXTS,
    "nvarchar(30)": TEXTS,
    "character varying(30)": TEXTS,
    "long varchar": TEXTS,
    "long varbinary": BYTES,
    "bit": ["0", "1"],
    "bit(1)": ["0", "1"],
    "bit(9)": ["0", "256", "511"],
    "bit(64)": ["0", "9223372036854775808", "18446744073709551615"],
    "year": ["0", "'0000'", "1901", "1970", "2155"],
    "date": DATES,
    "datetime": [one[:-1] + " 23:59:59'" for one in DATES],
    "datetime(3)": [one[:-1] + " 00:00:00.001'" for one in DATES],
    "datetime(6)": [one[:-1] + " 12:34:56.123456'" for one in DATES],
    "timestamp null": ["'0000-00-00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'"],
    "timestamp(1) null": ["'1970-01-01 00:00:01.5'", "'2024-02-29 12:00:00'"],
    "timestamp(6) null": ["'1970-01-01 00:00:01.000001'", "'2038-01-19 03:14:07.999999'", "'2024-02-29 12:00:00'"],
    "time": TIMES,
    "time(3)": [one[:-1] + ".000'" for one in TIMES] + ["'-00:00:00.001'", "'10:11:12.999'"],
    "time(6)": [one[:-1] + ".000000'" for one in TIMES] + ["'-10:11:12.123456'", "'00:00:00.000001'"],
    "char(30)": TEXTS,
    "varchar(30)": TEXTS,
    "text": TEXTS,
    "varchar(30) character set latin1": ["'é€ÿ'", "''"],
    "varchar(30) character set utf16": ["'é€😀'"],
    "binary": ["0x00", "'a'"],
    "binary(4)": BYTES,
    "varbinary(10)": BYTES,
    "blob": BYTES,
    "enum('a','b,c','d\\\\\\\\e','ö','')": ["'a'", "'b,c'", "'d\\\\\\\\e'", "'ö'", "''", "'invalid'"],
    "json": ["'{}'", "'[1, -1, 18446744073709551615, 0.1, true, null]'", '\'{"a": {"b": "ö"}}\'', "'null'"],
    "set('x','y','z')": ["''", "'x'", "'x,y,z'", "'invalid'"],
}
"""The values of every type, as SQL; each column holds NULL, too."""
DEFAULTS: dict[str, str] = {
    "int": "7",
    "bigint unsigned": "9223372036854775807",
    "bool": "1",
    "decimal(10,2)": "1.50",
    "double": "2.5",
    "bit(9)": "b'101'",
    "year": "1999",
    "date": "'2020-02-29'",
    "datetime(6)": "CURRENT_TIMESTAMP(6)",
    "timestamp null": "'2020-01-01 00:00:01'",
    "time": "'01:02:03'",
    "varchar(30)": "'dflt'",
    "varbinary(10)": "'dflt'",
    "enum('p','q')": "'p'",
    "set('p','q')": "'p'",
}
"""Nullable columns with a default, whose only value is NULL."""
REQUIRED: dict[str, list[str]] = {
    "date not null": DATES,
    "datetime not null default '2000-01-01'": ["'0000-00-00'", "'2024-00-10 01:00:00'", "'0001-01-01'"],
    "timestamp not null default '2000-01-01 00:00:01'": ["'0000-00-00'", "'1970-01-01 00:00:01'"],
    "bool not null default 1": ["0", "1", "2", "77"],
    "time not null": TIMES,
    "year not null": ["0", "1901"],
}


@dataclass(frozen=True)
class Cell:
    """A column of the table."""

    name: str
    declaration: str
    values: Sequence[str]

    @property
    def base(self) -> str:
        return (re.match(r"long \w+|\w+", self.declaration) or [""])[0]


CELLS = [
    Cell(f"c{number}", declaration, values)
    for number, (declaration, values) in enumerate(
        [
            *((kind, ["NULL", *values]) for kind, values in COLUMNS.items()),
            *((f"{kind} default {default}", ["NULL"]) for kind, default in DEFAULTS.items()),
            *REQUIRED.items(),
        ]
    )
]
ROWS = max(len(cell.values) for cell in CELLS)


def statements(table: str) -> list[str]:
    columns = ", ".join(f"{cell.name} {cell.declaration}" for cell in CELLS)
    rows = (f"({key}, {', '.join(cell.values[key % len(cell.values)] for cell in CELLS)})" for key in range(ROWS))
    return [f"CREATE TABLE {table} (id INT PRIMARY KEY, {columns}) CHARACTER SET utf8mb4", *inserts(table, rows)]


def inserts(table: str, rows: Iterable[str]) -> list[str]:
    return [f"INSERT INTO {table} VALUES {row}" for row in rows]


def selected(database: Database, table: str) -> dict[int, dict[str, Any]]:
    """The values that SELECT returns, by key and column: bytes, numbers, and texts."""

    def query(cell: Cell) -> str:
        if cell.base in FLOATING:
            return f"{cell.name} + 0e0"
        if cell.base in BINARY:
            return f"HEX({cell.name})"
        if cell.base == "bit":
            return f"{cell.name} + 0"
        return f"CONVERT({cell.name} USING utf8mb4)"

    rows = database.query(f"SELECT id, {', '.join(map(query, CELLS))} FROM {table} ORDER BY id")
    return {int(row[0]): dict(zip([cell.name for cell in CELLS], row[1:], strict=True)) for row in rows}


def is_invalid(text: str) -> bool:
    try:
        dt.date.fromisoformat(text[:10])
    except ValueError:
        return True
    return False


def expected(cell: Cell, stored: Any) -> Any:
    """What the record has for a value that SELECT returns."""
    if stored is None:
        return None
    text = stored.decode() if isinstance(stored, bytes) else str(stored)
    match cell.base:
        case base if base.rstrip("12348") in {"int", *INTEGERS, "middleint", "integer", "bool", "boolean", "year"}:
            return int(text)
        case "decimal" | "numeric" | "dec" | "fixed":
            return Decimal(text)
        case "float" | "float4" | "double" | "float8" | "real":
            return float(text)
        case "bit":
            length = int((re.search(r"\d+", cell.declaration) or ["1"])[0])
            return bool(int(text)) if length == 1 else int(text)
        case "binary" | "varbinary" | "blob" | "long varbinary":
            return bytes.fromhex(text)
        case "date" | "datetime" | "timestamp":
            return None if is_invalid(text) else text
        case "json":
            return json.loads(text)
    return text


def moment(micros: int) -> str:
    days, rest = divmod(micros, 86_400_000_000)
    seconds, fraction = divmod(rest, 1_000_000)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{dt.date.fromordinal(EPOCH + days).isoformat()} {clock}.{fraction:06d}"


def clock(micros: int) -> str:
    sign, micros = "-" if micros < 0 else "", abs(micros)
    seconds, fraction = divmod(micros, 1_000_000)
    return f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{fraction:06d}"


def cut(text: str, cell: Cell) -> str:
    """A text with six digits of a fraction, with those of the column."""
    digits = int((re.match(r"\w+\((\d)\)", cell.declaration) or ["", "0"])[1])
    return text[: len(text) - 6 + digits] if digits else text[:-7]


def of_record(cell: Cell, value: Any, scale: int) -> Any:
    """The value of a record, as ``expected`` returns it."""
    if value is None:
        return None
    match cell.base:
        case "decimal" | "numeric" | "dec" | "fixed":
            unscaled = int.from_bytes(base64.b64decode(value), "big", signed=True)
            return Decimal(unscaled).scaleb(-scale, _MANY)
        case "bit" if not isinstance(value, bool):
            return int.from_bytes(base64.b64decode(value), "little")
        case "binary" | "varbinary" | "blob" | "long varbinary":
            return base64.b64decode(value)
        case "date":
            return dt.date.fromordinal(EPOCH + value).isoformat()
        case "datetime":
            return cut(moment(value if "(6)" in cell.declaration else value * 1000), cell)
        case "timestamp":
            return value.replace("T", " ").removesuffix("Z")
        case "time":
            return cut(clock(value), cell)
        case "json":
            return json.loads(value)
        case "float" | "float4" if not re.search(r"[,5]", cell.declaration):
            return struct.unpack("f", struct.pack("f", value))[0]
    return value


def records(outputs: Iterable[Output], table: str, key: str = "id") -> dict[int, dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for message in written(outputs):
        if message.topic.endswith(f".{table}") and message.value is not None:
            after = json.loads(message.value)["after"]
            if after is not None:
                found[after[key]] = after
    return found


def differences(
    server: Mapping[int, Mapping[str, Any]], found: Mapping[int, Mapping[str, Any]], convert: Callable[[Cell, Any], Any]
) -> list[str]:
    assert found.keys() == server.keys()
    return [
        f"{cell.declaration}: SELECT {expected(cell, server[key][cell.name])!r}, "
        f"record {convert(cell, found[key][cell.name])!r} ({found[key][cell.name]!r})"
        for key in server
        for cell in CELLS
        if _differ(expected(cell, server[key][cell.name]), convert(cell, found[key][cell.name]))
    ]


def _differ(one: Any, other: Any) -> bool:
    return one != other or type(one) is not type(other)


def in_records(cell: Cell, value: Any) -> Any:
    scale = re.search(r",(\d+)\)", cell.declaration)
    return of_record(cell, value, int(scale[1]) if scale else 0)


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(f"{request.param}_db")
    return found


def test_snapshot_and_stream(database: Database) -> None:
    database.execute(SESSION, *statements("snap"))
    config = configured(database, EXACT)
    taken = snapshot(config)
    outputs = list(taken.outputs())
    before = selected(database, "snap")
    assert differences(before, records(outputs, "snap"), in_records) == []
    database.execute(SESSION, *statements("made"), "UPDATE snap SET id = id + 100")
    outputs = [
        one
        for step in streamed(config, taken.tables, taken.offset, binlog_end(database.server))
        for one in step.outputs
    ]
    assert differences(selected(database, "made"), records(outputs, "made"), in_records) == []
    found = {key: row for key, row in records(outputs, "snap").items() if key >= 100}
    assert differences(selected(database, "snap"), found, in_records) == []


def test_an_incremental_snapshot(database: Database) -> None:
    database.execute(SESSION, *statements("made"))
    beside = BesideStream(database, EXACT)
    beside.execute(rf"{database.name}\.made")
    beside.run_to_end()
    found = records(beside.outputs, "made")
    beside.close()
    assert differences(selected(database, "made"), found, in_records) == []


def in_changes(cell: Cell, value: Any) -> Any:
    """The value of a change of an engine, as ``expected`` returns it. Invalid dates are texts there."""
    match cell.base:
        case "date" | "datetime" | "timestamp" if isinstance(value, str):
            return None
        case "date" if value is not None:
            return value.isoformat()
        case "datetime" | "timestamp" if value is not None:
            return cut(f"{value:%Y-%m-%d %H:%M:%S.%f}".zfill(26), cell)
        case "time" if value is not None:
            return cut(clock(value // dt.timedelta(microseconds=1)), cell)
        case "json" if value is not None:
            return json.loads(value) if isinstance(value, str) else value
        case "float" | "float4" if value is not None and "53" not in cell.declaration:
            return struct.unpack("f", struct.pack("f", value))[0]
    return value


def test_an_engine(database: Database, tmp_path: Path) -> None:
    database.execute(SESSION, *statements("snap"))
    properties = {
        "topic.prefix": "exact",
        "database.flavor": database.server.name,
        **address(database.server),
        "database.server.id": "184056",
        "database.include.list": database.name,
        "offset.storage.file.filename": str(tmp_path / "offsets"),
        "schema.history.internal.file.filename": str(tmp_path / "history"),
    }
    found: dict[str, dict[int, Any]] = {"snap": {}, "made": {}}
    with rowtide.Engine(properties) as engine:
        while len(found["made"]) < ROWS:
            batch = engine.get(timeout=120)
            assert batch is not None
            for change in batch:
                if change.after is not None:
                    found[change.table][change.after["id"]] = change.after
            batch.ack()
            if len(found["snap"]) == ROWS and not found["made"] and not database.query("SHOW TABLES LIKE 'made'"):
                database.execute(SESSION, *statements("made"))
    for table, rows in found.items():
        assert differences(selected(database, table), rows, in_changes) == []


def streamed_records(database: Database, properties: Mapping[str, str], *sql: str) -> list[Any]:
    """The messages of statements, with keys and values without schemas; ``CREATE TABLE`` stands in the stream."""
    config = configured(database, properties)
    taken = snapshot(config)
    list(taken.outputs())
    database.execute(SESSION, *sql)
    end = binlog_end(database.server)
    outputs = [one for step in streamed(config, taken.tables, taken.offset, end) for one in step.outputs]
    messages = [one for one in written(outputs) if one.topic.startswith(f"live.{database.name}")]
    return [(json.loads(one.key or "null"), json.loads(one.value or "null")) for one in messages]


BOOLS = [
    "CREATE TABLE b (id INT PRIMARY KEY, x BOOL, y BOOLEAN NOT NULL)",
    "INSERT INTO b VALUES (1, 101, -1), (2, 1, 0), (3, NULL, 2)",
]
DEBEZIUM = {"rowtide.values": "debezium"}
CONVERTING = "event.converting.failure.handling.mode"


@pytest.mark.parametrize("mode", ["warn", "skip"])
def test_a_bool_that_a_boolean_cannot_hold(database: Database, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        found = streamed_records(database, DEBEZIUM | {CONVERTING: mode}, *BOOLS)
    assert [value["after"] for _, value in found] == [
        {"id": 1, "x": True, "y": True},
        {"id": 2, "x": True, "y": False},
        {"id": 3, "x": None, "y": True},
    ]
    warned = [line for line in caplog.messages if "cannot be converted" in line]
    assert len(warned) == (3 if mode == "warn" else 0)
    if warned:
        assert f"table {database.name}.b, column x (tinyint(1)): 101 cannot be converted" in warned[0]
        assert "rowtide.bool.handling.mode=int16 keeps the number. Records have true instead" in warned[0]
    named = [line for line in caplog.messages if line.startswith("rowtide.bool.handling.mode")]
    assert len(named) == 1
    assert f" in {database.name}.b.x, {database.name}.b.y. " in named[0]


def test_a_bool_stops_the_connector_where_failures_do(database: Database) -> None:
    with pytest.raises(
        SchemaError, match=r"column x \(tinyint\(1\)\): 101 cannot .*int16 keeps the number.*\(at .*:\d+"
    ):
        streamed_records(database, DEBEZIUM | {CONVERTING: "fail"}, *BOOLS)


@pytest.mark.parametrize("key", ["PRIMARY KEY (x)", "UNIQUE (x)"])
@pytest.mark.parametrize("mode", ["fail", "warn", "skip"])
def test_a_bool_in_a_key_stops_the_connector(database: Database, key: str, mode: str) -> None:
    create = f"CREATE TABLE b (x BOOL NOT NULL, n INT, {key})"
    properties = DEBEZIUM | {CONVERTING: mode}
    found = streamed_records(database, properties, create, "INSERT INTO b VALUES (0, 1), (1, 2)")
    assert [key for key, _ in found] == [{"x": False}, {"x": True}]
    with pytest.raises(
        SchemaError, match=r"column x .*: 101 cannot .*int16 keeps the number\. The column is part of the"
    ):
        streamed_records(
            database,
            properties,
            "INSERT INTO b VALUES (101, 3)",
            "DROP TABLE b",
            create,
            "INSERT INTO b VALUES (101, 3), (102, 4)",
        )
    found = streamed_records(
        database,
        properties | {"rowtide.bool.handling.mode": "int16"},
        "DROP TABLE b",
        create,
        "INSERT INTO b VALUES (101, 3), (102, 4)",
    )
    assert [key for key, _ in found] == [{"x": 101}, {"x": 102}]


LARGE = [
    "CREATE TABLE u (id BIGINT UNSIGNED PRIMARY KEY, n BIGINT UNSIGNED NULL DEFAULT 5)",
    "INSERT INTO u VALUES (1, 9223372036854775808)",
]


@pytest.mark.parametrize(
    ("mode", "written_as"),
    [("precise", "AIAAAAAAAAAA"), ("string", "9223372036854775808"), ("long", -(2**63))],
)
def test_a_large_number_obeys_the_mode(database: Database, mode: str, written_as: object) -> None:
    (found,) = streamed_records(database, EXACT | {"bigint.unsigned.handling.mode": mode}, *LARGE)
    assert found[1]["after"]["n"] == written_as


def test_a_large_number_stops_the_connector(database: Database) -> None:
    message = (
        rf"table {database.name}\.u, column n \(bigint.* unsigned\): 9223372036854775808 cannot be converted: .*"
        r"precise \(a decimal\) or string keeps it\. .*=warn publishes null or a default instead.* \(at .*\d\)"
    )
    with pytest.raises(SchemaError, match=message):
        streamed_records(database, EXACT, *LARGE)
    with pytest.raises(SchemaError, match=r"u, column n .*: 9223372036854775808 cannot be converted"):
        list(snapshot(configured(database, EXACT)).outputs())
    taken = snapshot(configured(database, EXACT | {CONVERTING: "warn"}))
    assert records(taken.outputs(), "u", "id")[1]["n"] is None
    database.execute("UPDATE u SET id = 18446744073709551615, n = 1")
    with pytest.raises(SchemaError, match=r"column id .*: 18446744073709551615 .*The column is part of the key"):
        list(snapshot(configured(database, EXACT | {CONVERTING: "skip"})).outputs())


def test_keys_of_snapshot_and_stream_are_equal(database: Database) -> None:
    create = (
        "CREATE TABLE {} (d DATE NOT NULL, ts TIMESTAMP(3) NOT NULL DEFAULT '2000-01-01', e ENUM('a,b','c') NOT NULL, "
        "x BOOL NOT NULL, y YEAR NOT NULL, n INT DEFAULT 7, r REAL NOT NULL, PRIMARY KEY (d, ts, e, x, y, r))"
    )
    rows = (
        "INSERT INTO {} VALUES ('0000-00-00', '2024-01-01 00:00:00.1', 'a,b', 101, 0, NULL, 1e300), "
        "('0001-01-01', '2024-01-01', 'c', 1, 1901, 7, 0.1)"
    )
    database.execute(SESSION, create.format("a"), rows.format("a"))
    own_key = EXACT | {"message.key.columns": rf"{database.name}\.(.):n"}
    for properties in (EXACT, own_key):
        config = configured(database, properties)
        read = [one for one in written(snapshot(config).outputs()) if one.topic.endswith(".a")]
        found = streamed_records(database, properties, "DROP TABLE IF EXISTS b", create.format("b"), rows.format("b"))
        assert [(json.loads(one.key or ""), json.loads(one.value or "")["after"]) for one in read] == [
            (key, value["after"]) for key, value in found if value["op"] != "t"
        ]
    assert [key["n"] for key, value in found if value["op"] != "t"] == [None, 7]


def test_debeziums_values_have_one_form_by_choice(database: Database) -> None:
    create = (
        "CREATE TABLE {} (id INT PRIMARY KEY, f FLOAT, ts TIMESTAMP(3) NULL, e ENUM('a,b','c'), j JSON, b BINARY, "
        "n INT DEFAULT 7)"
    )
    rows = """INSERT INTO {} VALUES
        (1, 16777216, '2024-01-01 00:00:00.1', 'a,b', '{{"b": 1.0, "a": [1e30, 2]}}', 0x00, NULL),
        (2, 0.1, '2024-01-01', 'c', 'null', 'x', 1)"""
    database.execute(SESSION, create.format("a"), rows.format("a"))
    for canonical in ("true", "false"):
        properties = DEBEZIUM | {"rowtide.canonical.values": canonical}
        read = records(snapshot(configured(database, properties)).outputs(), "a", "id")
        found = streamed_records(database, properties, "DROP TABLE IF EXISTS b", create.format("b"), rows.format("b"))
        streamed_rows = [value["after"] for _, value in found if value["op"] == "c"]
        assert (list(read.values()) == streamed_rows) is (canonical == "true")
        assert streamed_rows[0]["n"] == 7, "what else Debezium changes stays"
    assert (read[1]["f"], streamed_rows[0]["f"]) == (16777200.0, 16777216.0)


def test_partial_dates_do_not_share_a_key(database: Database) -> None:
    create = "CREATE TABLE {} (d DATE PRIMARY KEY)"
    database.execute(SESSION, create.format("a"), "INSERT INTO a VALUES ('0000-00-00'), ('2024-00-10')")
    wrong = r"column d \(date\): .* cannot be converted.* The column is part of the key"
    with pytest.raises(SchemaError, match=wrong):
        list(snapshot(configured(database, EXACT)).outputs())
    database.execute("DROP TABLE a")
    with pytest.raises(SchemaError, match=wrong):
        streamed_records(database, EXACT, create.format("b"), "INSERT INTO b VALUES ('0000-00-00'), ('2024-02-00')")


@pytest.mark.parametrize("exact", [True, False])
def test_truncate_has_a_record_with_exact_values(database: Database, exact: bool) -> None:
    properties = EXACT if exact else DEBEZIUM
    found = streamed_records(database, properties, "CREATE TABLE t (id INT PRIMARY KEY)", "TRUNCATE t")
    assert [value["op"] for _, value in found] == ["t"] * exact


@pytest.mark.parametrize(
    ("statements", "emptied"),
    [
        (("DROP TABLE a",), "a"),
        (("DROP TABLE a, b",), "ab"),
        (("DROP TABLE a", "CREATE TABLE a (id INT PRIMARY KEY, n INT)", "INSERT INTO a VALUES (1, 2)"), "a"),
        (("RENAME TABLE a TO c",), "a"),
        (("ALTER TABLE a RENAME TO c",), "a"),
        (("RENAME TABLE a TO c, b TO a",), "ab"),
        (("CREATE TABLE _a_new LIKE a", "RENAME TABLE a TO _a_old, _a_new TO a"), ""),
        (("CREATE TEMPORARY TABLE a (id INT)", "DROP TEMPORARY TABLE a"), ""),
        (("ALTER TABLE a ADD n INT", "TRUNCATE b"), "b"),
    ],
)
def test_rows_of_dropped_and_renamed_tables_are_gone(
    database: Database, statements: tuple[str, ...], emptied: str
) -> None:
    """Tables that are built from the topics would keep them."""
    create = [f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in "ab"]
    if "CREATE TABLE _a_new" in statements[0]:
        create.append("INSERT INTO a VALUES (1)")
    found = streamed_records(database, EXACT, *create, *statements)
    gone = [value["source"]["table"] for _, value in found if value["op"] == "t"]
    assert "".join(sorted({name for names in gone for name in names.split(",")} - {"c"})) == emptied
    database.execute("DROP TABLE IF EXISTS a, b, c, _a_old, _a_new")
    assert "t" not in [value["op"] for _, value in streamed_records(database, DEBEZIUM, *create, *statements[:1])]


def test_rows_of_a_dropped_database_are_gone(database: Database) -> None:
    other = f"{database.name}_x"
    properties = EXACT | {"database.include.list": f"{database.name},{other}"}
    create = (f"CREATE DATABASE {other}", f"CREATE TABLE {other}.a (id INT PRIMARY KEY)")
    found = streamed_records(database, properties, *create, f"/* all of it */ DROP DATABASE {other}")
    assert [(value["op"], value["source"]["db"], value["source"]["table"]) for _, value in found] == [("t", other, "a")]


def test_nulls_pass_through_transforms(database: Database) -> None:
    properties = EXACT | {
        "include.schema.changes": "false",
        "transforms": "unwrap,key",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.key.fields": "n",
    }
    config = configured(database, properties)
    database.execute("CREATE TABLE t (id INT PRIMARY KEY, n INT DEFAULT 7)", "INSERT INTO t VALUES (1, NULL)")
    ((key, value),) = [(one.key, one.value) for one in written(snapshot(config).outputs()) if one.topic.endswith(".t")]
    assert (json.loads(key or ""), json.loads(value or "")) == ({"n": None}, {"id": 1, "n": None})
