"""Keys and values follow the settings of their own converters, for every column type."""

import itertools

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.configurations import PROPERTIES

CELLS = {
    "tinyint": b"7",
    "int unsigned not null default 4": b"4000000000",
    "int(8) zerofill": b"00000007",
    "bigint unsigned": b"18446744073709551615",
    "decimal(5,2) default 1.5": b"-1.50",
    "float": b"1.5",
    "year": b"2024",
    "date": b"2024-02-29",
    "datetime(3)": b"2024-02-29 10:11:12.345",
    "timestamp null": b"2024-02-29 10:11:12",
    "time": b"-10:11:12",
    "char(5)": b"text",
    "enum('a','b') default 'b'": b"b",
    "set('a','b')": b"a,b",
    "varbinary(3)": b"\x00\xff",
    "bit(9)": b"\x01\x02",
    "json": b'{"a": 1}',
}
MODES = (
    {"decimal.handling.mode": "precise", "bigint.unsigned.handling.mode": "precise"},
    {"decimal.handling.mode": "string", "bigint.unsigned.handling.mode": "long"},
)


def table(kinds: list[str]) -> Table:
    tables = Tables(Server(Flavor.MYSQL))
    columns = ", ".join(f"c{place} {kind}" for place, kind in enumerate(kinds))
    for statement in ("create database d", f"create table t ({columns})"):
        tables.apply(QueryEvent(statement, database="d"))
    return tables.table("d", "t")


def read(properties: dict[str, str], cells: dict[str, bytes | None], names: list[str]) -> tuple[str, str]:
    given = PROPERTIES | {"message.key.columns": f"d.t:{','.join(names)}"} | properties
    settings = pipeline_settings(from_properties(given), "run")
    payload = b"".join(b"\xfb" if cell is None else bytes([len(cell)]) + cell for cell in cells.values())
    reader = SnapshotTable(table(list(cells)), settings).reader(names)
    packet = len(payload).to_bytes(3, "little") + b"\0" + payload
    assert reader.rows(packet) == ([reader.row(payload)], len(packet))
    return reader.row(payload)


JSON = "org.apache.kafka.connect.json.JsonConverter"
FORMS: tuple[dict[str, str], ...] = (
    {"replace.null.with.default": "true"},
    {"decimal.format": "NUMERIC", "replace.null.with.default": "false"},
)


def converters(key: dict[str, str], value: dict[str, str]) -> dict[str, str]:
    return {
        f"{which}.converter{name}": text
        for which, options in (("key", key), ("value", value))
        for name, text in {"": JSON, **{f".{option}": text for option, text in options.items()}}.items()
    }


@pytest.mark.parametrize("modes", MODES)
@pytest.mark.parametrize("nulls", [False, True])
def test_key_and_value_follow_their_own_converters(modes: dict[str, str], *, nulls: bool) -> None:
    cells = {kind: None if nulls and "not null" not in kind else cell for kind, cell in CELLS.items()}
    names = [f"c{place}" for place in range(len(cells))]
    same = [read({**modes, **converters(form, form)}, cells, names) for form in FORMS]
    for one, other in itertools.product(range(len(FORMS)), repeat=2):
        mixed = read({**modes, **converters(FORMS[one], FORMS[other])}, cells, names)
        assert mixed == (same[one][0], same[other][1])
    assert same[0] != same[1] or "string" in modes.values()
