"""Random DDL statements of all kinds, valid or nearly valid, for the tables that a server currently has.

Statements that the server rejects are ignored. The model must follow all others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rowtide.schema_history.server.query_event import Flavor
from tests.support.ddl.random_rare import RareWords
from tests.support.ddl.random_words import CHARSETS, DATABASES, NAMES, PLAIN_TABLES, STRINGS, TABLES, WIDE

_MODES = (
    "", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "REAL_AS_FLOAT", "PIPES_AS_CONCAT", "NO_ZERO_DATE", "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES", "NO_AUTO_VALUE_ON_ZERO", "IGNORE_SPACE", "HIGH_NOT_PRECEDENCE", "PAD_CHAR_TO_FULL_LENGTH",
    "ALLOW_INVALID_DATES", "ANSI", "TRADITIONAL", "NO_UNSIGNED_SUBTRACTION",
)  # fmt: skip
_MARIADB_MODES = ("ORACLE", "MSSQL", "MAXDB", "POSTGRESQL", "DB2", "EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT")
_OPTIONS = ("ENGINE=InnoDB", "ENGINE = MyISAM", "AUTO_INCREMENT=10", "ROW_FORMAT=DYNAMIC", "CHECKSUM=1",
            "STATS_PERSISTENT=0", "MAX_ROWS=100")  # fmt: skip
_OTHERS = ("TRUNCATE TABLE {table}", "ANALYZE TABLE {table}", "CREATE OR REPLACE VIEW v AS SELECT * FROM {table}",
           "OPTIMIZE TABLE {table}", "ALTER TABLE {table} FORCE", "ALTER TABLE {table} ENGINE=InnoDB")  # fmt: skip


class RandomDdl(RareWords):
    """Generates statements.

    Args:
        seed: equal seeds produce equal statements if the server's answers are equal.
        flavor: the flavor of the server.
    """

    def __init__(self, seed: int, flavor: Flavor) -> None:
        super().__init__(seed, flavor)
        self.implicit = self.rng.random() < 0.3
        self.next = [f"SET explicit_defaults_for_timestamp = {int(not self.implicit)}"]

    # ------------------------------------------------------------ statements

    def statement(self) -> str:
        """The next statement."""
        if self.next:
            return self.next.pop(0)
        makers = (
            (self.create_table, 24 if len(self.tables) < 5 else 6),
            (self.alter_table, 60),
            (self.session, 10),
            (self.drop_table, 5 + 2 * len(self.tables)),
            (self.rename, 3),
            (self.create_index, 6),
            (self.drop_index, 2),
            (self.like, 3),
            (self.select, 3),
            (self.databases, 4),
            (self.other, 2),
            (self.rare, 6),
        )
        maker = self.rng.choices([m for m, _ in makers], [w for _, w in makers])[0]
        text = maker()
        if "binlog_format" in text:
            self.rows = text.endswith("ROW")
        if self.often(0.06):
            text = text.replace(" ", self.one((" /* c */ ", "\n", "  ", " -- c\n", "\t")), 1)
        return text

    def session(self) -> str:
        """A statement that changes a session variable."""
        if self.often(0.4):
            modes = (*_MODES, *_MARIADB_MODES) if self.mariadb else _MODES
            self.mode = ",".join({self.one(modes) for _ in range(self.rng.randint(1, 3))} - {""})
            return f"SET sql_mode = '{self.mode}'"
        charset = self.one(sorted(CHARSETS))
        collation = self.one(CHARSETS[charset])
        settings = [
            f"SET collation_server = {collation}",
            f"SET character_set_server = {charset}",
            f"SET NAMES {self.one(('utf8mb4', 'utf8mb3', 'latin1', 'cp1251'))}",
            f"SET collation_connection = {collation}",
            f"USE {self.one(DATABASES)}",
            "SET NAMES utf8mb4",
            "SET sql_mode = DEFAULT",
        ]
        if self.mariadb:
            settings.append(f"SET character_set_collations = 'utf8mb4={self.one(CHARSETS['utf8mb4'])}'")
            settings.append("SET character_set_collations = ''")
        else:
            settings.append(f"SET default_collation_for_utf8mb4 = {self.one(CHARSETS['utf8mb4'][1:2])}")
            settings.append(f"SET sql_generate_invisible_primary_key = {self.rng.randint(0, 1)}")
        text = self.one(settings)
        if "connection" in text or "NAMES" in text:
            self.wide = any(f"= {name}_" in text for name in WIDE)
        if text.endswith("DEFAULT"):
            self.mode = ""
        if text.startswith("USE"):
            self.database = text[4:]
        return text

    def create_table(self) -> str:
        """CREATE TABLE."""
        used = self.rng.sample(NAMES, self.rng.randint(1, 7))
        elements = [f"{name} {self.definition()}" for name in used]
        elements += [self.key(used) for _ in range(self.rng.choice((0, 0, 0, 1, 1, 2)))]
        if self.mariadb and self.often(0.03):
            elements.append("rs TIMESTAMP(6) GENERATED ALWAYS AS ROW START")
            elements.append("re TIMESTAMP(6) GENERATED ALWAYS AS ROW END")
            elements.append("PERIOD FOR SYSTEM_TIME (rs, re)")
            return f"CREATE TABLE {self.new_table()} ({', '.join(elements)}) WITH SYSTEM VERSIONING"
        replace = self.maybe("OR REPLACE", 0.2) if self.mariadb else ""
        options = self.table_options() + self.maybe("WITH SYSTEM VERSIONING", 0.03 if self.mariadb else 0)
        body = ", ".join(elements)
        return f"CREATE{replace} TABLE{self.maybe('IF NOT EXISTS', 0.1)} {self.new_table()} ({body}){options}" + (
            self.partitions(used) if self.often(0.06) else ""
        )

    def partitions(self, names: Sequence[str]) -> str:
        """PARTITION BY."""
        name = self.one(names)
        return " " + self.one(
            (
                f"PARTITION BY HASH ({name}) PARTITIONS 3",
                f"PARTITION BY KEY ({name}) PARTITIONS 2",
                f"PARTITION BY RANGE ({name}) (PARTITION p VALUES LESS THAN (9), PARTITION q VALUES LESS THAN (99))",
                f"PARTITION BY LIST ({name}) (PARTITION p0 VALUES IN (1, 2), PARTITION p1 VALUES IN (3))",
                f"PARTITION BY RANGE COLUMNS ({name}) (PARTITION p0 VALUES LESS THAN ('m') COMMENT = 'x, y')",
            )
        )

    def table_options(self) -> str:
        """The table options of CREATE TABLE."""
        options: list[str] = []
        if "ANSI" in self.mode and not self.mariadb:
            return ""  # MySQL adds an invisible primary key to the statement in the binlog, and omits the options
        if self.often(0.3):
            options.append(self.charset_option())
        if self.often(0.15):
            options.append(f"COLLATE{self.maybe('=')} {self.one(self.one_collation())}")
        if self.often(0.2):
            options.append(f"COMMENT{self.one((' ', '=', ' = '))}{self.quoted(self.one(STRINGS))}")
        if self.often(0.1):
            options.append(self.one(_OPTIONS))
        self.rng.shuffle(options)
        return "".join(f"{self.one((' ', ', ')) if n else ' '}{option}" for n, option in enumerate(options))

    def charset_option(self) -> str:
        """A character set option of a table or database."""
        word = self.one(("CHARSET", "CHARACTER SET", "DEFAULT CHARSET", "DEFAULT CHARACTER SET"))
        return f"{word}{self.one((' ', '=', ' = '))}{self.one(('DEFAULT', *sorted(CHARSETS), 'utf8mb4', 'latin1'))}"

    def drop_table(self) -> str:
        """DROP TABLE."""
        found = self.table()
        if found is None:
            return f"DROP TABLE IF EXISTS {self.one(TABLES)}"
        more = self.maybe(f", {self.one(TABLES)}", 0.1)
        return f"DROP TABLE{self.maybe('IF EXISTS', 0.4)} {found[0]}{more}{self.maybe('CASCADE', 0.1)}"

    def rename(self) -> str:
        """RENAME TABLE."""
        found = self.table()
        if found is None or self.hides_renaming():
            return self.session()
        new = self.new_table()
        if self.often(0.2):
            return f"RENAME TABLE {found[0]} TO {new}, {new} TO {DATABASES[0]}.moved"
        return self.one(
            (f"RENAME TABLE {found[0]} TO {new}", f"ALTER TABLE {found[0]} RENAME {self.maybe('TO')} {new}")
        )

    def like(self) -> str:
        """CREATE TABLE ... LIKE."""
        found = self.table()
        return f"CREATE TABLE {self.new_table()} LIKE {found[0]}" if found else self.create_table()

    def select(self) -> str:
        """CREATE TABLE ... SELECT."""
        found = self.table()
        if self.implicit or not self.rows or found is None or any(map(_loses_default, found[1]["columns"])):
            return self.create_table()
        # Under other modes the statement in the binlog lacks the options, and ON UPDATE.
        tells_all = self.mode in _MODES and "ANSI" not in self.mode
        if not tells_all and any("on update" in column["extra"] for column in found[1]["columns"]):
            return self.create_table()
        options = self.table_options() if tells_all else ""
        more = self.maybe("(k INT PRIMARY KEY DEFAULT 5)", 0.2) + options
        what = self.one(
            ("*", self.column(found[1]), "1 AS one, 'x' AS two, NOW(3) AS three, 1.5 AS four, UUID() AS five")
        )
        return f"CREATE TABLE {self.new_table()}{more} AS SELECT {what} FROM {found[0]}"

    def databases(self) -> str:
        """CREATE, ALTER and DROP DATABASE."""
        database = self.one(DATABASES)
        options = self.maybe(self.charset_option(), 0.7) + self.maybe(f"COLLATE {self.one(self.one_collation())}", 0.3)
        if self.often(0.6) and options:
            return f"ALTER DATABASE {database}{options}"
        if self.often(0.2):
            if database == self.database:
                self.next = [f"CREATE DATABASE {database}{options}", f"USE {database}"]
            return f"DROP DATABASE {database}"
        return f"CREATE DATABASE IF NOT EXISTS {database}{options}"

    def other(self) -> str:
        """A statement that changes no structure, or hardly any."""
        found = self.table()
        table = found[0] if found else "t1"
        return self.one(_OTHERS).format(table=table)

    # ------------------------------------------------------------ keys

    def key(self, names: Sequence[str], prefix: str = "") -> str:
        """An index or constraint over some of the columns."""
        parts = ", ".join(
            self.part(name) for name in self.rng.sample(names, min(len(names), self.rng.choice((1, 1, 2, 3))))
        )
        plain = self.one(names)
        other = self.one(names)
        return prefix + self.one(
            (
                f"PRIMARY KEY ({parts})",
                f"UNIQUE{self.maybe('KEY')}{self.maybe('uk')} ({parts})",
                f"UNIQUE INDEX{self.maybe('`u 2`')} ({parts}) COMMENT 'i'",
                f"CONSTRAINT{self.maybe('con')} UNIQUE ({parts})",
                f"KEY{self.maybe('k1')} ({parts})",
                f"INDEX{self.maybe('k2')} ({parts}) USING BTREE",
                f"FULLTEXT KEY ({plain})",
                f"CHECK ({plain} IS NOT NULL)",
                f"CONSTRAINT{self.maybe('ck')} CHECK ({plain} <> {other})",
                f"FOREIGN KEY{self.maybe('fk')} ({plain}) REFERENCES t1 (id) ON DELETE SET NULL",
            )
        )

    def part(self, name: str) -> str:
        """A key part."""
        if not self.mariadb and self.often(0.06):
            return f"({self.one((f'{name} + 1', f'LOWER({name})', f'{name} IS NULL'))})"
        return f"{name}{self.maybe('(3)', 0.25).strip()}{self.maybe('DESC', 0.1)}"

    def create_index(self) -> str:
        """CREATE INDEX."""
        found = self.table()
        if found is None:
            return self.create_table()
        columns = [str(column["name"]) for column in found[1]["columns"]]
        names = self.rng.sample(columns, min(len(columns), self.rng.choice((1, 1, 2))))
        kind = self.one(("", "UNIQUE ", "UNIQUE "))
        parts = ", ".join(self.part(self.name(name)) for name in names)
        return f"CREATE {kind}INDEX {self.one(('i1', 'i2', '`i 3`'))} ON {found[0]} ({parts})"

    def drop_index(self) -> str:
        """DROP INDEX."""
        found = self.table()
        keys = sorted(found[1]["unique_keys"]) if found else []
        if found is None or not keys:
            return self.session()
        return f"DROP INDEX {self.name(self.one([*keys, 'PRIMARY']))} ON {found[0]}"

    # ------------------------------------------------------------ ALTER TABLE

    def alter_table(self) -> str:
        """ALTER TABLE."""
        found = self.table()
        if found is None:
            return self.create_table()
        name, table = found
        if self.implicit and not self.mariadb and any(map(_is_bare_timestamp, table["columns"])):
            return self.drop_table()  # an ALTER would promote it, and the setting is not always in MySQL's event
        actions = [self.action(table) for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 4)))]
        if sum("CONVERT" in action for action in actions) > 1 or (
            any("CONVERT" in action for action in actions) and (_has_labels(table) or "ü" in str(actions))
        ):
            actions = ["FORCE"]  # labels are read in the new character set, and shown in yet another one
        return f"ALTER TABLE {name} {', '.join(actions)}"

    def action(self, table: Mapping[str, Any]) -> str:
        """An action of ALTER TABLE."""
        names = [str(column["name"]) for column in table["columns"]]
        column, other = self.column(table), self.column(table)
        place = self.maybe(self.one(("FIRST", f"AFTER {other}")), 0.3)
        new = self.new_name()
        keys = sorted(table["unique_keys"]) or ["k1"]
        if_not = self.maybe("IF NOT EXISTS", 0.15) if self.mariadb else ""
        if_exists = self.maybe("IF EXISTS", 0.15) if self.mariadb else ""
        makers: Sequence[tuple[int, Callable[[], str]]] = (
            (14, lambda: f"ADD{self.maybe('COLUMN')}{if_not} {new} {self.definition()}{place}"),
            (2, lambda: f"ADD COLUMN ({new} {self.definition()}, {self.new_name()} {self.definition()})"),
            (12, lambda: f"MODIFY{self.maybe('COLUMN')}{if_exists} {column} {self.definition()}{place}"),
            (8, lambda: f"CHANGE{self.maybe('COLUMN')} {column} {new} {self.definition()}{place}"),
            (8, lambda: f"DROP{self.maybe('COLUMN')}{if_exists} {column}"),
            (5, lambda: f"RENAME COLUMN {column} TO {new}"),
            (6, lambda: f"ALTER{self.maybe('COLUMN')} {column} SET DEFAULT {self.default()}"),
            (2, lambda: f"ALTER {column} DROP DEFAULT"),
            (0 if self.mariadb else 2, lambda: f"ALTER {column} SET {self.one(('VISIBLE', 'INVISIBLE'))}"),
            (8, lambda: self.key([self.name(name) for name in names], "ADD ")),
            (3, lambda: "DROP PRIMARY KEY"),
            (4, lambda: f"DROP {self.one(('INDEX', 'KEY'))} {self.name(self.one(keys))}"),
            (2, lambda: f"DROP CONSTRAINT {self.name(self.one(keys))}"),
            (2, lambda: f"RENAME {self.one(('INDEX', 'KEY'))} {self.name(self.one(keys))} TO {self.one(('r1', 'r2'))}"),
            (4, self.convert),
            (6, lambda: self.table_options() or "FORCE"),
            (1, lambda: f"RENAME TO {self.one(PLAIN_TABLES)}"),
            (1, lambda: f"ORDER BY {column}"),
            (1, lambda: self.one(("ALGORITHM=COPY", "LOCK=SHARED", "ENGINE=InnoDB", "DISABLE KEYS"))),
            (1 if self.mariadb else 0, lambda: f"{self.one(('ADD', 'DROP'))} SYSTEM VERSIONING"),
            (6, lambda: self.rare_action(table)),
        )
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()

    def convert(self) -> str:
        """CONVERT TO CHARACTER SET."""
        charset = self.one(sorted(CHARSETS))
        collate = self.maybe(f"COLLATE {self.one(CHARSETS[charset])}", 0.5)
        return f"CONVERT TO {self.one(('CHARACTER SET', 'CHARSET'))} {self.one((charset, charset, 'DEFAULT'))}{collate}"


def _has_labels(table: Mapping[str, Any]) -> bool:
    return any(column["data_type"] in ("enum", "set") for column in table["columns"])


def _loses_default(column: Mapping[str, Any]) -> bool:
    """Whether the default of a copy by CREATE TABLE ... SELECT differs from that in the binlog."""
    if column["column_default"] is None:
        return column["is_nullable"] == "YES" or "text" in column["data_type"]
    return "GENERATED" in column["extra"] and "text" in column["data_type"]


def _is_bare_timestamp(column: Mapping[str, Any]) -> bool:
    return column["data_type"] == "timestamp" and column["column_default"] is None and not column["extra"]
