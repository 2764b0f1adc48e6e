"""The known differences between the streamed records of rowtide and Debezium, with class and reason.

The classes are ``damage`` (Debezium loses or changes a value, rowtide does not) and ``stops`` (Debezium stops, rowtide
continues). Another notation of the same value is never a known difference. The text that rowtide writes is asserted
exactly, by replacing it in the recorded message; a replacement that does not occur fails the test.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.recordings.golden import Written


@dataclass(frozen=True)
class Difference:
    """One difference.

    Attributes:
        recorded: the text in recorded keys and values.
        written: the text that rowtide writes instead.
        reason: the reason.
        damage: whether it is of the class ``damage``.
    """

    recorded: str
    written: str
    reason: str
    damage: bool = True


_YEAR = "YEAR 0 is 0; Debezium writes 1900"
_UUID = "MariaDB omits the trailing zero bytes of a UUID; Debezium adds them in front"
_ADD_IF = "ADD COLUMN IF NOT EXISTS does not change an existing column; Debezium adds it a second time"
_EMOJI = "the server stores ? for characters of names beyond the BMP"
_UCS2 = "the column has character set ucs2, by CREATE TABLE LIKE and CONVERT"
_HEX = "a hexadecimal default has its value; Debezium uses the digits without the last one"
_BIT = (
    '"length":8,"scale":null,"position":22,"optional":true,"autoIncremented":false,"generated":false,"comment":null,'
    '"defaultValueExpression":'
)
HEX_TEXT = Difference('"697427732022C3A922205C20F09F988"', '"it\'s \\"é\\" \\\\ \\uD83D\\uDE00"', _HEX)
HEX_BYTES = Difference(
    '"default":"4142303030303030303030","field":"f"',
    '"field":"f"',
    "a hexadecimal default that is not valid text is omitted; Debezium uses the digits without the last one",
)
_ROUNDED = "the default of a BIGINT has all its digits; Debezium rounds it to a double"
_NULL_WORD = "ALTER ... SET DEFAULT NULL removes the default; Debezium sets it to the text null"
_LABELS = "the server stores ? for characters that the character set of a label cannot encode"
_NANOS = "a DATETIME before 1677 or after 2262 does not fit into a number of nanoseconds; in Debezium 3.5 it overflows"
_SIGNED = "INTEGER UNSIGNED is INT UNSIGNED; Debezium 3.5 treats it as signed"
_SECOND = "in ADD COLUMN (a INT NOT NULL, b INT), b is nullable; Debezium applies the NOT NULL of a to it"


def _counted(events: int) -> str:
    return f'[{{"data_collection":"mc.t","event_count":{events}}}]' if events else "[]"


_LATIN1 = "JdbcSinkDataTypesConverter uses the column's character set; Debezium's reads all text as UTF-8"
DIFFERENCES: dict[str, list[Difference]] = {
    "column-converters": [
        Difference(
            '"id":1,"flag_a":1,"flag_n":0,"real_a":1.25,"real_d":2.5,"real_f":3.5,"text_a":"a","text_l":"\ufffd"',
            '"id":1,"flag_a":1,"flag_n":0,"real_a":1.25,"real_d":2.5,"real_f":3.5,"text_a":"a","text_l":"ä"',
            _LATIN1,
        ),
        Difference(
            '"flag_a":0,"flag_n":0,"real_a":1.25,"real_d":2.5,"real_f":3.5,"text_a":"a","text_l":"\ufffd"',
            '"flag_a":0,"flag_n":0,"real_a":1.25,"real_d":2.5,"real_f":3.5,"text_a":"a","text_l":"é"',
            _LATIN1,
        ),
        Difference('"text_l":"\ufffd"', '"text_l":"ä"', _LATIN1),
        Difference(
            '"text_e":"1"',
            '"text_e":"a"',
            "JdbcSinkDataTypesConverter gives the label of an ENUM; Debezium's its number",
        ),
    ],
    "temporal-types": [
        Difference('"y":1900', '"y":0', _YEAR),
        Difference('"yn":1900', '"yn":0', _YEAR),
    ],
    "binary-as-hex": [HEX_BYTES],
    "defaults-in-schemas": [
        Difference('"y0":1900', '"y0":0', _YEAR),
        HEX_TEXT,
        Difference(_BIT + '"0"', _BIT + '"1111"', _HEX),
        Difference('"default":"AA==","field":"b8x"', '"default":"Dw==","field":"b8x"', _HEX),
        Difference('"defaultValueExpression":"010"', '"defaultValueExpression":"\\u0001\\u0002\\u0000\\u0000"', _HEX),
        Difference('"default":"MDEw","field":"b2"', '"default":"AQIAAA==","field":"b2"', _HEX),
    ],
    "strings-and-charsets": [
        Difference('"sj":"＼"', '"sj":"\\\\"', "sjis 0x5C is a backslash, as in the server"),
        Difference(
            "€" + "\ufffd" * 5,
            "€\x81\x8d\x8f\x90\x9d",
            "MySQL's latin1 has characters for the five undefined bytes of cp1252",
        ),
    ],
    "enum-set-json": [
        Difference("ünï,?, sp", "ünï,\\uD83D\\uDE00, sp", "a label with an emoji, which SHOW CREATE TABLE shows as ?"),
        Difference('"e":"?"', '"e":"\\uD83D\\uDE00"', "a value with that label"),
        Difference("13:0-35:0-57.00000-5", "-12:34:56.5", "a negative TIME in JSON"),
    ],
    "masking": [
        Difference(
            '"b":"\\uD83D\\uDE00\\uD83D"',
            '"b":"\\uD83D\\uDE00"',
            "a text truncated to three UTF-16 units does not end inside of a surrogate pair",
        ),
    ],
    "ddl-stream": [
        Difference('"u":"\\u0000u"', '"u":"u"', _UCS2),
        Difference(
            '"v":"\x9e"', '"v":"ž"', "the database has character set cp1250, by a collation without a character set"
        ),
    ],
    "weird-names": [
        Difference('"table":"\\uD83D\\uDE00x"', '"table":"?x"', _EMOJI),
        Difference('\\"\\uD83D\\uDE00x\\"', '\\"?x\\"', _EMOJI),
        Difference('["\\uD83D\\uDE00"]', '["?"]', _EMOJI),
        Difference('"name":"\\uD83D\\uDE00"', '"name":"?"', _EMOJI),
    ],
    "mariadb-ddl": [
        Difference(
            '"name":"v","jdbcType":4,"nativeType":null,"typeName":"INT","typeExpression":"INT","charsetName":null,'
            '"length":null',
            '"name":"v","jdbcType":12,"nativeType":null,"typeName":"VARCHAR","typeExpression":"VARCHAR",'
            '"charsetName":"utf8mb4","length":10',
            _ADD_IF,
        ),
        Difference(
            '{"type":"int32","optional":true,"field":"v"}', '{"type":"string","optional":true,"field":"v"}', _ADD_IF
        ),
        *(
            Difference(f'"id":{number},"v":null', f'"id":{number},"v":"{value}"', _ADD_IF)
            for number, value in (
                (2, "b"),
                (3, "c"),
                (5, "seq"),
                (6, "swapped"),
                (8, "x"),
                (10, "z"),
                (11, "stmt"),
                (12, "ignored"),
            )
        ),
    ],
    "mariadb-compressed-binlog": [
        Difference(
            f'"id":"0-1-{transaction}","event_count":{recorded},"data_collections":{_counted(recorded)}',
            f'"id":"0-1-{transaction}","event_count":{count},"data_collections":{_counted(count)}',
            "compressed rows are counted",
        )
        for transaction, recorded, count in ((4, 0, 2), (5, 0, 3), (6, 1, 2), (7, 0, 1))
    ],
    "rare-charsets": [
        Difference('"o":"²"', '"o":"Ա"', "armscii8 is Armenian; Debezium decodes it as latin1"),
        Difference('"p":"À"', '"p":"ა"', "geostd8 is Georgian; Debezium decodes it as latin1"),
        Difference('"r":"`"', '"r":"é"', "swe7 has é instead of a backtick"),
    ],
    "ddl-and-filters": [
        Difference(
            '"table":{"defaultCharsetName":"latin1","primaryKeyColumnNames":[],"columns":[{"name":"a b"',
            '"table":{"defaultCharsetName":"utf8mb4","primaryKeyColumnNames":[],"columns":[{"name":"a b"',
            "a database created without a character set has that of the server; Debezium uses that of the last USE",
        ),
    ],
    "mariadb-defaults-and-transactions": [
        Difference("0000123e-4567-e89b-12d3-a45642665544", "123e4567-e89b-12d3-a456-426655440000", _UUID),
    ],
    "damaged-by-statements": [
        Difference("187063679863644032", "187063679863644046", _ROUNDED),
        Difference('"defaultValueExpression":"null"', '"defaultValueExpression":null', _NULL_WORD),
        Difference('"optional":true,"default":"null","field":"v"', '"optional":true,"field":"v"', _NULL_WORD),
        Difference('"v":"null"', '"v":null', _NULL_WORD),
        Difference(
            '"w":"á"', '"w":"ב"', "the column has character set hebrew, by ALTER TABLE ... DEFAULT CHARACTER SET"
        ),
        Difference('"s":"a,日"', '"s":"a,?"', _LABELS),
        Difference('"e":"日"', '"e":"?"', _LABELS),
    ],
    "mariadb-damaged-by-statements": [
        Difference("187063679863644032", "187063679863644046", _ROUNDED),
        Difference('"d":3614974473709551616', '"d":null', _NANOS),
        Difference(
            '{"type":"int32","optional":true,"field":"n"}', '{"type":"int64","optional":true,"field":"n"}', _SIGNED
        ),
        Difference('"n":-294967296', '"n":4000000000', _SIGNED),
        Difference('"position":3,"optional":false', '"position":3,"optional":true', _SECOND),
        Difference(
            '{"type":"int32","optional":false,"field":"y"}', '{"type":"int32","optional":true,"field":"y"}', _SECOND
        ),
        Difference('"y":0', '"y":null', _SECOND),
    ],
    "mariadb-types": [
        Difference("0000123e-4567-e89b-12d3-a45642665544", "123e4567-e89b-12d3-a456-426655440000", _UUID),
    ],
}


@dataclass(frozen=True)
class Lost:
    """A record that Debezium loses.

    Attributes:
        topic: its topic without the prefix.
        place: its index among rowtide's records of the topic.
        before: the before image.
        after: the after image.
    """

    topic: str
    place: int
    before: dict[str, Any] | None
    after: dict[str, Any] | None


_LONG = '"s":"a long enough string to make partial updates worth it for the server"}'
_Y = '"pad":"' + "y" * 44 + '"}'
_X = '"pad":"' + "x" * 44 + '"}'


def _pj(place: int, before: tuple[int, int, str, str | None], after: tuple[int, int, str, str | None]) -> Lost:
    names = ("id", "v", "j", "k")
    return Lost("pj.t", place, *(dict(zip(names, row, strict=True)) for row in (before, after)))


def _mc(place: int, number: int, before: str | None, after: str) -> Lost:
    return Lost("mc.t", place, None if before is None else {"id": number, "v": before}, {"id": number, "v": after})


_ONE = '{"a":100,"b":{"c":[1,2,3]},' + _LONG, '{"a":100,"b":{"c":[1,"z",3]},' + _LONG
LOST: dict[str, list[Lost]] = {
    # Every update under binlog_row_value_options=PARTIAL_JSON; rowtide applies the differences to the before image.
    "json-partial-update": [
        _pj(1, (1, 1, '{"a":1,"b":{"c":[1,2,3]},' + _LONG, "[1,2]"), (1, 1, _ONE[0], "[1,2]")),
        _pj(2, (1, 1, _ONE[0], "[1,2]"), (1, 1, _ONE[1], "[1,2]")),
        _pj(3, (2, 2, '{"a":2,' + _X, None), (2, 2, "{" + _X, None)),
        _pj(4, (1, 1, _ONE[1], "[1,2]"), (1, 2, _ONE[1], "[1,2]")),
        _pj(5, (2, 2, "{" + _X, None), (2, 3, "{" + _X, None)),
        _pj(6, (3, 3, '{"a":3,' + _Y, "{}"), (3, 4, '{"a":3,' + _Y, "{}")),
        _pj(7, (3, 4, '{"a":3,' + _Y, "{}"), (3, 4, '{"whole":1}', "{}")),
        _pj(8, (2, 3, "{" + _X, None), (2, 4, '{"x":1,' + _X, "[9]")),
    ],
    # Rows events that MariaDB compressed.
    "mariadb-compressed-binlog": [
        _mc(0, 2, None, "b" * 500),
        _mc(1, 3, None, "c" * 900),
        _mc(2, 1, "a", "ua"),
        _mc(3, 2, "b" * 500, "u" + "b" * 300),
        _mc(4, 3, "c" * 900, "u" + "c" * 300),
    ],
}
"""The records that Debezium loses in the stream of a case, and their indexes in rowtide's."""

PHANTOMS: dict[str, tuple[str, dict[str, tuple[int, ...]]]] = {
    "topics-that-clash": (
        "two tables whose topic names become equal after sanitising: Debezium writes both into one topic",
        {"tc.a_b": (2, 6)},
    ),
    "xa-rolled-back": (
        "Debezium writes the rows of XA transactions that are rolled back",
        {"xr.t": (1, 2, 3, 4), "xr.u": (0,)},
    ),
    "mariadb-values-of-statements": (
        "Debezium writes the rows of transactions that are rolled back, wholly or to a savepoint",
        {"vs.t2": (3,)},
    ),
}
"""The records that only Debezium writes in the stream of a case, by topic without prefix and index."""

MORE: dict[str, tuple[str, ...]] = {
    "geometry-format": (
        "Debezium stops at a geometry without a reference system",
        '"after":{"id":12,"geo":{"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":null},"p":null}',
    ),
    "damaged-by-statements": (
        "Debezium stops at ALTER TABLE that moves a column with a capital letter in its name",
        '"after":{"id":2,"z":3,"Name":4}',
    ),
    "fails-ansi-quotes": (
        "Debezium stops at DDL under ANSI_QUOTES",
        '"after":{"id":2,"v":"y","w z":2}',
        '"after":{"id":3}',
    ),
    "fails-backtick-in-column-name": (
        "Debezium stops at a column with a backtick in its name",
        '"after":{"id":1,"q`t":2,"\\"dq\\"":3}',
        '"after":{"id":2,"\\"dq\\"":3}',
    ),
    "fails-session-row-image-noblob": (
        "Debezium stops at the first row image without its BLOBs",
        '"tx":"__debezium_unavailable_value"',
        '"tx":"changed"',
    ),
    "fails-unparseable-ddl": ("Debezium stops at ALTER SCHEMA without a name", '"after":{"id":3}'),
    "mariadb-damaged-by-statements": (
        "Debezium stops at the hidden column of a unique key of long columns",
        '"after":{"id":1,"b":"b25l"}',
        '"before":{"id":1,"b":"b25l"}',
    ),
    "mariadb-fails-create-or-replace": (
        "Debezium ignores CREATE OR REPLACE, and stops at the next rows of the table",
        '"after":{"id":1,"a":"same"}',
        '"after":{"x":5}',
    ),
    "mariadb-fails-executable-comment": (
        "Debezium ignores /*M! */, and stops at the next rows of the table",
        '"after":{"id":4,"a":1,"b":2}',
    ),
    "mariadb-fails-inet4": ("Debezium does not support INET4", '"after":{"id":1,"i4":"10.0.0.1"}', '"after":{"id":3}'),
    "mariadb-fails-sequence": ("Debezium stops at the rows of a sequence", '"after":{"id":3}'),
    "mariadb-compressed-binlog": (
        "Debezium stops at the rows of a table whose CREATE TABLE was compressed",
        '"after":{"id":1,"description":"a long default value to make compression worthwhile"}',
    ),
    "mariadb-system-versioned": (
        "Debezium stops at the hidden columns of a system-versioned table",
        '"after":{"id":1,"v":9}',
        '"after":{"id":4}',
    ),
}
"""Cases in which Debezium stopped: rowtide's records start with the recorded ones and continue. Each reason is followed
by parts of the further records."""

STOPS: dict[str, tuple[str, dict[str, str]]] = {
    "topics-that-clash": (
        r"tables tc\.a b and tc\.a\$b would both be written to topic 'topics-that-clash\.tc\.a_b'",
        {"table.exclude.list": r"tc\.a\$b"},
    ),
    "session-row-format-changes": (
        r"changed rows by 'insert into t values \(\?,\?,\?\)' in database 'mx'",
        {"event.processing.failure.handling.mode": "skip"},
    ),
}
"""Cases in which rowtide stops and Debezium loses rows: the error, and the properties with which rowtide continues."""

NOT_REPLAYED: dict[str, str] = {
    "fails-binlog-row-image-minimal": "rejected at the start; see the tests of the check",
    "fails-statement-format": "rejected at the start; see the tests of the check",
    "fails-decimal-zerofill-snapshot": "Debezium's snapshot failed: there is no stream",
    "mariadb-fails-inet6": "Debezium's snapshot failed: there is no stream",
    "mariadb-fails-year-zero": "Debezium's snapshot failed: there is no stream",
    "snapshot-initial-only": "the mode never streams",
    "restart-between-stages": "its configuration changes at a stop: run by test_recorded_restarts",
}
"""Cases without a stream that can be replayed."""

PENDING: dict[str, str] = {}
"""Cases that do not pass yet, each with what is missing. A case that passes must be removed from this list."""


def put_right(topics: Mapping[str, list[Written]], differences: Iterable[Difference], case: str) -> None:
    """Replace the known differences in recorded messages; each of them must occur."""
    for known in differences:
        replaced = 0
        for messages in topics.values():
            for place, message in enumerate(messages):
                key, value = (
                    None if text is None else text.replace(known.recorded, known.written)
                    for text in (message.key, message.value)
                )
                if (key, value) != (message.key, message.value):
                    replaced += 1
                    messages[place] = Written(message.topic, key, value, message.headers)
        assert replaced, f"{known.recorded!r} does not occur in the recorded messages of {case}"
