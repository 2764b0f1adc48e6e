"""Random DDL: statements of every kind, valid or nearly so, about the tables that a server has at the moment.

Many of them the server refuses; those are of no interest. What it accepts, the model must follow.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

from rowtide.schema_history.query import Flavor

DATABASES = ("ra", "rb")
_MODES = (
    "", "ANSI_QUOTES", "NO_BACKSLASH_ESCAPES", "REAL_AS_FLOAT", "PIPES_AS_CONCAT", "NO_ZERO_DATE", "STRICT_ALL_TABLES",
    "STRICT_TRANS_TABLES", "NO_AUTO_VALUE_ON_ZERO", "IGNORE_SPACE", "HIGH_NOT_PRECEDENCE", "PAD_CHAR_TO_FULL_LENGTH",
    "ALLOW_INVALID_DATES", "ANSI", "TRADITIONAL", "NO_UNSIGNED_SUBTRACTION",
)  # fmt: skip
_MARIADB_MODES = ("ORACLE", "MSSQL", "MAXDB", "POSTGRESQL", "DB2", "EMPTY_STRING_IS_NULL", "SIMULTANEOUS_ASSIGNMENT")
_CHARSETS = {
    "utf8mb4": ("utf8mb4_bin", "utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_swedish_ci"),
    "utf8mb3": ("utf8mb3_bin", "utf8mb3_general_ci", "utf8_unicode_ci"),
    "utf8": ("utf8_bin", "utf8_general_ci"),
    "latin1": ("latin1_bin", "latin1_swedish_ci", "latin1_german2_ci"),
    "ascii": ("ascii_bin", "ascii_general_ci"),
    "ucs2": ("ucs2_bin", "ucs2_general_ci"),
    "utf16": ("utf16_bin", "utf16_general_ci"),
    "utf32": ("utf32_general_ci",),
    "gbk": ("gbk_bin", "gbk_chinese_ci"),
    "sjis": ("sjis_bin",),
    "cp1251": ("cp1251_general_cs", "cp1251_bin"),
    "koi8r": ("koi8r_bin",),
    "binary": ("binary",),
}
_INTEGERS = ("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "INT1", "INT2", "INT3", "INT4", "INT8",
             "MIDDLEINT")  # fmt: skip
_SPATIAL = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
            "GEOMETRYCOLLECTION")  # fmt: skip
_NAMES = ("a", "b", "c", "d", "id", "Name", "x1", "`order`", "`key`", "`two words`", "`grün`", "`a-b`", "ts", "val",
          "status", "`ID2`", "comment", "data", "`sel``ect`", "type")  # fmt: skip
_TABLES = ("t1", "t2", "T3", "`t 4`", "`größe`", "`t-5`", "t6")
# MariaDB leaves a ghost of a table behind that ALTER TABLE moves to another database with a name that it must encode.
_PLAIN_TABLES = ("t1", "t2", "T3", "t6")
_STRINGS = ("", "a", "x y", "ü", "it's", "0", "1.50", "-7", "2020-01-02", "2021-03-04 05:06:07.891", "12:34:56", "10",
            "abc  ", "\\", "日本", "1e2", "b'1'")  # fmt: skip
_NUMBERS = ("0", "1", "-1", "+5", "1.5", "-0.25", "1e3", "007", "12345678901", "99.995", ".5", "0x41", "x'4142'",
            "b'101'", "0b1", "-1e-2", "127", "2020", "20200102", "123456")  # fmt: skip
_EXPRESSIONS = ("(1 + 2)", "(UUID())", "(NOW())", "(CONCAT('a', 'b'))", "(5)", "(-(3))", "(NULL)")
_OTHER_LITERALS = ("TRUE", "FALSE", "DATE '2020-01-02'", "TIMESTAMP '2020-01-02 03:04:05'", "_latin1 'x'", "N'n'",
                   "'a' 'b'", "_utf8mb4 0x41")  # fmt: skip
_OPTIONS = ("ENGINE=InnoDB", "ENGINE = MyISAM", "AUTO_INCREMENT=10", "ROW_FORMAT=DYNAMIC", "CHECKSUM=1",
            "STATS_PERSISTENT=0", "MAX_ROWS=100")  # fmt: skip
_OTHERS = ("TRUNCATE TABLE {table}", "ANALYZE TABLE {table}", "CREATE OR REPLACE VIEW v AS SELECT * FROM {table}",
           "OPTIMIZE TABLE {table}", "ALTER TABLE {table} FORCE", "ALTER TABLE {table} ENGINE=InnoDB")  # fmt: skip


class RandomDdl:
    """Makes statements.

    Args:
        seed: the same seed and the same answers of a server give the same statements.
        flavor: of the server.
    """

    def __init__(self, seed: int, flavor: Flavor) -> None:
        self.rng = random.Random(seed)
        self.mariadb = flavor is Flavor.MARIADB
        self.mode = ""
        self.implicit = self.rng.random() < 0.3
        self.next = [f"SET explicit_defaults_for_timestamp = {int(not self.implicit)}"]
        self.tables: Mapping[str, Mapping[str, Any]] = {}

    # ------------------------------------------------------------ dice

    def one(self, values: Sequence[str]) -> str:
        """One of them."""
        return self.rng.choice(values)

    def maybe(self, text: str, chance: float = 0.5) -> str:
        """The text with a space before it, or nothing."""
        return f" {text}" if text and self.rng.random() < chance else ""

    def often(self, chance: float) -> bool:
        """Whether it happens this time."""
        return self.rng.random() < chance

    # ------------------------------------------------------------ words

    def quoted(self, text: str) -> str:
        """A string literal for the session's sql_mode."""
        text = text.replace("'", "''")
        if "NO_BACKSLASH" not in self.mode:
            text = text.replace("\\", "\\\\")
        return f"'{text}'"

    def name(self, text: str) -> str:
        """A name that a server told, as a statement may write it."""
        if self.often(0.15):
            text = text.swapcase() if text.isascii() else text
        if text.isidentifier() and self.often(0.3) and text.lower() not in ("order", "key", "group"):
            return text
        if "ANSI" in self.mode and self.often(0.4):
            return '"' + text.replace('"', '""') + '"'
        return "`" + text.replace("`", "``") + "`"

    def table(self) -> tuple[str, Mapping[str, Any]] | None:
        """A table that there is, with the name that a statement may give it."""
        if not self.tables:
            return None
        full = self.one(sorted(self.tables))
        database, _, table = full.partition(".")
        name = "`" + table.replace("`", "``") + "`"
        return (f"{database}.{name}" if self.often(0.4) or database != self.database else name), self.tables[full]

    database = DATABASES[0]

    def column(self, table: Mapping[str, Any]) -> str:
        """One of a table's columns."""
        return self.name(self.one([str(column["name"]) for column in table["columns"]]))

    def new_table(self) -> str:
        """A table's name."""
        return self.maybe(f"{self.one(DATABASES)}.", 0.2).strip() + self.one(_PLAIN_TABLES if self.mariadb else _TABLES)

    # ------------------------------------------------------------ statements

    def statement(self) -> str:
        """A statement."""
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
        )
        maker = self.rng.choices([m for m, _ in makers], [w for _, w in makers])[0]
        text = maker()
        if self.often(0.06):
            text = text.replace(" ", self.one((" /* c */ ", "\n", "  ", " -- c\n", "\t")), 1)
        return text

    def session(self) -> str:
        """A setting of the session."""
        if self.often(0.4):
            modes = (*_MODES, *_MARIADB_MODES) if self.mariadb else _MODES
            self.mode = ",".join({self.one(modes) for _ in range(self.rng.randint(1, 3))} - {""})
            return f"SET sql_mode = '{self.mode}'"
        charset = self.one(sorted(_CHARSETS))
        collation = self.one(_CHARSETS[charset])
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
            settings.append(f"SET character_set_collations = 'utf8mb4={self.one(_CHARSETS['utf8mb4'])}'")
            settings.append("SET character_set_collations = ''")
        else:
            settings.append(f"SET default_collation_for_utf8mb4 = {self.one(_CHARSETS['utf8mb4'][1:2])}")
            settings.append(f"SET sql_generate_invisible_primary_key = {self.rng.randint(0, 1)}")
        text = self.one(settings)
        if text.endswith("DEFAULT"):
            self.mode = ""
        if text.startswith("USE"):
            self.database = text[4:]
        return text

    def create_table(self) -> str:
        """CREATE TABLE."""
        used = self.rng.sample(_NAMES, self.rng.randint(1, 7))
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
        """What stands behind the columns."""
        options: list[str] = []
        if "ANSI" in self.mode and not self.mariadb:
            return ""  # MySQL adds an invisible primary key to the binlog's text, and leaves the options out of it
        if self.often(0.3):
            options.append(self.charset_option())
        if self.often(0.15):
            options.append(f"COLLATE{self.maybe('=')} {self.one(self.one_collation())}")
        if self.often(0.2):
            options.append(f"COMMENT{self.one((' ', '=', ' = '))}{self.quoted(self.one(_STRINGS))}")
        if self.often(0.1):
            options.append(self.one(_OPTIONS))
        self.rng.shuffle(options)
        return "".join(f"{self.one((' ', ', ')) if n else ' '}{option}" for n, option in enumerate(options))

    def one_collation(self) -> tuple[str, ...]:
        """The collations of some character set."""
        return _CHARSETS[self.one(sorted(_CHARSETS))]

    def charset_option(self) -> str:
        """A character set for a table or database."""
        word = self.one(("CHARSET", "CHARACTER SET", "DEFAULT CHARSET", "DEFAULT CHARACTER SET"))
        return f"{word}{self.one((' ', '=', ' = '))}{self.one(('DEFAULT', *sorted(_CHARSETS), 'utf8mb4', 'latin1'))}"

    def drop_table(self) -> str:
        """DROP TABLE."""
        found = self.table()
        if found is None:
            return f"DROP TABLE IF EXISTS {self.one(_TABLES)}"
        more = self.maybe(f", {self.one(_TABLES)}", 0.1)
        return f"DROP TABLE{self.maybe('IF EXISTS', 0.4)} {found[0]}{more}{self.maybe('CASCADE', 0.1)}"

    def rename(self) -> str:
        """RENAME TABLE."""
        found = self.table()
        if found is None:
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
        if self.implicit or found is None or any(map(_loses_default, found[1]["columns"])):
            return self.create_table()
        # Under other modes the binlog's text lacks the options that were given, and ON UPDATE.
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
        """Statements that change no structure, or hardly."""
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
        """A part of a key."""
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
            return self.drop_table()  # an ALTER would promote it, and MySQL's event does not always tell the setting
        actions = [self.action(table) for _ in range(self.rng.choice((1, 1, 1, 2, 2, 3, 4)))]
        if sum("CONVERT" in action for action in actions) > 1 or (
            any("CONVERT" in action for action in actions) and (_has_labels(table) or "ü" in str(actions))
        ):
            actions = ["FORCE"]  # the bytes of labels are read in the new character set, and shown in another again
        return f"ALTER TABLE {name} {', '.join(actions)}"

    def action(self, table: Mapping[str, Any]) -> str:
        """One action."""
        names = [str(column["name"]) for column in table["columns"]]
        column, other = self.column(table), self.column(table)
        place = self.maybe(self.one(("FIRST", f"AFTER {other}")), 0.3)
        new = self.one(_NAMES)
        keys = sorted(table["unique_keys"]) or ["k1"]
        if_not = self.maybe("IF NOT EXISTS", 0.15) if self.mariadb else ""
        if_exists = self.maybe("IF EXISTS", 0.15) if self.mariadb else ""
        makers = (
            (14, lambda: f"ADD{self.maybe('COLUMN')}{if_not} {new} {self.definition()}{place}"),
            (2, lambda: f"ADD COLUMN ({new} {self.definition()}, {self.one(_NAMES)} {self.definition()})"),
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
            (1, lambda: f"RENAME TO {self.one(_PLAIN_TABLES)}"),
            (1, lambda: f"ORDER BY {column}"),
            (1, lambda: self.one(("ALGORITHM=COPY", "LOCK=SHARED", "ENGINE=InnoDB", "DISABLE KEYS"))),
            (1 if self.mariadb else 0, lambda: f"{self.one(('ADD', 'DROP'))} SYSTEM VERSIONING"),
        )
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()

    def convert(self) -> str:
        """CONVERT TO CHARACTER SET."""
        charset = self.one(sorted(_CHARSETS))
        collate = self.maybe(f"COLLATE {self.one(_CHARSETS[charset])}", 0.5)
        return f"CONVERT TO {self.one(('CHARACTER SET', 'CHARSET'))} {self.one((charset, charset, 'DEFAULT'))}{collate}"

    # ------------------------------------------------------------ columns

    def definition(self) -> str:
        """A column's type and attributes."""
        data_type = self.data_type()
        if self.often(0.07):
            expression = self.one(("a + 1", "UPPER(b)", "CONCAT(a, 'x')", "1", "NOT a", "a || b"))
            always = self.maybe("GENERATED ALWAYS", 0.6)
            kind = self.maybe(self.one(("VIRTUAL", "STORED")), 0.7)
            more = self.maybe(
                self.one(("UNIQUE", "COMMENT 'g'", "INVISIBLE", "NOT NULL" if not self.mariadb else "")), 0.3
            )
            return f"{data_type}{always} AS ({expression}){kind}{more}"
        attributes = []
        if self.often(0.5):
            attributes.append(self.one(("NOT NULL", "NULL", "NOT NULL")))
        if self.often(0.4):
            attributes.append(f"DEFAULT {self.default()}")
        for chance, text in (
            (0.08, "COMMENT " + self.quoted(self.one(_STRINGS))),
            (0.05, "UNIQUE"), (0.03, "UNIQUE KEY"), (0.04, "PRIMARY KEY"), (0.01, "KEY"), (0.03, "AUTO_INCREMENT"),
            (0.05, "INVISIBLE"), (0.02, "CHECK (1 = 1)"), (0 if self.mariadb else 0.02, "COLUMN_FORMAT FIXED VISIBLE"),
            (0.02, "REFERENCES t1 (id)"), (0.05, "ON UPDATE CURRENT_TIMESTAMP"),
            (0 if self.mariadb else 0.01, "SERIAL DEFAULT VALUE"),
            (0.06, f"COLLATE {self.one(self.one_collation())}"),
        ):  # fmt: skip
            if self.often(chance):
                attributes.append(text)
        self.rng.shuffle(attributes)
        return " ".join([data_type, *attributes])

    def data_type(self) -> str:
        """A data type."""
        sign = self.maybe(self.one(("UNSIGNED", "ZEROFILL", "UNSIGNED ZEROFILL", "SIGNED")), 0.3)
        fsp = self.maybe(f"({self.rng.randint(0, 6)})", 0.4).strip()
        number = self.rng.choice((1, 3, 10, 40, 191, 255))
        makers = (
            (12, lambda: self.one(_INTEGERS) + self.maybe(f"({self.rng.randint(1, 20)})", 0.3).strip() + sign),
            (2, lambda: self.one(("BOOL", "BOOLEAN", "SERIAL", "BIT", "BIT(1)", f"BIT({self.rng.randint(1, 64)})"))),
            (5, lambda: self.one(("DECIMAL", "NUMERIC(10)", "DEC(12,4)", "FIXED(5,5)", "DECIMAL(65,30)")) + sign),
            (5, lambda: self.one(("FLOAT", "FLOAT(7,3)", "FLOAT(30)", "FLOAT(10)", "DOUBLE", "DOUBLE PRECISION", "REAL",
                                  "DOUBLE(10,2)", "REAL(8,4)")) + sign),
            (6, lambda: self.one(("TIMESTAMP", "DATETIME", "TIME", "TIMESTAMP")) + fsp),
            (2, lambda: self.one(("DATE", "YEAR", "YEAR(4)"))),
            (16, lambda: self.text_type(number)),
            (4, lambda: self.one((f"BINARY({number})", f"VARBINARY({number})", "BINARY", "VARBINARY(70000)", "BLOB",
                                  "TINYBLOB", "MEDIUMBLOB", "LONGBLOB", "BLOB(300)", "LONG VARBINARY"))),
            (5, lambda: self.one(("ENUM", "SET")) + self.labels() + self.text_attributes()),
            (1, lambda: self.one(_SPATIAL) + self.maybe("SRID 4326", 0 if self.mariadb else 0.2)),
            (2, lambda: "JSON"),
            (1, lambda: self.one(("UUID", "INET6", "INET4") if self.mariadb else ("VECTOR(3)", "VECTOR"))),
        )  # fmt: skip
        return self.rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]()

    def text_type(self, number: int) -> str:
        """A type of text."""
        text = self.one(
            (f"VARCHAR({number})", f"CHAR({number})", f"VARCHAR({number})", "CHAR", "TEXT", "TINYTEXT", "MEDIUMTEXT",
             "LONGTEXT", "TEXT(100)", f"NCHAR({number})", f"NATIONAL VARCHAR({number})", f"NVARCHAR({number})",
             f"CHARACTER VARYING({number})", "VARCHAR(20000)", "VARCHAR(70000)", "LONG", "LONG VARCHAR", "TEXT(70000)")
        )  # fmt: skip
        return text if text.startswith(("N", "LONG ")) else text + self.text_attributes()

    def text_attributes(self) -> str:
        """Character set and the like."""
        if self.often(0.6):
            return ""
        charset = self.one(sorted(_CHARSETS))
        word = self.one(("CHARACTER SET", "CHARSET"))
        return " " + self.one(
            (f"{word} {charset}", f"{word} {charset}", f"{word} {charset} BINARY", "BINARY", "ASCII", "UNICODE", "BYTE",
             f"{word} {charset} COLLATE {self.one(_CHARSETS[charset])}", f"COLLATE {self.one(_CHARSETS[charset])}")
        )  # fmt: skip

    def labels(self) -> str:
        """Labels of ENUM and SET."""
        found = self.rng.sample(("a", "b", "C", "x y", "ü", "it's", "", "1", "日", "d "), self.rng.randint(1, 4))
        return f"({','.join(map(self.quoted, found))})"

    def default(self) -> str:
        """A default value, fitting or not."""
        text = self.quoted(self.one(_STRINGS))
        return self.rng.choices(
            (
                "NULL",
                self.one(_NUMBERS),
                text,
                self.one(("CURRENT_TIMESTAMP", "NOW()", "CURRENT_TIMESTAMP(3)", "LOCALTIME", "NOW(6)")),
                self.one((f"({text})", *_EXPRESSIONS)),
                self.one(_OTHER_LITERALS),
            ),
            (15, 35, 30, 10, 6, 5),
        )[0]


def _has_labels(table: Mapping[str, Any]) -> bool:
    return any(column["data_type"] in ("enum", "set") for column in table["columns"])


def _loses_default(column: Mapping[str, Any]) -> bool:
    """Whether CREATE TABLE ... SELECT makes a copy whose default is not that of the binlog's text."""
    if column["column_default"] is None:
        return column["is_nullable"] == "YES" or "text" in column["data_type"]
    return "GENERATED" in column["extra"] and "text" in column["data_type"]


def _is_bare_timestamp(column: Mapping[str, Any]) -> bool:
    return column["data_type"] == "timestamp" and column["column_default"] is None and not column["extra"]
