"""Tables that the schema history lacks give captured ones a structure (``store.only.captured.tables.ddl=true``)."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import rowtide
from tests.support.connector_properties import connector_properties

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rowtide_stack import Database

pytestmark = pytest.mark.servers

SOON = 180.0
OTHER = "(id INT PRIMARY KEY, e ENUM('b', 'a'))"


@contextlib.contextmanager
def capturing(database: Database, folder: Path) -> Iterator[rowtide.Engine]:
    """An engine that captures the tables whose names begin with t."""
    properties = connector_properties(
        "e",
        database.server,
        database.name,
        {
            "schema.history.internal.file.filename": str(folder / "history"),
            "schema.history.internal.store.only.captured.tables.ddl": "true",
            "offset.storage.file.filename": str(folder / "offsets"),
            "table.include.list": rf"{database.name}\.t.*",
            "incremental.snapshot.chunk.size": "2",
        },
    )
    with rowtide.Engine(properties) as engine:
        yield engine


def take(engine: rowtide.Engine, number: int) -> rowtide.Change:
    """Take and acknowledge changes up to that of the row with this number."""
    while True:
        batch = engine.get(1, timeout=SOON)
        assert batch is not None
        assert batch.ack()
        for change in batch:
            if change.after is not None and change.after["id"] == number:
                return change


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (["RENAME TABLE t TO y, x TO t"], []),
        (["RENAME TABLE t TO y"], ["RENAME TABLE x TO t"]),
        (["RENAME TABLE t TO y"], ["ALTER TABLE x RENAME t"]),
        (["ALTER TABLE t RENAME y"], [f"CREATE TABLE IF NOT EXISTS t {OTHER}"]),
        ([], ["RENAME TABLE t TO y, x TO t"]),
    ],
)
def test_rows_have_the_structure_of_the_new_table_after_a_restart(
    mysql_db: Database, tmp_path: Path, before: list[str], after: list[str]
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a', 'b'))", "INSERT INTO t VALUES (1, 'a')")
    mysql_db.execute("CREATE TABLE tick (id INT PRIMARY KEY)")
    with capturing(mysql_db, tmp_path) as engine:
        take(engine, 1)
        mysql_db.execute(f"CREATE TABLE x {OTHER}", *before, "INSERT INTO tick VALUES (2)")
        take(engine, 2)
    with capturing(mysql_db, tmp_path) as engine:
        mysql_db.execute(*after, "INSERT INTO t VALUES (3, 'a')")
        change = take(engine, 3)
    assert change.after == {"id": 3, "e": "a"}
    assert change.key == {"id": 3}


def test_a_table_is_made_like_one_that_is_not_captured(mysql_db: Database, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", f"CREATE TABLE x {OTHER}", "INSERT INTO t VALUES (1)")
    with capturing(mysql_db, tmp_path) as engine:
        take(engine, 1)
        mysql_db.execute("CREATE TABLE y LIKE x", "CREATE TABLE IF NOT EXISTS y LIKE x", "CREATE TABLE t2 LIKE x")
        mysql_db.execute("INSERT INTO t2 VALUES (2, 'a')")
        assert take(engine, 2).after == {"id": 2, "e": "a"}
    with capturing(mysql_db, tmp_path) as engine:
        mysql_db.execute("INSERT INTO t2 VALUES (3, 'b')")
        assert take(engine, 3).after == {"id": 3, "e": "b"}


@pytest.mark.parametrize("statement", ["RENAME TABLE x TO t2", "ALTER TABLE x RENAME t2"])
def test_the_rows_of_a_table_whose_structure_is_not_known_are_read_by_the_next_start(
    mysql_db: Database, tmp_path: Path, statement: str
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", f"CREATE TABLE x {OTHER}")
    mysql_db.execute("INSERT INTO t VALUES (1)", "INSERT INTO x VALUES (2, 'a')")
    with capturing(mysql_db, tmp_path) as engine:
        take(engine, 1)
        mysql_db.execute(statement, "INSERT INTO t VALUES (3)")
        take(engine, 3)
    with capturing(mysql_db, tmp_path) as engine:
        assert take(engine, 2).after == {"id": 2, "e": "a"}


def test_the_rows_of_the_new_table_are_read_on_behind_a_restart(mysql_db: Database, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    with capturing(mysql_db, tmp_path) as engine:
        take(engine, 1)
        rows = ", ".join(f"({number}, 'a')" for number in range(2, 30))
        swap = "RENAME TABLE t TO told, x TO t, told TO y"
        mysql_db.execute(f"CREATE TABLE x {OTHER}", f"INSERT INTO x VALUES {rows}", swap)
        mysql_db.execute("ALTER TABLE t ADD COLUMN first INT FIRST")
        take(engine, 3)
    with capturing(mysql_db, tmp_path) as engine:
        assert take(engine, 29).after == {"first": None, "id": 29, "e": "a"}
