"""Random statements for the current tables of a server: rows, transactions, session variables and DDL."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from tests.parity.tables import NAMES, Definitions
from tests.parity.values import CHARSETS, Column, Values, quoted

__all__ = ["Changes", "name_of"]

Tables = Mapping[str, Sequence[Column]]
_TABLES = ("t1", "t2", "t3", "T4", "`t 5`", "`größe`", "t6", "t7")
_MODES = ("", "STRICT_TRANS_TABLES", "ALLOW_INVALID_DATES", "NO_AUTO_VALUE_ON_ZERO", "PIPES_AS_CONCAT", "NO_ZERO_DATE",
          "NO_BACKSLASH_ESCAPES", "IGNORE_SPACE", "TRADITIONAL", "HIGH_NOT_PRECEDENCE")  # fmt: skip
_JSON_CHANGES = ("JSON_SET(@, '$.a', 1.5)", "JSON_REMOVE(@, '$.b')", "JSON_ARRAY_APPEND(@, '$', @)",
                 """JSON_MERGE_PATCH(@, '{"k": [1, null]}')""")  # fmt: skip


def name_of(table: str) -> str:
    """A name in backticks."""
    return "`" + table.replace("`", "``") + "`"


class Changes:
    """Generates statements.

    Args:
        rng: the random number generator.
        mariadb: whether the server is MariaDB.
        database: the database of the tables.
        outside: whether tables are moved from a database that is not captured.
    """

    def __init__(self, rng: random.Random, database: str, *, mariadb: bool, outside: bool = True) -> None:
        self._rng = rng
        self._database = database
        self._mariadb = mariadb
        self._outside = int(outside)
        self._values = Values(rng, mariadb=mariadb)
        self._definitions = Definitions(rng, mariadb=mariadb)
        self._xa = 0

    # ------------------------------------------------------------ what comes next

    def setup(self, tables: int) -> list[str]:
        """The statements that create the initial tables."""
        names = self._rng.sample(_TABLES, tables)
        return [self._definitions.create_table(name) for name in names]

    def filling(self, tables: Tables) -> list[str]:
        """The statements that insert the rows of the snapshot."""
        return [
            self.insert(table, columns)
            for table, columns in sorted(tables.items())
            for _ in range(self._rng.choice((0, 1, 2, 4)))
        ]

    def next(self, tables: Tables) -> list[str]:
        """One statement, or several that belong together."""
        rng = self._rng
        if not tables:
            return [self._definitions.create_table(rng.choice(_TABLES))]
        chance = rng.random()
        if chance < 0.55:
            return [self.row_change(tables)]
        if chance < 0.70:
            return self.transaction(tables)
        if chance < 0.72:
            return self.xa(tables)
        if chance < 0.73:
            return ["SET sql_log_bin = 0", self.row_change(tables), "SET sql_log_bin = 1"]
        if chance < 0.78:
            return [self.session()]
        if chance < 0.80:
            return [self.harmless(tables)]
        return [self.ddl(tables)]

    # ------------------------------------------------------------ rows

    def row_change(self, tables: Tables) -> str:
        """A statement that changes rows."""
        table = self._rng.choice(sorted(tables))
        columns = tables[table]
        makers = (
            (10, lambda: self.insert(table, columns)),
            (6, lambda: self.update(table, columns)),
            (3, lambda: self.delete(table)),
            (2, lambda: self.insert(table, columns, "REPLACE")),
            (2, lambda: self.insert(table, columns) + self.on_duplicate(columns)),
            (1, lambda: self.insert(table, columns, "INSERT IGNORE")),
            (1, lambda: f"DELETE FROM {name_of(table)}"),
            (1, lambda: self.copy(table, columns)),
            (1, lambda: self.of_two_tables(tables)),
            (1, lambda: self.json_change(table, columns)),
            (1, self.elsewhere),
            (1 if self._mariadb else 0, lambda: f"{self.insert(table, columns)} RETURNING 1"),
            (1 if self._mariadb else 0, lambda: f"SET STATEMENT max_statement_time=9 FOR {self.delete(table)}"),
        )
        return self._rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()

    def of_two_tables(self, tables: Tables) -> str:
        """UPDATE or DELETE of two tables, whose rows are in the events of one statement."""
        one, other = (self._rng.choice(sorted(tables)) for _ in range(2))
        join = f"{name_of(one)} a JOIN {name_of(other)} b"
        if self._rng.random() < 0.3:
            return f"DELETE a, b FROM {join}"
        columns = [
            [column for column in tables[table] if not column.generated and not column.counts] for table in (one, other)
        ]
        if not all(columns) or one == other:
            return self.delete(one)
        first, second = (self._rng.choice(found) for found in columns)
        changes = (
            f"a.{name_of(first.name)} = {self._values.of(first)}",
            f"b.{name_of(second.name)} = {self._values.of(second)}",
        )
        return f"UPDATE {join} SET {', '.join(changes)}"

    def json_change(self, table: str, columns: Sequence[Column]) -> str:
        """A change inside of JSON documents."""
        found = [column for column in columns if column.kind == "json" and not column.generated]
        if not found:
            return self.delete(table)
        name = name_of(self._rng.choice(found).name)
        change = self._rng.choice(_JSON_CHANGES).replace("@", name)
        return f"UPDATE {name_of(table)} SET {name} = {change}"

    def elsewhere(self) -> str:
        """Changes of rows in a database that is not captured."""
        return f"INSERT INTO {self._database}x.o1 (v) VALUES ('x'), ('y')"

    def insert(self, table: str, columns: Sequence[Column], verb: str = "INSERT") -> str:
        """INSERT of one or several rows."""
        rng = self._rng
        own = [column for column in columns if not column.generated]
        if rng.random() < 0.4:
            own = [column for column in own if not column.default or rng.random() < 0.6]
        if not own:
            return f"{verb} INTO {name_of(table)} () VALUES ()"
        rows = [f"({', '.join(self.value(column) for column in own)})" for _ in range(rng.choice((1, 1, 2, 3, 5)))]
        names = ", ".join(name_of(column.name) for column in own)
        return f"{verb} INTO {name_of(table)} ({names}) VALUES {', '.join(rows)}"

    def value(self, column: Column) -> str:
        """A value in an INSERT."""
        chance = self._rng.random()
        if column.counts and chance < 0.7:
            return "NULL" if chance < 0.5 else str(self._rng.randint(1, 60))
        if column.default and chance < 0.05:
            return "DEFAULT"
        if column.name.lower() == "id" and chance < 0.9:
            number = str(self._rng.randint(0, 60))
            return quoted(number) if "char" in column.type else number
        return self._values.of(column)

    def update(self, table: str, columns: Sequence[Column]) -> str:
        """UPDATE of some rows, keys included."""
        own = [column for column in columns if not column.generated]
        chosen = self._rng.sample(own, min(len(own), self._rng.choice((1, 1, 2, 3, 6))))
        sets = ", ".join(f"{name_of(column.name)} = {self._values.of(column)}" for column in chosen)
        return f"UPDATE {name_of(table)} SET {sets}{self.some()}"

    def delete(self, table: str) -> str:
        """DELETE of some rows."""
        return f"DELETE FROM {name_of(table)}{self.some()}"

    def some(self) -> str:
        """A LIMIT, with or without an order."""
        return self._rng.choice((" LIMIT 1", " LIMIT 2", " ORDER BY 1 LIMIT 1", " LIMIT 5", ""))

    def on_duplicate(self, columns: Sequence[Column]) -> str:
        """ON DUPLICATE KEY UPDATE."""
        own = [column for column in columns if not column.generated]
        column = self._rng.choice(own)
        return f" ON DUPLICATE KEY UPDATE {name_of(column.name)} = {self._values.of(column)}"

    def copy(self, table: str, columns: Sequence[Column]) -> str:
        """INSERT ... SELECT from the same table."""
        own = [column for column in columns if not column.generated and not column.counts]
        names = ", ".join(name_of(column.name) for column in own)
        return f"INSERT INTO {name_of(table)} ({names}) SELECT {names} FROM {name_of(table)} LIMIT 3" if own else "DO 1"

    # ------------------------------------------------------------ transactions and sessions

    def transaction(self, tables: Tables) -> list[str]:
        """BEGIN to COMMIT or ROLLBACK, with savepoints."""
        rng = self._rng
        found = [rng.choice(("BEGIN", "START TRANSACTION", "START TRANSACTION WITH CONSISTENT SNAPSHOT"))]
        for _ in range(rng.randint(1, 6)):
            found.append(self.row_change(tables))
            if rng.random() < 0.2:
                found.append("SAVEPOINT s")
                found.append(self.row_change(tables))
                if rng.random() < 0.6:
                    found.append("ROLLBACK TO SAVEPOINT s")
                if rng.random() < 0.3:
                    found.append("RELEASE SAVEPOINT s")
        return [*found, "COMMIT" if rng.random() < 0.8 else "ROLLBACK"]

    def xa(self, tables: Tables) -> list[str]:
        """An XA transaction that is committed; the records of one that is rolled back are known to differ."""
        self._xa += 1
        xid = self._rng.choice((f"'x{self._xa}'", f"'x{self._xa}','branch',7"))
        rows = [self.row_change(tables) for _ in range(self._rng.randint(1, 3))]
        if self._rng.random() < 0.3:
            return [f"XA START {xid}", *rows, f"XA END {xid}", f"XA COMMIT {xid} ONE PHASE"]
        return [f"XA START {xid}", *rows, f"XA END {xid}", f"XA PREPARE {xid}", f"XA COMMIT {xid}"]

    def session(self) -> str:
        """A statement that changes a session variable."""
        rng = self._rng
        found = [
            f"SET time_zone = {rng.choice(('+00:00', '+05:30', '-08:00', '+14:00'))!r}",
            f"SET sql_mode = {rng.choice(_MODES)!r}",
            "SET sql_mode = DEFAULT",
            f"SET timestamp = {rng.choice(('1700000000.123456', 'DEFAULT'))}",
            f"SET collation_server = {CHARSETS[rng.choice(sorted(CHARSETS))][0]}",
            f"SET collation_connection = {rng.choice(('utf8mb4_bin', 'utf8mb4_general_ci'))}",
            "SET NAMES utf8mb4",
            f"SET auto_increment_increment = {rng.randint(1, 3)}",
            f"SET foreign_key_checks = {rng.randint(0, 1)}",
            f"SET unique_checks = {rng.randint(0, 1)}",
        ]
        if not self._mariadb:
            found.append(f"SET binlog_transaction_compression = {rng.randint(0, 1)}")
            found.append("SET sql_generate_invisible_primary_key = 0")
        return rng.choice(found)

    def harmless(self, tables: Tables) -> str:
        """A statement that changes neither rows nor structure, but is in the binlog."""
        table = name_of(self._rng.choice(sorted(tables)))
        return self._rng.choice(
            (
                f"ANALYZE TABLE {table}",
                f"OPTIMIZE TABLE {table}",
                f"CREATE OR REPLACE VIEW v1 AS SELECT * FROM {table}",
                "DROP VIEW IF EXISTS v1",
                "CREATE PROCEDURE p1() SELECT 1",
                "DROP PROCEDURE IF EXISTS p1",
                f"CREATE TRIGGER g1 BEFORE INSERT ON {table} FOR EACH ROW SET @a = 1",
                f"CREATE TRIGGER g2 AFTER UPDATE ON {table} FOR EACH ROW {self.row_change(tables)}",
                f"CREATE TRIGGER g3 AFTER DELETE ON {table} FOR EACH ROW {self.elsewhere()}",
                "DROP TRIGGER IF EXISTS g2",
                f"CREATE PROCEDURE p2() BEGIN {self.row_change(tables)}; {self.row_change(tables)}; END",
                "CALL p2()",
                "CALL p2()",
                "DROP PROCEDURE IF EXISTS p2",
                "DROP TRIGGER IF EXISTS g1",
                "CREATE EVENT IF NOT EXISTS e1 ON SCHEDULE EVERY 1 YEAR STARTS '2037-01-01' DO SELECT 1",
                "DROP EVENT IF EXISTS e1",
                f"CREATE TEMPORARY TABLE tmp{self._rng.randint(1, 9)} (id INT)",
                "FLUSH TABLES",
                "FLUSH BINARY LOGS",
                "GRANT SELECT ON *.* TO root@'%'",
            )
        )

    # ------------------------------------------------------------ DDL

    def ddl(self, tables: Tables) -> str:
        """A statement that changes the structure of a table."""
        rng = self._rng
        table = rng.choice(sorted(tables))
        name, columns = name_of(table), tables[table]
        free = rng.choice(_TABLES)
        parts = self.key_parts(columns)
        makers = (
            (26, lambda: self.alter(table, columns)),
            (8 if len(tables) < 6 else 2, lambda: self._definitions.create_table(free)),
            (2, lambda: f"DROP TABLE {rng.choice(('', 'IF EXISTS '))}{name}"),
            (2, lambda: f"RENAME TABLE {name} TO {free}"),
            (2, lambda: f"TRUNCATE {rng.choice(('', 'TABLE '))}{name}"),
            (2, lambda: f"CREATE TABLE {free} LIKE {name}"),
            (1, lambda: f"CREATE TABLE {free} AS SELECT * FROM {name}"),
            (
                2,
                lambda: (
                    f"CREATE {rng.choice(('', 'UNIQUE '))}INDEX i{rng.randint(1, 9)} ON {name} ({', '.join(parts)})"
                ),
            ),
            (1, lambda: f"DROP INDEX i{rng.randint(1, 9)} ON {name}"),
            (1, lambda: f"RENAME TABLE {name} TO {self._database}x.{free}"),
            (self._outside, lambda: f"RENAME TABLE {self._database}x.{free} TO {rng.choice(_TABLES)}"),
            (1, lambda: f"CREATE TABLE {self._database}x.{free} (a INT PRIMARY KEY, b VARCHAR(10))"),
            (1, lambda: f"RENAME TABLE {name} TO tmp, {free} TO {name}, tmp TO {free}"),
            (1, lambda: f"CREATE TABLE IF NOT EXISTS {free} (id INT PRIMARY KEY, v VARCHAR(9))"),
            (1, lambda: f"DROP TABLE IF EXISTS {name}, nosuch"),
            (1, lambda: f"ALTER DATABASE {self._database} CHARACTER SET {rng.choice(('utf8mb4', 'latin1', 'cp1251'))}"),
        )
        text = rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()
        if rng.random() < 0.05:
            text = text.replace(" ", rng.choice((" /* c */ ", "\n", "  ", "\t")), 1)
        return text

    def alter(self, table: str, columns: Sequence[Column]) -> str:
        """ALTER TABLE."""
        actions = [self.action(columns) for _ in range(self._rng.choice((1, 1, 1, 2, 3)))]
        return f"ALTER TABLE {name_of(table)} {', '.join(actions)}"

    def action(self, columns: Sequence[Column]) -> str:
        """An action of ALTER TABLE."""
        rng = self._rng
        column, other = rng.choice(columns), rng.choice(columns)
        name = name_of(column.name)
        taken = {one.name for one in columns}  # to them Debezium cannot rename, even if they are dropped with it
        new = rng.choice([free for free in NAMES if free.strip("`") not in taken])
        place = rng.choice(("", "", "", " FIRST", f" AFTER {name_of(other.name)}"))
        parts = self.key_parts(columns)
        kind = rng.choice(("INDEX", "KEY", "UNIQUE KEY", "PRIMARY KEY", "UNIQUE INDEX u1", "INDEX i1"))
        charset = rng.choice(sorted(CHARSETS))
        makers = (
            (14, lambda: f"ADD {rng.choice(('', 'COLUMN '))}{new} {self._definitions.column()}{place}"),
            (2, lambda: f"ADD COLUMN ({new} {self._definitions.column()}, zz INT)"),
            (9, lambda: f"MODIFY {rng.choice(('', 'COLUMN '))}{name} {self._definitions.column()}{place}"),
            (7, lambda: f"CHANGE {rng.choice(('', 'COLUMN '))}{name} {new} {self._definitions.column()}{place}"),
            (5, lambda: f"MODIFY {name} {column.type}{rng.choice(('', ' NOT NULL', ' NULL'))}{place}"),
            (7, lambda: f"DROP {rng.choice(('', 'COLUMN '))}{name}"),
            (5, lambda: f"RENAME COLUMN {name} TO {new}"),
            (3, lambda: f"ALTER {rng.choice(('', 'COLUMN '))}{name} SET DEFAULT {self.plain_default(column)}"),
            (2, lambda: f"ALTER {name} DROP DEFAULT"),
            (1 if not self._mariadb else 0, lambda: f"ALTER {name} SET {rng.choice(('VISIBLE', 'INVISIBLE'))}"),
            (5, lambda: f"ADD {kind} ({', '.join(parts)})"),
            (2, lambda: "DROP PRIMARY KEY"),
            # (MySQL reads the labels in the new character set.)
            (int(not any(one.labels for one in columns)), lambda: f"CONVERT TO CHARACTER SET {charset}"),
            (1, lambda: f"DEFAULT CHARACTER SET {charset}"),
            (2, lambda: f"COMMENT = {quoted(rng.choice(('', 'new', 'ü')))}"),
            (1, lambda: f"RENAME TO {rng.choice(_TABLES)}"),
            (
                1,
                lambda: rng.choice(
                    (
                        "FORCE",
                        "ENGINE=InnoDB",
                        "AUTO_INCREMENT=100",
                        "ALGORITHM=COPY",
                        "ROW_FORMAT=DYNAMIC",
                        "ENGINE=MyISAM",
                        f"PARTITION BY KEY ({name}) PARTITIONS 3",
                        "REMOVE PARTITIONING",
                    )
                ),
            ),
        )
        return rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()

    def key_parts(self, columns: Sequence[Column]) -> list[str]:
        """The columns of a key. In MariaDB, a key of long columns has a hidden column, whose rows stop Debezium."""
        fit = [one for one in columns if not one.is_long] if self._mariadb else list(columns)
        fit = fit or list(columns)
        return [name_of(one.name) for one in self._rng.sample(fit, min(len(fit), self._rng.choice((1, 1, 2))))]

    def plain_default(self, column: Column) -> str:
        """A default for ALTER ... SET DEFAULT."""
        kind = column.kind
        if kind in ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "float", "double"):
            return self._rng.choice(("0", "1", "'7'", "5"))
        if kind in ("char", "varchar"):
            return self._rng.choice(("''", "'n'"))
        if kind in ("enum", "set"):
            return quoted(self._rng.choice(column.labels))
        return "NULL"
