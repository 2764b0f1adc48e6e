"""Transactions that are rolled back, wholly or in part, in all forms in which a server may log them.

A row that stays has an id below 1000; a row that is undone has another one. So a record of such a row is wrong, and the
tables at the end show whether a record is missing.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

import pymysql

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

__all__ = ["FORMS", "TABLES", "run"]

TABLES = ("t", "u", "m", "h", "w")
"""The tables: two of InnoDB, MyISAM, MEMORY, and one of InnoDB with a trigger that writes to MyISAM."""

_TEMP = "CREATE TEMPORARY TABLE x (id INT)"
_ANY = "UUID_SHORT() % 10"
_SETUP = (
    *(
        f"CREATE TABLE {table} (id INT PRIMARY KEY, v VARCHAR(400)) ENGINE={engine}"
        for table, engine in zip(TABLES, ("InnoDB", "InnoDB", "MyISAM", "MEMORY", "InnoDB"), strict=True)
    ),
    "CREATE TRIGGER w_m AFTER INSERT ON w FOR EACH ROW REPLACE INTO m VALUES (NEW.id - 1000, 'trigger')",
    "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')",
    "INSERT INTO u VALUES (1, 'a'), (2, 'b')",
)

FORMS: dict[str, tuple[str, ...]] = {
    "created": ("BEGIN", "INSERT INTO t VALUES (1000, '')", _TEMP, "ROLLBACK"),
    "created between": (
        "BEGIN",
        "INSERT INTO t VALUES (1001, '')",
        _TEMP,
        "UPDATE u SET id = id + 2000",
        "DELETE FROM t WHERE id = 1",
        "ROLLBACK",
    ),
    "dropped": (
        _TEMP,
        "BEGIN",
        "INSERT INTO t VALUES (1002, '')",
        "DROP TEMPORARY TABLE x",
        "DELETE FROM t",
        "ROLLBACK",
    ),
    "created and committed": ("BEGIN", "INSERT INTO t VALUES (10, '')", _TEMP, "COMMIT"),
    "connection lost": ("BEGIN", "INSERT INTO t VALUES (1003, '')", _TEMP, "DELETE FROM t WHERE id = 2"),
    "connection killed": ("BEGIN", "INSERT INTO t VALUES (1004, '')", _TEMP, "KILL CONNECTION_ID()"),
    "to a savepoint": (
        "BEGIN",
        "INSERT INTO t VALUES (11, '')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (1005, '')",
        "DELETE FROM t WHERE id = 1",
        _TEMP,
        "ROLLBACK TO SAVEPOINT a",
        "INSERT INTO t VALUES (12, '')",
        "COMMIT",
    ),
    "to savepoints": (
        "BEGIN",
        "INSERT INTO t VALUES (13, '')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (14, '')",
        "SAVEPOINT b",
        "INSERT INTO t VALUES (1006, '')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (1007, '')",
        _TEMP,
        "ROLLBACK TO b",
        "INSERT INTO t VALUES (1008, '')",
        "ROLLBACK TO b",
        "INSERT INTO t VALUES (15, '')",
        "RELEASE SAVEPOINT b",
        "INSERT INTO t VALUES (16, '')",
        "COMMIT",
    ),
    "to a savepoint, then all": (
        "BEGIN",
        "INSERT INTO t VALUES (1009, '')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (1010, '')",
        _TEMP,
        "ROLLBACK TO a",
        "INSERT INTO t VALUES (1011, '')",
        "ROLLBACK",
    ),
    "to a savepoint before all": (
        "BEGIN",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (1012, '')",
        _TEMP,
        "ROLLBACK TO a",
        "INSERT INTO t VALUES (17, '')",
        "COMMIT",
    ),
    "to a savepoint in another spelling": (
        "BEGIN",
        "INSERT INTO t VALUES (18, '')",
        "SAVEPOINT `a``B c`",
        "INSERT INTO t VALUES (1013, '')",
        _TEMP,
        "ROLLBACK WORK TO SAVEPOINT `A``b C`",
        "INSERT INTO t VALUES (19, '')",
        "COMMIT",
    ),
    "to a savepoint with MyISAM": (
        "BEGIN",
        "INSERT INTO t VALUES (20, '')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (1014, '')",
        "INSERT INTO m VALUES (1, '')",
        "ROLLBACK TO a",
        "INSERT INTO t VALUES (21, '')",
        "COMMIT",
    ),
    "MyISAM last": ("BEGIN", "INSERT INTO t VALUES (1015, '')", "INSERT INTO m VALUES (2, '')", _TEMP, "ROLLBACK"),
    "MyISAM first": (
        "BEGIN",
        "INSERT INTO m VALUES (3, '')",
        "INSERT INTO t VALUES (1016, '')",
        _TEMP,
        "ROLLBACK",
    ),
    "MEMORY": ("BEGIN", "INSERT INTO t VALUES (1017, '')", "INSERT INTO h VALUES (1, '')", _TEMP, "ROLLBACK"),
    "one statement for both": (
        "BEGIN",
        "UPDATE t, m SET t.id = t.id + 1100, m.v = 'both' WHERE t.id = m.id",
        _TEMP,
        "ROLLBACK",
    ),
    "trigger": ("BEGIN", "INSERT INTO w VALUES (1018, '')", _TEMP, "ROLLBACK"),
    "failing trigger": ("INSERT INTO w VALUES (1019, ''), (1020, ''), (1019, '')",),
    "failing trigger, mixed": (
        "SET SESSION binlog_format = MIXED",
        f"INSERT INTO w VALUES (1021, {_ANY}), (1022, ''), (1021, '')",
    ),
    "MyISAM fails": ("INSERT INTO m VALUES (50, ''), (51, ''), (1, '')",),
    "InnoDB fails": (
        "BEGIN",
        "INSERT INTO t VALUES (1023, ''), (1, '')",
        "INSERT INTO t VALUES (22, '')",
        _TEMP,
        "COMMIT",
    ),
    "CREATE … SELECT": (
        "BEGIN",
        "INSERT INTO t VALUES (1024, '')",
        "CREATE TEMPORARY TABLE x SELECT * FROM t",
        "INSERT INTO u SELECT id + 1000, v FROM x",
        "ROLLBACK",
    ),
    "large": (
        "BEGIN",
        "INSERT INTO t SELECT 2000 + a.id * 10 + b.id, REPEAT('long ', 80) FROM t a, t b WHERE a.id < 30 AND b.id < 10",
        "DELETE FROM t",
        _TEMP,
        "ROLLBACK",
    ),
    "XA, one phase": ("XA START 'a'", "INSERT INTO t VALUES (1025, '')", _TEMP, "XA END 'a'", "XA ROLLBACK 'a'"),
    "XA with MyISAM": (
        "XA START 'b'",
        "INSERT INTO t VALUES (1026, '')",
        "INSERT INTO m VALUES (4, '')",
        "XA END 'b'",
        "XA ROLLBACK 'b'",
    ),
    "XA, prepared": (
        "XA START 'c'",
        "INSERT INTO t VALUES (1027, '')",
        "INSERT INTO m VALUES (5, '')",
        "XA END 'c'",
        "XA PREPARE 'c'",
        "XA ROLLBACK 'c'",
    ),
    "XA to a savepoint": (
        "XA START 'd'",
        "INSERT INTO t VALUES (23, '')",
        "SAVEPOINT a",
        "INSERT INTO t VALUES (1028, '')",
        "INSERT INTO m VALUES (6, '')",
        "ROLLBACK TO a",
        "INSERT INTO t VALUES (24, '')",
        "XA END 'd'",
        "XA PREPARE 'd'",
        "XA COMMIT 'd'",
    ),
    "committed": ("BEGIN", "INSERT INTO t VALUES (25, '')", "UPDATE u SET v = 'last' WHERE id = 1", "COMMIT"),
}
"""The statements of each form, for a session of its own. A server may refuse some of them."""


def run(server: SqlServer, database: str) -> None:
    """Run all forms, each in a session of its own, one after the other."""
    with server.connect(database) as connection, connection.cursor() as cursor:
        for statement in _SETUP:
            cursor.execute(statement)
    for statements in FORMS.values():
        with server.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("SELECT CONNECTION_ID()")
            (thread,) = cursor.fetchone() or (0,)
            with contextlib.suppress(pymysql.OperationalError, pymysql.InternalError):
                for statement in statements:
                    with contextlib.suppress(pymysql.IntegrityError):
                        cursor.execute(statement)
        while server.query(f"SELECT 1 FROM information_schema.processlist WHERE id = {thread}"):
            time.sleep(0.01)
