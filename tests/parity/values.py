"""Random SQL literals for every column type: common values, limits, and unusual values."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass

__all__ = ["CHARSETS", "Column", "Values", "quoted"]

CHARSETS: dict[str, tuple[str, str]] = {
    "utf8mb4": ("utf8mb4_bin", "abcžЖ中日€😀ßé\u0301👨‍👩‍👧\u200b"),
    "utf8mb3": ("utf8mb3_bin", "abcžЖ中日€ßé"),
    "latin1": ("latin1_swedish_ci", "abcéÿ€¥üß"),
    "latin2": ("latin2_bin", "abcžłőß"),
    "ascii": ("ascii_bin", "abc~!@#"),
    "cp1250": ("cp1250_bin", "abcž€ő"),
    "cp1251": ("cp1251_bin", "abcПриветЁ"),
    "cp1257": ("cp1257_bin", "abcžūß"),
    "cp850": ("cp850_bin", "abcéüß"),
    "cp852": ("cp852_bin", "abcžłő"),
    "cp866": ("cp866_bin", "abcПривет"),
    "greek": ("greek_bin", "abcΕλληνικά"),
    "hebrew": ("hebrew_bin", "abcעברית"),
    "koi8r": ("koi8r_bin", "abcПривет"),
    "tis620": ("tis620_bin", "abcไทย"),
    "latin5": ("latin5_bin", "abcğış"),
    "latin7": ("latin7_bin", "abcžūß"),
    "ucs2": ("ucs2_bin", "abcžЖ中日€"),
    "utf16": ("utf16_bin", "abcžЖ中日€😀"),
    "utf16le": ("utf16le_bin", "abcžЖ中日€😀"),
    "utf32": ("utf32_bin", "abcžЖ中日€😀"),
    "gbk": ("gbk_bin", "abc汉字简体"),
    "gb2312": ("gb2312_bin", "abc汉字简体"),
    "big5": ("big5_bin", "abc繁體中文"),
    "euckr": ("euckr_bin", "abc한국어"),
    "ujis": ("ujis_bin", "abc日本語"),
    "sjis": ("sjis_bin", "abc日本語表"),
    "cp932": ("cp932_bin", "abc日本語表"),
    "eucjpms": ("eucjpms_bin", "abc日本語"),
    "macce": ("macce_bin", "abcžłő"),
    "macroman": ("macroman_bin", "abcéüß"),
    "dec8": ("dec8_bin", "abcéüß"),
}
"""Character sets with a collation and some of their characters. Those that Debezium decodes wrongly (rare ones, and the
backslash of sjis) are known differences and left out."""

_ODD = ("", " ", "a ", " a", "'", '"', "`", "\\", "\\\\", "\n", "\t", "\r\n", "\0", "\x1a", "%", "_", "NULL", "null",
        "0", "true", "{}", "[]", "a,b", "</x>", "\x7f", "\x01", "$1", "x" * 50)  # fmt: skip
_BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
_POINTS = (
    "POINT(0 0)",
    "POINT(1 1)",
    "POINT(-1.5 2.25)",
    "POINT(0.1 1e-10)",
    "POINT(89.999999 -179.5)",
    "POINT(1e3 7)",
)
_SHAPES = {
    "point": _POINTS,
    "linestring": ("LINESTRING(0 0,1 1)", "LINESTRING(0 0,1 1,2.5 -2)"),
    "polygon": ("POLYGON((0 0,0 10,10 10,10 0,0 0))", "POLYGON((0 0,0 9,9 9,9 0,0 0),(2 2,2 4,4 4,4 2,2 2))"),
    "multipoint": ("MULTIPOINT(0 0,1 1)", "MULTIPOINT(1 2)"),
    "multilinestring": ("MULTILINESTRING((0 0,1 1),(2 2,3 3,4 5))",),
    "multipolygon": ("MULTIPOLYGON(((0 0,0 3,3 3,3 0,0 0)),((5 5,5 6,6 6,6 5,5 5)))",),
    "geomcollection": ("GEOMETRYCOLLECTION(POINT(1 1),LINESTRING(0 0,1 1))", "GEOMETRYCOLLECTION(POINT(0 1))"),
}


def quoted(text: str) -> str:
    """A string literal under the default sql_mode."""
    for char, escape in (("\\", "\\\\"), ("'", "''"), ("\0", "\\0"), ("\x1a", "\\Z")):
        text = text.replace(char, escape)
    return f"'{text}'"


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a server's table.

    Attributes:
        name: its name.
        type: its complete type, such as ``int unsigned``.
        nullable: whether it may be NULL.
        charset: its character set, if it has one.
        generated: whether the server computes it.
        counts: whether it is AUTO_INCREMENT.
        default: whether it may be omitted from an INSERT.
        srid: the only SRID that it accepts.
    """

    name: str
    type: str
    nullable: bool = True
    charset: str | None = None
    generated: bool = False
    counts: bool = False
    default: bool = True
    srid: int | None = None

    @property
    def kind(self) -> str:
        """The type's name."""
        return re.split(r"[ (]", self.type, maxsplit=1)[0].lower()

    @property
    def sizes(self) -> tuple[int, ...]:
        """The numbers in parentheses."""
        found = re.match(r"\w+\((\d+)(?:,(\d+))?\)", self.type)
        return tuple(int(size) for size in found.groups() if size) if found else ()

    @property
    def is_long(self) -> bool:
        """Whether it is too long for a key."""
        spatial = self.kind in {*_SHAPES, "geometry", "geometrycollection"}
        return spatial or self.kind.endswith(("text", "blob", "json")) or bool(self.sizes and self.sizes[0] > 300)

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of an ENUM or SET."""
        return tuple(label.replace("''", "'") for label in re.findall(r"'((?:[^']|'')*)'", self.type))


class Values:
    """Generates literals.

    Args:
        rng: the random number generator.
        mariadb: whether the server is MariaDB.
    """

    def __init__(self, rng: random.Random, *, mariadb: bool) -> None:
        self._rng = rng
        self._mariadb = mariadb

    def of(self, column: Column, *, null: float = 0.12) -> str:
        """A value for a column."""
        if column.nullable and self._rng.random() < null:
            return "NULL"
        kind = column.kind
        if kind in _BITS:
            return self.integer(_BITS[kind], unsigned="unsigned" in column.type)
        maker = getattr(self, f"_{_MAKERS.get(kind, kind)}")
        return str(maker(column))

    def integer(self, bits: int, *, unsigned: bool) -> str:
        """An integer."""
        low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if unsigned and bits == 64 and self._rng.random() < 0.7:
            high = 2**63 - 1
        near = [low, high, low + 1, high - 1, 0, 1, 2, 9, 10, 100]
        chosen = self._rng.choice(near) if self._rng.random() < 0.5 else self._rng.randint(low, high)
        return str(chosen)

    def text(self, charset: str | None, length: int) -> str:
        """A text of a character set with at most a number of characters."""
        if length == 0:
            return quoted("")
        chance = self._rng.random()
        repertoire = CHARSETS.get(charset or "utf8mb4", ("", "abc"))[1]
        if chance < 0.3:
            found = self._rng.choice(_ODD)
            if charset == "sjis":
                found = found.replace("\\", "/")
        elif chance < 0.36:
            found = "".join(self._rng.choice(repertoire) for _ in range(min(length, 400)))
        else:
            found = "".join(self._rng.choice(repertoire + " 01") for _ in range(self._rng.randint(0, 12)))
        return quoted(found[:length])

    def _decimal(self, column: Column) -> str:
        precision, scale = (*(column.sizes or (10, 0)), 0)[:2]
        whole = precision - scale
        digits = "".join(self._rng.choice("0123456789") for _ in range(precision))
        found = self._rng.choice(
            (
                "0",
                "9" * precision,
                digits,
                digits[: self._rng.randint(1, precision)].rjust(precision, "0"),
                "1".rjust(precision, "0"),
                "5".ljust(precision, "0"),
            )
        ).rjust(precision, "0")
        if "zerofill" in column.type:
            found = "0" + found[1:]
        text = (found[:whole] or "0") + ("." + found[whole:] if scale else "")
        return text if "unsigned" in column.type or self._rng.random() < 0.6 else f"-{text}"

    def _float(self, column: Column) -> str:
        if column.sizes[1:]:
            return self._decimal(column)
        texts = ["0", "1", "1.5", "0.1", "3.14159", "123456.7", "16777216", "1e10", "1e-10", "3.402823e38",
                 "1.17549e-38", "0.30000001192092896", str(round(self._rng.uniform(0, 1000), self._rng.randint(0, 6))),
                 repr(self._rng.random() * 10 ** self._rng.randint(-20, 20))]  # fmt: skip
        return self._signed(column, self._rng.choice(texts))

    def _double(self, column: Column) -> str:
        if column.sizes[1:]:
            return self._decimal(column)
        texts = ["0", "1", "0.1", "3.141592653589793", "1e15", "1e16", "123456789012345680", "1.7976931348623157e308",
                 "2.2250738585072014e-308", "1e-5", "0.001", "1e7", "9999999.999", "4.9406564584124654e-300", "1e21",
                 repr(self._rng.random() * 10 ** self._rng.randint(-30, 30))]  # fmt: skip
        return self._signed(column, self._rng.choice(texts))

    def _signed(self, column: Column, text: str) -> str:
        return text if "unsigned" in column.type or self._rng.random() < 0.7 else f"-{text}"

    def _bit(self, column: Column) -> str:
        length = (column.sizes or (1,))[0]
        value = self._rng.choice((0, 1, 2**length - 1, 2 ** (length - 1), self._rng.getrandbits(length)))
        return f"b'{value:b}'"

    def _char(self, column: Column) -> str:
        return self.text(column.charset, column.sizes[0] if column.sizes else 1)

    def _texts(self, column: Column) -> str:
        text = self.text(column.charset, 60)
        if column.kind in ("text", "mediumtext", "longtext") and self._rng.random() < 0.04:
            return f"REPEAT({text}, {self._rng.choice((100, 1000))})"
        return text

    def _binary(self, column: Column) -> str:
        length = column.sizes[0] if column.sizes else 40
        chance = self._rng.random()
        size = self._rng.randint(0, min(length, 40))
        found = (
            bytes([0] * size) if chance < 0.1 else bytes([255] * size) if chance < 0.2 else self._rng.randbytes(size)
        )
        return f"x'{found.hex()}'"

    def _date(self, column: Column) -> str:
        return quoted(self._day())

    def _day(self) -> str:
        if self._rng.random() < 0.02:
            return self._rng.choice(("0000-00-00", "2020-00-10", "2020-10-00", "0000-10-10"))  # if sql_mode permits it
        if self._rng.random() < 0.4:
            return self._rng.choice(("1000-01-01", "9999-12-31", "1970-01-01", "1969-12-31", "2000-02-29", "1582-10-10",
                                     "1900-01-01", "0069-06-07", "0100-03-04", "2038-01-19", "1752-09-14"))  # fmt: skip
        return f"{self._rng.randint(1000, 9999):04}-{self._rng.randint(1, 12):02}-{self._rng.randint(1, 28):02}"

    def _clock(self, fraction: int) -> str:
        hms = self._rng.choice(("00:00:00", "23:59:59", "12:34:56", f"{self._rng.randint(0, 23):02}:01:59"))
        return hms + self._fraction(fraction)

    def _fraction(self, digits: int) -> str:
        if not digits:
            return ""
        text = self._rng.choice(
            ("", "1", "5", "12", "123", "000001", "999999", "100", f"{self._rng.getrandbits(19):06}")
        )
        return "." + text[:digits].ljust(digits, "0") if text else ""

    def _time(self, column: Column) -> str:
        digits = (column.sizes or (0,))[0]
        if self._rng.random() < 0.3:
            text = self._rng.choice(("838:59:59", "-838:59:59", "24:00:00", "-00:00:01", "100:00:00", "-12:34:56"))
            return quoted(text + (self._fraction(digits) if "838" not in text else ""))
        return quoted(self._clock(digits))

    def _datetime(self, column: Column) -> str:
        digits = (column.sizes or (0,))[0]
        return quoted(f"{self._day()} {self._clock(digits)}")

    def _timestamp(self, column: Column) -> str:
        digits = (column.sizes or (0,))[0]
        if self._rng.random() < 0.3:
            return quoted(self._rng.choice(("1970-01-02 00:00:01", "2038-01-18 03:14:07", "2000-02-29 12:00:00")))
        year, month, day = self._rng.randint(1971, 2037), self._rng.randint(1, 12), self._rng.randint(1, 28)
        return quoted(f"{year}-{month:02}-{day:02} {self._clock(digits)}")

    def _year(self, column: Column) -> str:
        return str(self._rng.choice((1901, 1970, 2000, 2024, 2069, 2155, self._rng.randint(1901, 2155))))

    def _enum(self, column: Column) -> str:
        if self._rng.random() < 0.03:
            return "'no such label'"  # the empty label, if sql_mode permits it
        return quoted(self._rng.choice(column.labels))

    def _set(self, column: Column) -> str:
        labels = [label for label in column.labels if label]
        chosen = [label for label in labels if self._rng.random() < 0.5]
        return quoted(",".join(chosen))

    def _json(self, column: Column) -> str:
        if self._mariadb:
            return quoted(self.json())
        chance = self._rng.random()
        if chance < 0.2:
            return self._rng.choice(
                (
                    "CAST(CAST('2020-01-02 03:04:05.678' AS DATETIME(3)) AS JSON)",
                    "CAST(CAST('12:34:56.5' AS TIME(1)) AS JSON)",
                    "JSON_OBJECT('d', DATE'2020-01-02', 'n', 1.50, 'e', 1e10)",
                    "JSON_ARRAY(1.10, -0.005, 12345678901234567890.123, TRUE, NULL)",
                    "JSON_ARRAY(CAST('2020-01-02' AS DATE), CAST(18446744073709551615 AS UNSIGNED), -1)",
                    "CAST(1.5 AS JSON)",
                    "JSON_OBJECT('k', CAST(1 AS DECIMAL(65,30)))",
                )
            )
        return quoted(self.json())

    def json(self, depth: int = 0) -> str:
        """A JSON document."""
        kind = self._rng.choice("oasnibx" if depth < 3 else "snib")
        if kind == "o":
            names = self._rng.sample(
                ("a", "b", "key", "ü", "x y", "", "日本", "Z", "aa", '\\"', "10"), self._rng.randint(0, 4)
            )
            return "{" + ", ".join(f'"{name}": {self.json(depth + 1)}' for name in names) + "}"
        if kind in "ax":
            return "[" + ", ".join(self.json(depth + 1) for _ in range(self._rng.randint(0, 4))) + "]"
        if kind == "s":
            return (
                '"' + self._rng.choice(("", "a", "ü😀", "\\n", "\\u0001", "\\\\", '\\"', "/", "<>&'", "x" * 130)) + '"'
            )
        if kind == "n":
            return self._rng.choice(("0.5", "1e10", "-1.25", "1e-7", "123456.789", "1.0", "1e100", "0.1", "3.0e5"))
        if kind == "i":
            return str(self._rng.choice((0, 1, -1, 127, 128, 32767, 32768, -32769, 65536, 2**31, 2**53, 2**63 - 1,
                                         -(2**63), 2**64 - 1, self._rng.getrandbits(31))))  # fmt: skip
        return self._rng.choice(("true", "false", "null"))

    def _geometry(self, column: Column) -> str:
        kind = "geomcollection" if column.kind == "geometrycollection" else column.kind
        if kind == "geometry":
            kind = self._rng.choice(sorted(_SHAPES))
        text = quoted(self._rng.choice(_SHAPES[kind]))
        srid = column.srid if column.srid is not None else self._rng.choice((0, 0, 3857, 4326))
        return f"ST_GeomFromText({text}, {srid})" if srid else f"ST_GeomFromText({text})"

    def _vector(self, column: Column) -> str:
        size = column.sizes[0]
        if not self._mariadb and self._rng.random() < 0.3:
            size = self._rng.randint(1, size)
        numbers = [
            self._rng.choice(("0", "1", "-0.5", "0.1", "1e30", "1.5e-30", "0.333333333", "16777217"))
            for _ in range(size)
        ]
        return f"{'Vec_FromText' if self._mariadb else 'STRING_TO_VECTOR'}('[{','.join(numbers)}]')"

    def _uuid(self, column: Column) -> str:
        text = "".join(self._rng.choice("123456789abcdef") for _ in range(32))
        return quoted(f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}")


_MAKERS = {
    "varchar": "char",
    "tinytext": "texts",
    "text": "texts",
    "mediumtext": "texts",
    "longtext": "texts",
    "varbinary": "binary",
    "tinyblob": "binary",
    "blob": "binary",
    "mediumblob": "binary",
    "longblob": "binary",
    "geometrycollection": "geometry",
    "geomcollection": "geometry",
    "point": "geometry",
    "linestring": "geometry",
    "polygon": "geometry",
    "multipoint": "geometry",
    "multilinestring": "geometry",
    "multipolygon": "geometry",
}
