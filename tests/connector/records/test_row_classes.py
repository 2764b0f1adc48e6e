"""The module with a class for each table: it can be imported, whatever the names, and is typed."""

from __future__ import annotations

import dataclasses
import datetime as dt
import subprocess
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import rowtide
from rowtide.connector.records.row_classes import classes_module
from rowtide.connector.records.typed_rows import typed_row
from rowtide.envelope.table import RecordRules, TableSchema, build_table_schema
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server

ALL_TYPES = (
    "CREATE TABLE shop.items (id BIGINT UNSIGNED AUTO_INCREMENT PRIMARY KEY COMMENT 'The \"number\"', f FLOAT,"
    " price DECIMAL(10,2) NOT NULL, day DATE NOT NULL, at DATETIME(6), seen TIMESTAMP NULL, took TIME, y YEAR,"
    " flag BIT, bits BIT(9), kind ENUM('a','b') NOT NULL, tags SET('x','y'), doc JSON, place POINT, pic BLOB,"
    " name TEXT, v VECTOR(3), twice INT AS (id * 2)) COMMENT 'What is sold \\\\ here\"'"
)
ODD_COLUMNS = [
    "class", "1st", "a b", "a_b", "int", "plain", "json", "model_name", "_own", "__own", "ﬁ", "表", '"""', "model_",
    "model_3d", "model__x", "model_model_y", "register", "mro",
]  # fmt: skip
ODD_NAMES = (
    f"CREATE TABLE shop.`class` ({', '.join(f'`{name}` INT' for name in ODD_COLUMNS)}, dt DATE)",
    "CREATE TABLE shop.orders (id INT)",
    "CREATE TABLE crm.orders (id INT)",
    "CREATE TABLE crm.`2nd-hand` (id INT)",
    "CREATE TABLE crm.`tables` (id INT)",
)


def schemas(*statements: str) -> list[TableSchema]:
    tables = Tables(Server(Flavor.MYSQL))
    for database in ("shop", "crm"):
        tables.apply(QueryEvent(f"CREATE DATABASE {database} CHARACTER SET utf8mb4"))
    for statement in statements:
        tables.apply(QueryEvent(statement, "shop"))
    found = [tables.table(name.database, name.table) for name in sorted(tables.names(), key=str)]
    return [
        build_table_schema(table, str(table.id), RecordRules(), "snapshot", lambda *_: None) for table in found if table
    ]


def module(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "made"}
    exec(compile(text, "made", "exec", dont_inherit=True), names)
    return names


@pytest.mark.parametrize("pydantic", [False, True])
def test_every_type_has_its_class(*, pydantic: bool) -> None:
    items = module(classes_module(schemas(ALL_TYPES), "shop", pydantic=pydantic))["Items"]
    hints = get_type_hints(items)
    hints.pop("model_config", None)
    hints = {name: hint for name, hint in hints.items() if not name.startswith("_") and "ClassVar" not in str(hint)}
    assert hints == {
        "id": int, "f": float | None, "price": Decimal, "day": dt.date, "at": dt.datetime | None,
        "seen": dt.datetime | None, "took": dt.timedelta | None, "y": int | None, "flag": bool | None,
        "bits": int | None, "kind": str, "tags": str | None, "doc": Any, "place": rowtide.Geometry | None,
        "pic": bytes | None, "name": str | None, "v": list[float] | None, "twice": int | None,
    }  # fmt: skip
    row = dict.fromkeys(hints) | {"id": 1, "price": Decimal("1.50"), "day": dt.date(2026, 1, 2), "kind": "a"}
    row["place"] = rowtide.Geometry(b"\1", 0)
    made = typed_row(items, row, "shop.items")
    assert (made.price, made.place, made.doc) == (Decimal("1.50"), (b"\1", 0), None)
    assert items.__doc__ == "A row of shop.items: What is sold \\ here'.\n\n    Key: id.\n    "


def test_columns_have_their_types_and_comments() -> None:
    text = classes_module(schemas(ALL_TYPES), "shop", pydantic=False)
    assert '    id: int\n    """bigint unsigned, AUTO_INCREMENT, The "number\'."""' in text
    assert '    kind: str\n    """enum(\'a\',\'b\')."""' in text
    assert '    twice: int | None\n    """int, generated."""' in text


@pytest.mark.parametrize("pydantic", [False, True])
@pytest.mark.filterwarnings("error")
def test_every_name_becomes_one_of_python(*, pydantic: bool) -> None:
    made = module(classes_module(schemas(*ODD_NAMES), "shop", pydantic=pydantic))
    assert list(made["TABLES"]) == ["crm.2nd-hand", "crm.orders", "crm.tables", "shop.class", "shop.orders"]
    assert [cls.__name__ for cls in made["TABLES"].values()] == [
        "Table2ndHand", "CrmOrders", "Tables", "Class", "ShopOrders",
    ]  # fmt: skip
    odd = made["Class"]
    names = list(odd.model_fields) if pydantic else [field.name for field in dataclasses.fields(odd)]
    assert len(set(names)) == len(ODD_COLUMNS) + 1
    row = {name: number for number, name in enumerate(ODD_COLUMNS)} | {"dt": None}
    values = typed_row(odd, row, "shop.class")
    assert [getattr(values, name) for name in names if name != "dt_"] == list(range(len(ODD_COLUMNS)))
    assert names[:8] == ["class_", "column_1st", "a_b", "a_b_2", "int_", "plain", "json_" if pydantic else "json",
                         "name_" if pydantic else "model_name"]  # fmt: skip


@pytest.mark.parametrize("sign", ["\u200b", "\x7f", "\ufeff"])
def test_a_comment_stays_in_its_docstring(sign: str) -> None:
    """Signs that are not printed are omitted, which may join quotes."""
    comment = f'""{sign}"; raise SystemExit; ""{sign}" \\\\{sign}'
    made = module(classes_module(schemas(f"CREATE TABLE shop.t (id INT COMMENT '{comment}')"), "shop", pydantic=False))
    assert set(made["TABLES"]) == {"shop.t"}


def test_type_checkers_accept_the_modules(tmp_path: Path) -> None:
    for pydantic in (False, True):
        text = classes_module(schemas(ALL_TYPES, *ODD_NAMES), "shop", pydantic=pydantic)
        (tmp_path / f"made_{pydantic}.py").write_text(text)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(tmp_path)]
    said = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert said.returncode == 0, said.stdout


def test_a_module_without_tables_is_one(tmp_path: Path) -> None:
    assert module(classes_module([], "shop", pydantic=False))["TABLES"] == {}
