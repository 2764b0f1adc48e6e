"""Tables with a column of every type, and rows of random values for them, as SQL."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Sequence

__all__ = ["LOOSE", "RandomRows"]

LOOSE = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"
"""Lets the server store what it makes of any value: zero dates, and numbers and texts that it cuts."""

_ZERO_DATES = 0.1
_ZERO_GROUPS = 0.3

Literal = Callable[[random.Random], str]

_TEXT = "aAbBzZ ßéÉñŁžæøåİıαΩжЯ0189_%'\"\\\0\t\n\u2028あ漢字가\u00a0\u0301€\U0001f600\U00020000"
_GEOMETRIES = (
    "POINT({x} {y})",
    "LINESTRING({x} {y}, 1 1)",
    "POLYGON((0 0, 0 {n}, {n} {n}, {n} 0, 0 0))",
    "MULTIPOINT({x} {y}, {y} {x})",
    "GEOMETRYCOLLECTION(POINT({x} {y}), LINESTRING(0 0, {x} 5))",
)


def _hex(data: bytes) -> str:
    return f"x'{data.hex()}'"


def _whole(bits: int, *, signed: bool) -> Literal:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def literal(chance: random.Random) -> str:
        return str(chance.choice((low, high, 0, chance.randint(low, high), chance.randint(0, 99))))

    return literal


def _decimal(digits: int, scale: int) -> Literal:
    def literal(chance: random.Random) -> str:
        number = chance.randrange(10 ** chance.randint(0, digits))
        text = f"{number:0{scale + 1}d}"
        point = len(text) - scale
        return f"{chance.choice(('', '-'))}{text[:point]}{'.' * (scale > 0)}{text[point:]}"

    return literal


def _floating(chance: random.Random) -> str:
    match chance.randrange(5):
        case 0:
            special = ("-0e0", "0", "16777217", "0.1", "-1e-45", "3.4028234e38", "1.17549435e-38", "1e20", "1e-300")
            return chance.choice((*special, "1.7976931348623157e308", "5e-324", "9007199254740993", "999999.5"))
        case 1:
            return repr(chance.uniform(-1e9, 1e9))
        case 2:
            return f"{chance.randrange(10**9)}e{chance.randint(-44, 29)}"
        case 3:
            return str(chance.randrange(-(10**7), 10**7))
        case _:
            return repr(round(chance.uniform(-1000, 1000), chance.randint(0, 4)))


def _date(chance: random.Random) -> str:
    year = chance.choice(
        (0, 1, 69, 70, 99, 100, 999, 1000, 1582, 1900, 1969, 1970, 2038, 9999, chance.randint(0, 9999))
    )
    return f"{year:04}-{chance.randint(0, 12):02}-{chance.randint(0, 31):02}"


def _time_of_day(chance: random.Random) -> str:
    fraction = chance.choice(("", f".{chance.randrange(10**6):06}", ".999999", ".5", ".000001"))
    return f"{chance.randrange(24):02}:{chance.randrange(60):02}:{chance.randrange(60):02}{fraction}"


def _datetime(chance: random.Random) -> str:
    if chance.random() < _ZERO_DATES:
        return "'0000-00-00 00:00:00'"
    date = chance.choice((_date(chance), f"2024-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}"))
    return f"'{date} {_time_of_day(chance)}'"


def _timestamp(chance: random.Random) -> str:
    return f"FROM_UNIXTIME({chance.choice((1, 2**31 - 1, chance.randrange(1, 2**31)))}.{chance.randrange(10**6):06})"


def _time(chance: random.Random) -> str:
    hours = chance.choice((0, 1, 23, 24, 838, chance.randrange(839)))
    return f"'{chance.choice(('', '-'))}{hours}{_time_of_day(chance)[2:]}'"


def _text(most: int) -> Literal:
    def literal(chance: random.Random) -> str:
        text = "".join(chance.choices(_TEXT, k=chance.choice((0, 1, 2, chance.randint(0, most)))))
        return f"_utf8mb4 {_hex(text.encode())}"

    return literal


def _bytes(most: int) -> Literal:
    def literal(chance: random.Random) -> str:
        return _hex(
            chance.randbytes(chance.choice((0, 1, most, chance.randint(0, most)))) + b"\0" * chance.randrange(2)
        )

    return literal


def _raw(charset: str, most: int) -> Literal:
    """Any bytes of a character set of one byte, also those without a character."""

    def literal(chance: random.Random) -> str:
        return f"_{charset} {_hex(chance.randbytes(chance.randint(0, most)))}"

    return literal


def _enum(chance: random.Random) -> str:
    return chance.choice(("'a'", "'b,c'", "''", "'it''s'", "'é'", "0", "1", "6"))


def _set(chance: random.Random) -> str:
    return str(chance.randrange(1 << 5))


def _geometry(kinds: Sequence[str]) -> Literal:
    def literal(chance: random.Random) -> str:
        x, y = (chance.choice((0, -1, round(chance.uniform(-1e6, 1e6), 3), 1e-9)) for _ in range(2))
        text = chance.choice(kinds).format(x=x, y=y, n=chance.randint(1, 99))
        return f"ST_GeomFromText('{text}'{chance.choice(('', ', 3857'))})"

    return literal


def _document(chance: random.Random, depth: int = 0) -> object:
    match chance.randrange(9 if depth < 3 else 7):
        case 0:
            return chance.choice((None, True, False))
        case 1:
            return chance.choice((0, -1, 2**31, -(2**31) - 1, 2**53 + 1, 2**63, -(2**63), 2**64 - 1))
        case 2:
            return chance.randrange(-(10**6), 10**6)
        case 3:
            return chance.choice((1.0, -0.0, 1e30, 1e-7, 0.1, 1.5e300, chance.uniform(-1e6, 1e6), chance.random()))
        case 4 | 5 | 6:
            return "".join(chance.choices(_TEXT, k=chance.randint(0, 12)))
        case 7:
            return [_document(chance, depth + 1) for _ in range(chance.randrange(4))]
        case _:
            names = ("a", "b", "aa", "", "é", "A", "a.b", "漢")
            return {name: _document(chance, depth + 1) for name in chance.sample(names, chance.randrange(5))}


def _json(chance: random.Random) -> str:
    text = json.dumps(_document(chance), ensure_ascii=chance.random() < 0.5)
    return f"CONVERT({_hex(text.encode())} USING utf8mb4)"


def _json_of_types(chance: random.Random) -> str:
    """A document with values of SQL, which MySQL keeps with their types."""
    parts = (
        f"CAST({_decimal(65, 30)(chance)} AS DECIMAL(65,30))",
        f"CAST({_datetime(chance)} AS DATETIME(6))",
        f"CAST({_time(chance)} AS TIME(6))",
        f"CAST('2024-0{chance.randint(1, 9)}-0{chance.randint(1, 9)}' AS DATE)",
        f"CAST({_bytes(99)(chance)} AS BINARY)",
        _floating(chance),
        _whole(64, signed=False)(chance),
    )
    return f"JSON_OBJECT('k', {chance.choice(parts)}, 'l', JSON_ARRAY({', '.join(chance.sample(parts, 2))}))"


def _vector(chance: random.Random) -> str:
    numbers = [chance.choice((0, -1, 0.1, round(chance.uniform(-1e3, 1e3), 4), 1e-30)) for _ in range(3)]
    return f"STRING_TO_VECTOR('{json.dumps(numbers)}')"


def _uuid(chance: random.Random) -> str:
    text = chance.randbytes(16).hex()
    return f"'{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}'"


def _inet4(chance: random.Random) -> str:
    return f"'{'.'.join(str(chance.choice((0, 255, chance.randrange(256)))) for _ in range(4))}'"


def _inet6(chance: random.Random) -> str:
    groups = b"".join(bytes(2) if chance.random() < _ZERO_GROUPS else chance.randbytes(2) for _ in range(8))
    return chance.choice(("'::'", "'::ffff:1.2.3.4'", "'::1.2.3.4'", f"INET6_NTOA({_hex(groups)})"))


_COLUMNS: dict[str, Literal] = {
    "TINYINT": _whole(8, signed=True),
    "TINYINT(1)": _whole(8, signed=True),
    "TINYINT UNSIGNED": _whole(8, signed=False),
    "SMALLINT": _whole(16, signed=True),
    "MEDIUMINT": _whole(24, signed=True),
    "MEDIUMINT UNSIGNED": _whole(24, signed=False),
    "INT": _whole(32, signed=True),
    "INT(12) UNSIGNED ZEROFILL": _whole(32, signed=False),
    "BIGINT": _whole(64, signed=True),
    "BIGINT UNSIGNED": _whole(64, signed=False),
    "DECIMAL(65,30)": _decimal(65, 30),
    "DECIMAL(5,0)": _decimal(5, 0),
    "DECIMAL(10,2) UNSIGNED": _decimal(10, 2),
    "DECIMAL(30,30)": _decimal(30, 30),
    "FLOAT": _floating,
    "FLOAT(9,3)": _floating,
    "FLOAT UNSIGNED": _floating,
    "DOUBLE": _floating,
    "DOUBLE(20,5)": _floating,
    "BIT(1)": _whole(1, signed=False),
    "BIT(13)": _whole(13, signed=False),
    "BIT(64)": _whole(64, signed=False),
    "DATE": lambda chance: f"'{chance.choice((_date(chance), _date(chance), '0000-00-00'))}'",
    "DATETIME": _datetime,
    "DATETIME(2)": _datetime,
    "DATETIME(6)": _datetime,
    "TIMESTAMP NULL": _timestamp,
    "TIMESTAMP(3) NULL": _timestamp,
    "TIMESTAMP(6) NULL": lambda chance: chance.choice(("0", _timestamp(chance))),
    "TIME": _time,
    "TIME(2)": _time,
    "TIME(6)": _time,
    "YEAR": lambda chance: str(chance.choice((0, 1901, 2155, chance.randint(1901, 2155)))),
    "CHAR(10) CHARACTER SET latin1": _raw("latin1", 10),
    "VARCHAR(30) CHARACTER SET cp1251": _raw("cp1251", 30),
    "VARCHAR(30) CHARACTER SET koi8r": _text(30),
    "CHAR(7) CHARACTER SET utf16": _text(7),
    "CHAR(9) CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci": _text(9),
    "VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin": _text(60),
    "VARCHAR(20) CHARACTER SET sjis": _text(20),
    "VARCHAR(20) CHARACTER SET gbk": _text(20),
    "VARCHAR(20) CHARACTER SET euckr": _text(20),
    "VARCHAR(20) CHARACTER SET ascii": _text(20),
    "TINYTEXT CHARACTER SET utf8mb3": _text(40),
    "TEXT CHARACTER SET utf8mb4": _text(300),
    "LONGTEXT CHARACTER SET ucs2": _text(20),
    "TEXT CHARACTER SET utf32": _text(20),
    "BINARY(6)": _bytes(6),
    "VARBINARY(20)": _bytes(20),
    "TINYBLOB": _bytes(30),
    "BLOB": _bytes(300),
    "LONGBLOB": _bytes(5),
    r"ENUM('a','b,c','','it''s','é','back\\slash') CHARACTER SET utf8mb4": _enum,
    r"SET('a','b','it''s','é','x\\y') CHARACTER SET utf8mb4": _set,
    "JSON": _json,
    "GEOMETRY": _geometry(_GEOMETRIES),
    "POINT": _geometry(_GEOMETRIES[:1]),
}
_OF_SERVERS: dict[str, dict[str, Literal]] = {
    "mysql": {"VECTOR(3)": _vector, "JSON ": _json_of_types},
    "mariadb": {"UUID": _uuid, "INET4": _inet4, "INET6": _inet6},
}
_NULLS = 0.05


class RandomRows:
    """A table with a column of every type of a server.

    Its key has texts that a collation takes for others, and each row another number.

    Args:
        server: ``mysql`` or ``mariadb``.
        name: the name of the table.
        seed: of the values.
    """

    def __init__(self, server: str, name: str, seed: int) -> None:
        self._columns = _COLUMNS | _OF_SERVERS[server]
        self._name, self._chance = name, random.Random(seed)
        self._text = _text(12)
        self._last = 0

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self._columns) + 2

    @property
    def table(self) -> str:
        """The statement that creates the table."""
        columns = "".join(f"c{number} {kind}, " for number, kind in enumerate(self._columns))
        return (
            f"CREATE TABLE {self._name} (id BIGINT UNSIGNED, code VARCHAR(20) CHARACTER SET utf8mb4 COLLATE "
            f"utf8mb4_general_ci, {columns}PRIMARY KEY (id, code)) ROW_FORMAT=DYNAMIC"
        )

    def inserts(self, rows: int, together: int = 100) -> Iterator[str]:
        """Yield the statements that insert rows."""
        for begin in range(0, rows, together):
            values = (self._row() for _ in range(begin, min(rows, begin + together)))
            yield f"INSERT IGNORE INTO {self._name} VALUES {', '.join(values)}"

    def changes(self, number: int) -> Iterator[str]:
        """Yield statements that change rows, their keys to equal ones of the collation too, and delete some."""
        columns = list(self._columns.values())
        for _ in range(number):
            picked = self._chance.sample(range(len(columns)), 3)
            new = ", ".join(f"c{index} = {columns[index](self._chance)}" for index in picked)
            where = f"id >= {self._key()} ORDER BY id LIMIT 3"
            yield f"UPDATE IGNORE {self._name} SET {new} WHERE {where}"
            yield f"UPDATE IGNORE {self._name} SET code = UPPER(code) WHERE {where}"
            yield f"DELETE FROM {self._name} WHERE id = {self._key()}"

    def _key(self) -> int:
        return self._chance.randint(0, self._last)

    def _row(self) -> str:
        self._last += self._chance.choice((1, 1, 1, 2, 1000))
        chance = self._chance
        values = ("NULL" if chance.random() < _NULLS else literal(chance) for literal in self._columns.values())
        return f"({self._last}, {self._text(chance)}, {', '.join(values)})"
