"""Random tables: columns of every type with attributes and defaults, keys, comments, options."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tests.parity.values import CHARSETS, Column, Values, quoted

__all__ = ["NAMES", "Definitions"]

NAMES = ("a", "b", "c", "d", "e", "f", "Name", "x1", "`order`", "`key`", "`two words`", "`grün`", "`a-b`", "ts", "val",
         "status", "comment", "data", "type", "n", "`1st`", "amount", "created", "__p", "flag")  # fmt: skip
_LABELS = ("a", "b", "C", "x y", "ü", "it's", "1", "日", "long label", "Z", "true", "null", "a.b", "c-d")
_COMMENTS = ("", "plain", "ü comment", "it's", 'say "so"', "a,b", "line1 line2", "100%")
_SPATIAL = ("GEOMETRY", "POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON",
            "GEOMETRYCOLLECTION")  # fmt: skip
_SIZES = ("10,0", "5,2", "12,4", "65,30", "1,0", "5,5", "38,10", "18,9")
_NO_DEFAULT = ("text", "blob", "json", "geometry", "point", "polygon", "linestring", "collection", "vector")


class Definitions:
    """Generates CREATE TABLE statements and column definitions.

    Args:
        rng: the random number generator.
        mariadb: whether the server is MariaDB.
    """

    def __init__(self, rng: random.Random, *, mariadb: bool) -> None:
        self._rng = rng
        self._mariadb = mariadb
        self._values = Values(rng, mariadb=mariadb)

    def create_table(self, name: str) -> str:
        """CREATE TABLE. Half of the tables have a simple key, the others any or none."""
        rng = self._rng
        names = rng.sample(NAMES, rng.randint(2, 12))
        types = [self.data_type() for _ in names]
        elements = []
        chance = rng.random()
        if chance < 0.5:
            elements.append(rng.choice(("id INT NOT NULL AUTO_INCREMENT PRIMARY KEY", "id BIGINT NOT NULL PRIMARY KEY",
                                        "id INT AUTO_INCREMENT PRIMARY KEY", "`ID` INT UNSIGNED NOT NULL PRIMARY KEY",
                                        "id VARCHAR(20) NOT NULL PRIMARY KEY")))  # fmt: skip
        keyed: list[str] = []
        if 0.5 <= chance < 0.85:
            plain = [n for n, t in zip(names, types, strict=True) if _may_be_key(t)]
            keyed = rng.sample(plain, min(len(plain), rng.choice((1, 1, 2, 3))))
        for column, data_type in zip(names, types, strict=True):
            strict = column in keyed
            elements.append(f"{column} {self.definition(data_type, key=strict)}")
        if keyed:
            kind = rng.choice(("PRIMARY KEY", "PRIMARY KEY", "UNIQUE KEY", "UNIQUE INDEX uk"))
            elements.append(f"{kind} ({', '.join(keyed)})")
        if rng.random() < 0.25:
            numbers = [n for n, t in zip(names, types, strict=True) if t.startswith(("INT", "SMALLINT", "BIGINT"))]
            if numbers:
                kind = rng.choice(("VIRTUAL", "STORED"))
                elements.append(f"gen {rng.choice(('BIGINT', 'VARCHAR(40)'))} AS ({numbers[0]}) {kind}")
        return f"CREATE TABLE {name} ({', '.join(elements)}){self.options()}"

    def options(self) -> str:
        """The table options."""
        rng, found = self._rng, ""
        if rng.random() < 0.25:
            charset = rng.choice(sorted(CHARSETS))
            found += f" CHARACTER SET {charset}" + (f" COLLATE {CHARSETS[charset][0]}" if rng.random() < 0.4 else "")
        if rng.random() < 0.06:
            found += " ENGINE=" + rng.choice(("MyISAM", "Aria" if self._mariadb else "MyISAM", "MEMORY"))
        if rng.random() < 0.2:
            found += f" COMMENT {quoted(rng.choice(_COMMENTS))}"
        return found

    def column(self) -> str:
        """The definition of a column that is added to a table with rows."""
        return self.definition(self.data_type())

    def definition(self, data_type: str, *, key: bool = False) -> str:
        """A type with attributes."""
        rng = self._rng
        parts = [data_type]
        strict = key or rng.random() < 0.35
        if strict:
            parts.append("NOT NULL")
        elif data_type.startswith("TIMESTAMP") or rng.random() < 0.1:
            parts.append("NULL")
        if not key and rng.random() < 0.4:
            parts.append(self.default(data_type, null=not strict))
        if rng.random() < 0.1:
            parts.append(f"COMMENT {quoted(rng.choice(_COMMENTS))}")
        if rng.random() < 0.05 and not key and (not strict or "DEFAULT" in " ".join(parts)):
            parts.append("INVISIBLE")
        return " ".join(part for part in parts if part)

    def default(self, data_type: str, *, null: bool) -> str:
        """DEFAULT with a valid value, or nothing."""
        rng = self._rng
        lower = data_type.lower()
        if null and rng.random() < 0.3:
            return "DEFAULT NULL"
        if any(part in lower for part in _NO_DEFAULT) or lower in _SPATIAL or "binary" in lower or "uuid" in lower:
            return ""
        if lower.startswith(("timestamp", "datetime")) and rng.random() < 0.5:
            digits = lower[lower.find("(") :] if "(" in lower else ""
            update = f" ON UPDATE CURRENT_TIMESTAMP{digits}" if rng.random() < 0.4 else ""
            return f"DEFAULT CURRENT_TIMESTAMP{digits}{update}"
        kind = lower.split(" character set ")
        if len(kind) > 1 or lower.startswith(("char", "varchar", "nchar", "national", "nvarchar")):
            return "DEFAULT " + rng.choice(("''", "'a'", "'x y'", "'0'", "'abc'"))
        if lower.startswith(("enum", "set")):
            return f"DEFAULT {quoted(rng.choice(Column('x', data_type).labels))}"
        if lower.startswith(("bool", "serial")):
            return rng.choice(("DEFAULT TRUE", "DEFAULT 0", "DEFAULT 1", "DEFAULT FALSE"))
        if lower.startswith("bit"):
            return "DEFAULT b'1'"
        if lower.startswith(("float", "real", "double")):
            return "DEFAULT " + rng.choice(("0", "1.5", "'2.25'", "-3", "1e3", "0.001"))
        if lower.startswith(("dec", "num", "fixed")):
            return "DEFAULT " + rng.choice(("0", "1", "'0'", "1.0", "0.5" if "," in lower else "7"))
        column = Column("x", lower.replace("integer", "int").replace("int1", "tinyint"), nullable=False)
        text = self._values.of(column)
        return f"DEFAULT {text}" if rng.random() < 0.7 or text.startswith("'") else f"DEFAULT '{text}'"

    def data_type(self) -> str:
        """A data type."""
        rng = self._rng
        sign = rng.choice(("", "", "", " UNSIGNED", " UNSIGNED ZEROFILL"))
        unsigned = rng.choice(("", "", " UNSIGNED"))
        fsp = rng.choice(("", "", "(1)", "(3)", "(6)", "(4)"))
        srids = ("",) if self._mariadb else ("", "", " SRID 4326", " SRID 0")
        number = rng.choice((1, 3, 10, 40, 191, 255))
        makers = (
            (12, lambda: rng.choice(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "INTEGER", "BIGINT", "INT")) + sign),
            (2, lambda: rng.choice(("BOOL", "BOOLEAN", "TINYINT(1)", "BIT", "BIT(1)", f"BIT({rng.randint(2, 64)})"))),
            (5, lambda: rng.choice(("DECIMAL", "NUMERIC", "DEC", "FIXED")) + f"({rng.choice(_SIZES)})" + unsigned),
            (1, lambda: rng.choice(("DECIMAL", "NUMERIC(10)", "DECIMAL(8) UNSIGNED"))),
            (5, lambda: rng.choice(("FLOAT", "FLOAT(7,3)", "FLOAT(30)", "FLOAT(10)", "DOUBLE", "DOUBLE PRECISION",
                                    "DOUBLE(10,2)", "REAL")) + unsigned),
            (9, lambda: rng.choice(("TIMESTAMP", "DATETIME", "TIME")) + fsp),
            (4, lambda: rng.choice(("DATE", "DATE", "YEAR"))),
            (14, lambda: self._text(number)),
            (6, lambda: rng.choice((f"BINARY({number})", f"VARBINARY({number})", "BINARY", "BLOB", "TINYBLOB",
                                    "MEDIUMBLOB", "LONGBLOB"))),
            (4, self._labels),
            (2, lambda: rng.choice(_SPATIAL) + rng.choice(srids)),
            (3, lambda: "JSON"),
            (1, lambda: "UUID" if self._mariadb else f"VECTOR({rng.randint(1, 6)})"),
        )  # fmt: skip
        return str(rng.choices([maker for _, maker in makers], [weight for weight, _ in makers])[0]())

    def _text(self, number: int) -> str:
        rng = self._rng
        kind = rng.choice((f"VARCHAR({number})", f"CHAR({number})", f"VARCHAR({number})", "TEXT", "TINYTEXT",
                           "MEDIUMTEXT", "LONGTEXT", f"NCHAR({number})", f"NVARCHAR({number})", "CHAR",
                           "VARCHAR(1000)"))  # fmt: skip
        if kind.startswith("N") or rng.random() < 0.6:
            return kind
        return kind + self._charset()

    def _charset(self) -> str:
        charset = self._rng.choice(sorted(CHARSETS))
        return f" CHARACTER SET {charset}" + (f" COLLATE {CHARSETS[charset][0]}" if self._rng.random() < 0.3 else "")

    def _labels(self) -> str:
        labels: Sequence[str] = self._rng.sample(_LABELS, self._rng.randint(1, 5))
        return f"{self._rng.choice(('ENUM', 'SET'))}({','.join(map(quoted, labels))})"


def _may_be_key(data_type: str) -> bool:
    lower = data_type.lower()
    return not (
        any(part in lower for part in _NO_DEFAULT)
        or lower.upper().startswith(_SPATIAL)
        or "1000" in lower
        or "255" in lower
    )
