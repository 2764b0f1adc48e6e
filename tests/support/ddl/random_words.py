"""The elements of random DDL: names, literals, types and columns of all kinds, valid or not."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rowtide.schema_history.server.query_event import Flavor

DATABASES = ("ra", "rb")
CHARSETS = {
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
TABLES = ("t1", "t2", "T3", "`t 4`", "`größe`", "`t-5`", "t6")
# When ALTER TABLE moves a table whose name must be encoded to another database, MariaDB leaves an orphan behind.
PLAIN_TABLES = ("t1", "t2", "T3", "t6")
NAMES = ("a", "b", "c", "d", "id", "Name", "x1", "`order`", "`key`", "`two words`", "`grün`", "`a-b`", "ts", "val",
          "status", "`ID2`", "comment", "data", "`sel``ect`", "type")  # fmt: skip
STRINGS = ("", "a", "x y", "ü", "it's", "0", "1.50", "-7", "2020-01-02", "2021-03-04 05:06:07.891", "12:34:56", "10",
            "abc  ", "\\", "日本", "1e2", "b'1'")  # fmt: skip
_NUMBERS = ("0", "1", "-1", "+5", "1.5", "-0.25", "1e3", "007", "12345678901", "99.995", ".5", "0x41", "x'4142'",
            "b'101'", "0b1", "-1e-2", "127", "2020", "20200102", "123456")  # fmt: skip
_EXPRESSIONS = ("(1 + 2)", "(UUID())", "(NOW())", "(CONCAT('a', 'b'))", "(5)", "(-(3))", "(NULL)")
_OTHER_LITERALS = ("TRUE", "FALSE", "DATE '2020-01-02'", "TIMESTAMP '2020-01-02 03:04:05'", "_latin1 'x'", "N'n'",
                   "_utf8mb4 0x41", "0b1000001", "'a' 'b'")  # fmt: skip
WIDE = ("ucs2", "utf16", "utf32")
"""Character sets that encode ASCII differently. With them, servers convert concatenated strings twice."""


class Words:
    """Generates elements of statements.

    Args:
        seed: the seed of the random numbers.
        flavor: the flavor of the server.
    """

    database = DATABASES[0]

    def __init__(self, seed: int, flavor: Flavor) -> None:
        self.rng = random.Random(seed)
        self.mariadb = flavor is Flavor.MARIADB
        self.mode = ""
        self.wide = False
        self.rows = True
        self.shadowed = False
        self.tables: Mapping[str, Mapping[str, Any]] = {}
        self.next: list[str] = []

    # ------------------------------------------------------------ dice

    def one(self, values: Sequence[str]) -> str:
        """A random choice."""
        return self.rng.choice(values)

    def maybe(self, text: str, chance: float = 0.5) -> str:
        """The text after a space, or nothing."""
        return f" {text}" if text and self.rng.random() < chance else ""

    def often(self, chance: float) -> bool:
        """True with a probability."""
        return self.rng.random() < chance

    # ------------------------------------------------------------ words

    def quoted(self, text: str) -> str:
        """A string literal for the session's sql_mode."""
        text = text.replace("'", "''")
        if "NO_BACKSLASH" not in self.mode:
            text = text.replace("\\", "\\\\")
        return f"'{text}'"

    def name(self, text: str) -> str:
        """A name as a statement may write it."""
        if self.often(0.15):
            text = text.swapcase() if text.isascii() else text
        if text.isidentifier() and self.often(0.3) and text.lower() not in ("order", "key", "group"):
            return text
        if "ANSI" in self.mode and self.often(0.4):
            return '"' + text.replace('"', '""') + '"'
        return "`" + text.replace("`", "``") + "`"

    def table(self) -> tuple[str, Mapping[str, Any]] | None:
        """An existing table, and its name as a statement may write it."""
        if not self.tables:
            return None
        full = self.one(sorted(self.tables))
        database, _, table = full.partition(".")
        name = "`" + table.replace("`", "``") + "`"
        return (f"{database}.{name}" if self.often(0.4) or database != self.database else name), self.tables[full]

    def column(self, table: Mapping[str, Any]) -> str:
        """A column of a table."""
        return self.name(self.one([str(column["name"]) for column in table["columns"]]))

    def new_name(self) -> str:
        """A column name, which may exist already."""
        return self.one(NAMES)

    def new_table(self) -> str:
        """A table name, which may exist already."""
        return self.maybe(f"{self.one(DATABASES)}.", 0.2).strip() + self.one(PLAIN_TABLES if self.mariadb else TABLES)

    def one_collation(self) -> tuple[str, ...]:
        """The collations of a random character set."""
        return CHARSETS[self.one(sorted(CHARSETS))]

    # ------------------------------------------------------------ columns

    def definition(self) -> str:
        """The type and attributes of a column."""
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
            (0.08, "COMMENT " + self.quoted(self.one(STRINGS))),
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
        makers: Sequence[tuple[int, Callable[[], str]]] = (
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
        """A text type."""
        text = self.one(
            (f"VARCHAR({number})", f"CHAR({number})", f"VARCHAR({number})", "CHAR", "TEXT", "TINYTEXT", "MEDIUMTEXT",
             "LONGTEXT", "TEXT(100)", f"NCHAR({number})", f"NATIONAL VARCHAR({number})", f"NVARCHAR({number})",
             f"CHARACTER VARYING({number})", "VARCHAR(20000)", "VARCHAR(70000)", "LONG", "LONG VARCHAR", "TEXT(70000)")
        )  # fmt: skip
        return text if text.startswith(("N", "LONG ")) else text + self.text_attributes()

    def text_attributes(self) -> str:
        """Character set and related attributes."""
        if self.often(0.6):
            return ""
        charset = self.one(sorted(CHARSETS))
        word = self.one(("CHARACTER SET", "CHARSET"))
        return " " + self.one(
            (f"{word} {charset}", f"{word} {charset}", f"{word} {charset} BINARY", "BINARY", "ASCII", "UNICODE", "BYTE",
             f"{word} {charset} COLLATE {self.one(CHARSETS[charset])}", f"COLLATE {self.one(CHARSETS[charset])}")
        )  # fmt: skip

    def labels(self) -> str:
        """Labels of ENUM and SET."""
        found = self.rng.sample(("a", "b", "C", "x y", "ü", "it's", "", "1", "日", "d "), self.rng.randint(1, 4))
        return f"({','.join(map(self.quoted, found))})"

    def default(self) -> str:
        """A default value, which may be invalid."""
        text = self.quoted(self.one(STRINGS))
        return self.rng.choices(
            (
                "NULL",
                self.one(_NUMBERS),
                text,
                self.one(("CURRENT_TIMESTAMP", "NOW()", "CURRENT_TIMESTAMP(3)", "LOCALTIME", "NOW(6)")),
                self.one((f"({text})", *_EXPRESSIONS)),
                self.one(_OTHER_LITERALS if not self.wide else _OTHER_LITERALS[:-1]),
            ),
            (15, 35, 30, 10, 6, 5),
        )[0]
