"""Recorded entries of Canal 1.1.7, and the differences of rowtide's entries from them, each with its reason."""

from __future__ import annotations

import base64
import functools
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rowtide.canal.entries.entry import Entry, EntryHeader
from rowtide.canal.replay import entries
from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from tests.support.connector_properties import CONNECTORS
from tests.support.recordings.golden import Case

FOLDER = Path(__file__).parents[2] / "golden_canal"

Fields = dict[int, Any]
"""The fields of a protobuf message by number; text and bytes as bytes, repeated fields as lists."""


def recordings() -> list[str]:
    """The names of all recordings; those that end in ``.gtid`` were made with ``canal.instance.gtidon``."""
    return sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz"))


def recorded(name: str) -> list[dict[str, Any]]:
    """The lines of a recording."""
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def fields(message: bytes) -> list[tuple[int, int | bytes]]:
    """The fields of a protobuf message, in order."""
    found: list[tuple[int, int | bytes]] = []
    at = 0

    def number() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        tag = number()
        value = number()
        if tag & 7 == 2:
            found.append((tag >> 3, message[at : at + value]))
            at += value
        else:
            found.append((tag >> 3, value))
    return found


NOT_REQUIRED = {
    "bootstrap.servers",
    "database.hostname",
    "database.password",
    "database.server.id",
    "database.user",
    "schema.history.internal.kafka.bootstrap.servers",
    "schema.history.internal.kafka.topic",
}


@functools.cache
def with_gtids(name: str) -> list[Entry]:
    """The entries of a case's binlog files, with ``canal.instance.gtidon``."""
    case = Case(name)
    properties = {"name": name, "connector.class": CONNECTORS[case.description.get("server", "mysql")]}
    config = from_properties({**properties, "topic.prefix": name}, not_required=NOT_REQUIRED)
    return list(entries(case.binlog, pipeline_settings(config, "run"), gtids=True, clock=lambda: 0))


def made(name: str) -> list[Entry]:
    """The entries of a recording."""
    found = with_gtids(name.removesuffix(".gtid"))
    return found if name.endswith(".gtid") else [replace(entry, header=plain(entry.header)) for entry in found]


def plain(header: EntryHeader) -> EntryHeader:
    """The header without GTIDs."""
    return replace(header, gtid="", props=tuple(pair for pair in header.props if pair[0] == "rowsCount"))


_HEADER = {
    1: "version", 2: "logfileName", 3: "logfileOffset", 4: "serverId", 5: "serverenCode", 6: "executeTime",
    7: "sourceType", 8: "schemaName", 9: "tableName", 10: "eventLength", 11: "eventType", 12: "props", 13: "gtid",
}  # fmt: skip
_COLUMN = {1: "index", 2: "sqlType", 3: "name", 4: "isKey", 5: "updated", 6: "isNull", 8: "value", 10: "mysqlType"}
_CHANGE = {1: "tableId", 2: "eventType", 10: "isDdl", 11: "sql", 13: "props", 14: "ddlSchemaName"}


def flattened(entry: bytes) -> dict[str, Any]:
    """All values of an entry by their path, such as ``rows.0.after.2.sqlType``."""
    outer = dict(fields(entry))
    found: dict[str, Any] = {"entryType": outer[2]}
    props = 0
    for number, value in fields(_bytes(outer[1])):
        name = _HEADER[number]
        if name == "props":
            name, props = f"props.{props}", props + 1
        found[f"header.{name}"] = _shown(value)
    row = 0
    for number, value in fields(_bytes(outer[3])):
        if outer[2] == 2 and number == 12:
            for image, column in fields(_bytes(value)):
                values = {_COLUMN[key]: _shown(item) for key, item in fields(_bytes(column))}
                place = f"rows.{row}.{'before' if image == 1 else 'after'}.{values['index']}"
                found |= {f"{place}.{key}": item for key, item in values.items()}
            row += 1
        else:
            name = _CHANGE.get(number, str(number)) if outer[2] == 2 else str(number)
            found[f"content.{name}"] = _shown(value)
    return found


def _bytes(value: int | bytes) -> bytes:
    assert isinstance(value, bytes)
    return value


def _shown(value: int | bytes) -> Any:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value


@dataclass(frozen=True)
class Pair:
    """A recorded entry and rowtide's, of the same event.

    Attributes:
        case: the name of the case.
        line: the recorded line.
        path: of a value that differs.
        want: the recorded value.
        have: rowtide's.
        table: ``database.table`` of the entry.
        asked: whether the reference got the structure of the table from the server or a schema history.
    """

    case: str
    line: dict[str, Any]
    path: str
    want: Any
    have: Any
    table: str
    asked: bool


Rule = Callable[[Pair], bool]

_UNREADABLE = frozenset(
    {
        ("geometry-and-vector", "create table g"),
        ("keys", "create table inv"),
        ("ddl-stream", "create table gen"),
        ("ddl-stream", "alter table gen"),
        ("ddl-stream", "alter table keep drop"),
        ("row-metadata-full-and-query", "create table t"),
        ("source-types-and-comments", "create table w"),
        ("no-backslash-escapes", "create table n"),
        ("no-backslash-escapes", "alter table n"),
        ("mariadb-ddl", "create or replace"),
        ("mariadb-ddl", "create table ver"),
        ("mariadb-ddl", "alter table"),
        ("mariadb-ddl", "set statement"),
        ("mariadb-fails-create-or-replace", "create or replace"),
        ("mariadb-system-versioned", "create table"),
    }
)
"""Statements that Canal's SQL parser cannot read: cases and beginnings."""


_STALE = frozenset({("mariadb-ddl", "md.t"), ("mariadb-ddl", "md.r"), ("mariadb-fails-create-or-replace", "cr.t")})
"""Cases and tables of which Canal has an earlier structure, because it could not read a statement."""


def _replaced_text(pair: Pair) -> bool:
    want = str(pair.want)
    return pair.path.endswith(".value") and ("\ufffd" in want or "\0" in want or "\ufffd" in str(pair.have))


def _mariadb_offset(pair: Pair) -> bool:
    return pair.path == "header.logfileOffset" and pair.case.startswith("mariadb") and pair.want >= 1 << 63


def _unreadable(pair: Pair) -> bool:
    sql = str(pair.line.get("rowChange", {}).get("sql")).lower()
    statement = any(case == pair.case and sql.startswith(begin) for case, begin in _UNREADABLE)
    return statement and pair.path in ("header.schemaName", "header.tableName", "header.eventType", "content.eventType")


def _stale(pair: Pair) -> bool:
    return (pair.case, pair.table) in _STALE and pair.path.startswith("rows.")


def _other_definition(pair: Pair) -> bool:
    return pair.path.endswith(".mysqlType") and pair.asked


def _latin1_database(pair: Pair) -> bool:
    return pair.path == "content.ddlSchemaName" and pair.want.encode("latin-1").decode() == pair.have


def _quoted_column(pair: Pair) -> bool:
    names = {"a``b": "a`b", "q``t": "q`t", "dq": '"dq"'}
    return pair.path.endswith(".name") and names.get(pair.want) == pair.have


def _serial(pair: Pair) -> bool:
    place = pair.path.rpartition(".")[0]
    return pair.case == "numeric-types" and pair.table == "num.ser" and place.endswith(".0")


def _supplementary(pair: Pair) -> bool:
    return pair.path == "header.tableName" and str(pair.want).replace("😀", "?") == pair.have


def _json(pair: Pair) -> bool:
    return (
        pair.path.endswith(".value")
        and pair.case in ("enum-set-json", "json-partial-update")
        and pair.want[:1] in "{[J"
    )


def _address(pair: Pair) -> bool:
    return pair.path.endswith(".value") and pair.case in ("mariadb-fails-inet4", "mariadb-fails-inet6", "mariadb-types")


def _gtids_of_second_file(pair: Pair) -> bool:
    return pair.path == "header.gtid" and pair.line["file"] != "binlog.000001"


def _second_file(pair: Pair) -> bool:
    return pair.path == "header.logfileName" and pair.case.startswith("mariadb")


DIFFERENCES: dict[str, tuple[str, Rule]] = {
    "character sets": (
        "Canal decodes text with the connection's character set; rowtide with that of the column.",
        _replaced_text,
    ),
    "offsets of MariaDB": (
        "MariaDB's row events have no position; Canal computes a negative offset, rowtide the true one.",
        _mariadb_offset,
    ),
    "file of MariaDB": ("Canal keeps the name of the first binlog file.", _second_file),
    "GTIDs of later files": ("The recordings begin with an empty set in each file.", _gtids_of_second_file),
    "statements": (
        "Canal's parser cannot read the statement and reports a QUERY without a table; rowtide names the table.",
        _unreadable,
    ),
    "structure": ("Canal has an earlier structure, because its parser could not read a statement.", _stale),
    "spelling of types": (
        "The recording has the structure from the server or from a schema history; rowtide's is that of the statement.",
        _other_definition,
    ),
    "database of the session": ("Canal decodes its name with ISO-8859-1; rowtide with UTF-8.", _latin1_database),
    "quotes in names of columns": (
        "Canal keeps doubled quotes, and removes quotes of the name itself.",
        _quoted_column,
    ),
    "serial": ("SERIAL is BIGINT UNSIGNED; Canal takes it for signed.", _serial),
    "names beyond the BMP": ("The server stores ? for the character; Canal reads the statement's.", _supplementary),
    "JSON": (
        "Canal writes keys without escapes and opaque values as text, and does not apply partial updates.",
        _json,
    ),
    "addresses": ("Canal has the raw bytes of INET4, INET6 and UUID as text; rowtide the text.", _address),
}
"""The differences: a name, the reason, and the rule by which a differing value belongs to it."""

EXTRA: dict[str, tuple[str, ...]] = {
    "ddl-stream": ("/*!40101 alter table keep", "alter table keep /*!50000"),
    "mariadb-fails-executable-comment": ("/*!50000 alter table", "/*M! alter table"),
    "mariadb-compressed-binlog": ("create table t",),
    "mariadb-types": ("create table n", "create table s", "create table d"),
}
"""Statements of which Canal makes no entry, by case: those in executable comments, and compressed ones of MariaDB."""


def unexplained(pair: Pair) -> bool:
    """Whether no listed difference explains a differing value."""
    return not any(rule(pair) for _, rule in DIFFERENCES.values())


def differing(line: dict[str, Any], ours: bytes, case: str, *, asked: bool) -> Iterator[Pair]:
    """The values that differ between a recorded entry and rowtide's."""
    want, have = flattened(base64.b64decode(line["entry"])), flattened(ours)
    table = f"{have.get('header.schemaName')}.{have.get('header.tableName')}"
    for path in sorted(want.keys() | have.keys()):
        if want.get(path) != have.get(path):
            yield Pair(case, line, path, want.get(path), have.get(path), table, asked)
