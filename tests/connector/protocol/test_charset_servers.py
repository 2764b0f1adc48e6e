"""Every character set of MySQL and MariaDB: bytes decode to the same text as on the server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.protocol.charset import charset_decoder

if TYPE_CHECKING:
    from pymysql.cursors import Cursor
    from rowtide_stack import MariaDB, MySQL

pytestmark = pytest.mark.servers

_CODECS = {
    "utf8mb3": "utf-8",
    "utf8mb4": "utf-8",
    "utf16": "utf-16-be",
    "utf16le": "utf-16-le",
    "utf32": "utf-32-be",
}
"""Python's names of the Unicode character sets, which cover all of Unicode or its first plane."""
_THREE_BYTES = {"eucjpms": b"\x8f", "ujis": b"\x8f"}
_SURROGATE = re.compile("[\ud800-\udfff]")


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> MySQL | MariaDB:
    found: MySQL | MariaDB = request.getfixturevalue(request.param)
    return found


def charsets(cursor: Cursor) -> dict[str, int]:
    """The server's character sets, each with the bytes of its longest character."""
    cursor.execute("SHOW CHARACTER SET")
    return {str(row[0]): int(row[3]) for row in cursor.fetchall() if row[0] != "binary"}


def stored(cursor: Cursor, charset: str, prefix: bytes, more: int) -> Iterator[tuple[bytes, bytes | None]]:
    """The sequences of a prefix and some more bytes that a column can hold, and the server's text for each.

    The sequences come one after the other in strings, one string for each first byte after the prefix.
    """
    made, tables = ("a.b, c.b", "byte a, other c") if more == 2 else ("a.b", "byte a")
    ascii_too = "a.b >= X'80'" if more == 2 and charset != "ucs2" else "TRUE"  # one byte each, looked at before
    cursor.execute(
        f"CREATE TEMPORARY TABLE text (x VARBINARY(4), s VARCHAR(4) CHARACTER SET {charset}) ENGINE=MEMORY "
        f"IGNORE SELECT x, x AS s FROM (SELECT CONCAT(X'{prefix.hex()}', {made}) AS x FROM {tables} "
        f"WHERE {ascii_too}) AS sequences"
    )
    whole = "GROUP_CONCAT({} ORDER BY x SEPARATOR '')"
    cursor.execute(
        f"SELECT {whole.format('x')}, CAST(CONVERT({whole.format('s')} USING utf8mb4) AS BINARY) FROM text "
        f"WHERE CAST(s AS BINARY) = x GROUP BY SUBSTR(x, {len(prefix) + 1}, 1), CONVERT(s USING utf8mb4) IS NULL"
    )
    yield from cursor.fetchall()  # type: ignore[misc]
    cursor.execute("DROP TEMPORARY TABLE text")


@cache
def plane_text(plane: int) -> str:
    """All characters of a plane of Unicode."""
    return "".join(chr(point) for point in range(plane << 16, plane + 1 << 16) if not 0xD800 <= point < 0xE000)


def without_surrogates(text: bytes | None, data: bytes) -> str:
    """The server's text; it has none for a lone surrogate, which rowtide decodes to U+FFFD."""
    if text is None:
        assert _SURROGATE.sub("", data.decode("utf-16-be", "surrogatepass")) == ""
        return "\ufffd" * (len(data) // 2)
    return _SURROGATE.sub("\ufffd", text.decode("utf-8", "surrogatepass"))


def test_every_valid_sequence_decodes_to_the_servers_text(server: MySQL | MariaDB) -> None:
    wrong = []
    with server.database() as database, database.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SET group_concat_max_len = 10000000")
        cursor.execute("CREATE TEMPORARY TABLE byte (b VARBINARY(1))")
        cursor.execute("INSERT INTO byte VALUES " + ", ".join(f"(X'{byte:02x}')" for byte in range(256)))
        # A query can refer to a temporary table only once.
        cursor.execute("CREATE TEMPORARY TABLE other (b VARBINARY(1)) SELECT b FROM byte")
        for charset, longest in charsets(cursor).items():
            if charset in _CODECS:
                continue
            decode = charset_decoder(charset)
            prefixes = [(b"", 1)] * (charset != "ucs2") + [(b"", 2)] * (longest > 1)
            prefixes += [(_THREE_BYTES[charset], 2)] if charset in _THREE_BYTES else []
            for prefix, more in prefixes:
                answers = list(stored(cursor, charset, prefix, more))
                assert answers, charset
                for data, text in answers:
                    if decode(data) != without_surrogates(text, data):
                        wrong.append(f"{charset} {data.hex()}: {text!r}, and not {decode(data)!a}")
    assert not wrong, "\n".join(wrong)


def test_every_code_point_decodes_to_the_servers_text(server: MySQL | MariaDB) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        known = charsets(cursor)
        for charset, codec in _CODECS.items():
            decode = charset_decoder(charset)
            for plane in range(17 if known[charset] > 3 else 1):
                text = plane_text(plane)
                data = text.encode(codec)
                cursor.execute(f"SELECT CAST(CONVERT(_{charset} X'{data.hex()}' USING utf8mb4) AS BINARY)")
                row = cursor.fetchone()
                assert row is not None
                assert row[0] == text.encode()
                assert decode(data) == text


def test_every_four_byte_sequence_of_gb18030_decodes_to_the_servers_text(mysql: MySQL) -> None:
    decode = charset_decoder("gb18030")
    digits, leads = [bytes([d]) for d in range(0x30, 0x3A)], [bytes([b]) for b in range(0x81, 0xFF)]
    with mysql.connect() as connection, connection.cursor() as cursor:
        for lead in leads:
            empty = b"\x84" < lead < b"\x90" or lead > b"\xe3"  # nothing is there, a tenth shows it
            last = digits[:1] if empty else digits
            data = b"".join(lead + second + third + fourth for second in digits for third in leads for fourth in last)
            cursor.execute(f"SELECT CAST(CONVERT(_gb18030 X'{data.hex()}' USING utf8mb4) AS BINARY)")
            row = cursor.fetchone()
            assert row is not None
            assert decode(data).encode() == row[0], lead
