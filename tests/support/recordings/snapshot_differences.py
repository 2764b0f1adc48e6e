"""The known differences between the snapshots of rowtide and Debezium, as in :mod:`differences` for the stream."""

from tests.support.recordings.differences import DIFFERENCES as STREAMED
from tests.support.recordings.differences import HEX_BYTES, HEX_TEXT, Difference

__all__ = ["DIFFERENCES", "HISTORY", "MORE", "NOT_TAKEN", "SEQUENCES"]

_YEAR = "YEAR 0 is 0; Debezium writes 2000"
_SHIFTED = "Debezium shifts a TIMESTAMP by the difference between the time zones of the connection and the server"
_KEY = "a key column that is excluded from the records: Debezium does not select it, and writes 0 in every key"
_BITS = "a BIT of more than one byte in a key: Debezium's snapshot reverses its bytes twice"
_ROUNDED = "the default of a BIGINT has all its digits; Debezium rounds it to a double"
_NANOS = "a DATETIME before 1677 or after 2262 does not fit into a number of nanoseconds; in Debezium 3.5 it overflows"

_FIRST = "the first value of a nullable column, which Debezium's ZeroDateFallbackConverter replaces"
_EMOJI = STREAMED["enum-set-json"][0].reason

DIFFERENCES: dict[str, list[Difference]] = {
    "binary-as-hex": [
        HEX_BYTES,
        Difference('"defaultValueExpression":"AB000000000"', '"defaultValueExpression":null', HEX_BYTES.reason),
    ],
    "column-converters": [
        Difference('"text_l":"\ufffd"', '"text_l":"ä"', STREAMED["column-converters"][0].reason),
        Difference('"id":1,"d":1,', '"id":1,"d":19782,', _FIRST),
        Difference('"dt":null,"dtn":1709168523000', '"dt":1709168523000,"dtn":1709168523000', _FIRST),
        Difference(
            '"dt4":null,"ts":"1970-01-02T02:04:05Z","tsn":"2024-02-29T01:02:03Z"',
            '"dt4":1709168523456700,"ts":"2024-02-29T01:02:03Z","tsn":"2024-02-29T01:02:03Z"',
            _FIRST,
        ),
    ],
    "damaged-by-statements": [
        Difference("187063679863644032", "187063679863644046", _ROUNDED),
        Difference('"g":-12218857077000', '"g":-12219721077000', "a day of October 1582 that Java's calendar skips"),
    ],
    "defaults-in-schemas": [Difference('"y0":2000', '"y0":0', _YEAR), HEX_TEXT],
    "enum-set-json": [
        STREAMED["enum-set-json"][0],
        Difference("'ünï','?',' sp'", "'ünï','\\uD83D\\uDE00',' sp'", _EMOJI),
        Difference("\"'ünï'\",\"'?'\"", "\"'ünï'\",\"'\\uD83D\\uDE00'\"", _EMOJI),
    ],
    "filters-by-name": [Difference('"payload":{"id":0}}', '"payload":{"id":1}}', _KEY)],
    "keys-and-column-filter": [Difference('"payload":{"z":0}}', '"payload":{"z":1}}', _KEY)],
    "keys": [
        Difference('"bt":"AAE="', '"bt":"AQA="', _BITS),
        Difference('"bt":"Af8="', '"bt":"/wE="', _BITS),
    ],
    "mariadb-damaged-by-statements": [
        Difference("187063679863644032", "187063679863644046", _ROUNDED),
        Difference('"d":4256504301871345152', '"d":null', _NANOS),
    ],
    "mariadb-time-zone-and-transactions": [
        Difference('"ts":"2023-12-31T20:30:00.123456Z"', '"ts":"2023-12-31T18:30:00.123456Z"', _SHIFTED),
    ],
    "masking": STREAMED["masking"],
    "message-key-columns": [Difference('"payload":{"x":1,"y":0}}', '"payload":{"x":1,"y":2}}', _KEY)],
    "temporal-microseconds-in-another-zone": [
        Difference('"s":"2023-12-31T15:00:00.123456Z"', '"s":"2024-01-01T00:00:00.123456Z"', _SHIFTED),
        Difference('"s0":"2024-06-30T14:59:59Z"', '"s0":"2024-06-30T23:59:59Z"', _SHIFTED),
        Difference('"s":"2038-01-18T18:14:07.999999Z"', '"s":"2038-01-19T03:14:07.999999Z"', _SHIFTED),
        Difference('"s0":"1969-12-31T15:00:01Z"', '"s0":"1970-01-01T00:00:01Z"', _SHIFTED),
    ],
    "temporal-types": [
        Difference('"id":3,"d":null,"y":2000', '"id":3,"d":null,"y":0', _YEAR),
        Difference('"yn":2000', '"yn":0', _YEAR),
        Difference(
            '"dt2":1002675723000',
            '"dt2":null',
            "'0000-10-10 01:02:03' is null, as in the stream; Debezium's snapshot writes a day of 2001",
        ),
    ],
}

HISTORY: dict[str, dict[str, str]] = {
    "binary-as-hex": {'        "defaultValueExpression" : "AB000000000",\n': ""},
    "defaults-in-schemas": {'697427732022C3A922205C20F09F988"': 'it\'s \\"é\\" \\\\ 😀"'},
    "enum-set-json": {"'ünï','?'": "'ünï','😀'", "\"'ünï'\", \"'?'\"": "\"'ünï'\", \"'😀'\""},
}
"""The same for records of the schema history."""

SEQUENCES: dict[str, tuple[str, ...]] = {
    "mariadb-ddl": ("md.sq",),
    "mariadb-fails-sequence": ("sq.s1",),
}
"""MariaDB's sequences, whose structures are in rowtide's history (class ``stops``). They are not in Debezium's, which
stops at their rows in the binlog."""

MORE: dict[str, tuple[str, ...]] = {
    "fails-decimal-zerofill-snapshot": (
        "Debezium's snapshot fails at a DECIMAL ZEROFILL that fills all digits",
        '"after":{"id":3,"d":"BfXg/w=="}',
    ),
    "mariadb-fails-inet6": (
        "Debezium's snapshot fails at INET6 in SHOW CREATE TABLE",
        '"after":{"id":3,"i6":"::ffff:10.0.0.1","v":3}',
    ),
    "mariadb-fails-year-zero": ("Debezium's snapshot fails at YEAR 0", '"after":{"id":2,"y":0}'),
}
"""Cases in which Debezium's snapshot failed (class ``stops``): rowtide's starts with the recorded records and
continues. Each reason is followed by parts of the further records."""

NOT_TAKEN: dict[str, str] = {
    "fails-binlog-row-image-minimal": "rejected at the start; see the tests of the check",
    "fails-statement-format": "rejected at the start; see the tests of the check",
}
"""Cases without a snapshot."""
