"""Rows without unchanged columns (binlog_row_image=MINIMAL), if they are allowed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.errors import ProtocolError
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

ALLOWED = {"binlog.row.image.minimal.allowed": "true", "unavailable.value.placeholder": "?"}
Change = tuple[str, int, list[Any] | None, list[Any] | None]


def changes(database: Database, more: dict[str, str], *statements: str) -> tuple[list[Change], list[dict[str, Any]]]:
    """Operation, key, before and after of each change that statements make, and the fields of the row schema."""
    config = configured(database, {**more, "value.converter.schemas.enable": "true"})
    taken = snapshot(config)
    list(taken.outputs())
    database.execute("SET SESSION binlog_row_image = 'MINIMAL', sql_mode = ''", *statements)
    found: list[Change] = []
    fields: list[dict[str, Any]] = []
    for step in streamed(config, taken.tables, taken.offset, binlog_end(database.server)):
        for message in written(step.outputs):
            if message.value is None or '"op":' not in message.value:
                continue
            value = json.loads(message.value)
            fields = value["schema"]["fields"][0]["fields"]
            before, after = (value["payload"][side] for side in ("before", "after"))
            key = json.loads(message.key or '{"id":0}')["id"]
            rows = [None if row is None else list(row.values()) for row in (before, after)]
            found.append((value["payload"]["op"], key, rows[0], rows[1]))
    return found, fields


TABLE = (
    "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL DEFAULT 7, v VARCHAR(9) NOT NULL DEFAULT 'dv', "
    "tx TEXT, d DATE, ts TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, b VARBINARY(3) DEFAULT NULL)"
)
ROW = "2024-01-02', '2024-01-02', 'abc"


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_absent_columns_of_minimal_images(flavor: str, request: pytest.FixtureRequest) -> None:
    database: Database = request.getfixturevalue(f"{flavor}_db")
    rows = f"(1, 5, 'one', 'text', '{ROW}'), (2, 6, 'two', '', '{ROW}')"
    database.execute(TABLE, f"INSERT INTO t VALUES {rows}")
    found, fields = changes(
        database,
        ALLOWED,
        "INSERT INTO t (id, tx) VALUES (3, 'new')",
        "UPDATE t SET n = 8, tx = NULL WHERE id = 1",
        "UPDATE t SET id = 20, v = 'moved' WHERE id = 2",
        "DELETE FROM t WHERE id = 1",
    )
    question = "Pw=="
    lacking = [None, "?", "?", None, None, question]
    inserted, updated, moved_from, moved_to, deleted = found
    assert inserted[:3] == ("c", 3, None)
    assert inserted[3] is not None
    assert inserted[3][:5] == [3, 7, "dv", "new", None], "defaults that are values, and null"
    assert inserted[3][6] is None
    assert updated == ("u", 1, [1, *lacking], [1, 8, "?", None, None, None, question]), "the key from the row before"
    assert moved_from == ("d", 2, [2, *lacking], None)
    assert moved_to == ("c", 20, None, [20, None, "moved", "?", None, None, question])
    assert deleted == ("d", 1, [1, *lacking], None)
    assert [(field["field"], field["optional"], "default" in field) for field in fields] == [
        ("id", False, False), *((name, True, False) for name in ("n", "v", "tx", "d", "ts", "b")),
    ]  # fmt: skip


def test_without_a_key_the_before_image_is_complete(mysql_db: Database) -> None:
    mysql_db.execute(
        "CREATE TABLE t (a INT NOT NULL, v VARCHAR(9) NOT NULL, tx TEXT)", "INSERT INTO t VALUES (1, 'one', 'text')"
    )
    found, _ = changes(mysql_db, ALLOWED, "UPDATE t SET a = 2", "DELETE FROM t")
    assert found == [("u", 0, [1, "one", "text"], [2, "one", "text"]), ("d", 0, [2, "one", "text"], None)]


def test_a_masked_default_stays_masked(mysql_db: Database) -> None:
    mysql_db.execute(TABLE)
    more = ALLOWED | {"column.mask.with.3.chars": rf"{mysql_db.name}\.t\.v"}
    found, _ = changes(mysql_db, more, "INSERT INTO t (id) VALUES (1)")
    assert found[0][3] is not None
    assert found[0][3][2] == "***"


def test_minimal_images_stop_the_stream_unless_allowed(mysql_db: Database) -> None:
    mysql_db.execute(TABLE)
    with pytest.raises(ProtocolError, match=r"lacks the columns n, v, .*binlog\.row\.image\.minimal\.allowed=true"):
        changes(mysql_db, {}, "INSERT INTO t (id) VALUES (1)")


def test_a_key_must_be_in_the_image(mysql_db: Database) -> None:
    mysql_db.execute(TABLE, f"INSERT INTO t VALUES (1, 5, 'one', 'text', '{ROW}')")
    more = ALLOWED | {"message.key.columns": rf"{mysql_db.name}\.t:n"}
    with pytest.raises(ProtocolError, match=r"lacks n, which is part of the key"):
        changes(mysql_db, more, "UPDATE t SET v = 'x'")


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
@pytest.mark.parametrize("image", ["NOBLOB", "MINIMAL"])
def test_a_row_whose_image_has_no_columns_is_a_row(flavor: str, image: str, request: pytest.FixtureRequest) -> None:
    """MySQL writes no bytes for it, and refuses a statement that would write two such rows into one event."""
    database: Database = request.getfixturevalue(f"{flavor}_db")
    database.execute("CREATE TABLE t (a TEXT, b BLOB)")
    more = ALLOWED if image == "MINIMAL" else {"unavailable.value.placeholder": "?"}
    found, _ = changes(
        database,
        more,
        f"SET SESSION binlog_row_image = '{image}'",
        "INSERT INTO t () VALUES ()",
        "INSERT INTO t (a) VALUES ('x')",
        "INSERT INTO t () VALUES ()",
    )
    assert [operation for operation, *_ in found] == ["c", "c", "c"]
    assert "x" in (found[1][3] or [])
