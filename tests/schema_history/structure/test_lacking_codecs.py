"""Labels and defaults in character sets that Python lacks; the right ones are those of both servers."""

from __future__ import annotations

import pytest

from rowtide.connector.protocol.charset import charset_decoder
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.charsets import representable
from rowtide.schema_history.server.lacking_codecs import LACKING
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server


@pytest.mark.parametrize(
    ("charset", "hexadecimal", "text"),
    [
        ("armscii8", "b2b3", "Աա"),
        ("geostd8", "c0c1", "აბ"),
        ("swe7", "7d7b", "åä"),
        ("dec8", "d7fd", "Œÿ"),
        ("keybcs2", "8085", "ČĎ"),
    ],
)
def test_labels(charset: str, hexadecimal: str, text: str) -> None:
    for flavor in Flavor:
        tables = Tables(Server(flavor))
        labels = f"ENUM('{text}', 0x{hexadecimal}61, 'ж') CHARACTER SET {charset}"
        tables.apply(QueryEvent(f"CREATE TABLE t (e {labels})", "d"))
        [table] = tables
        assert table.columns[0].labels == (text, f"{text}a", "?")
    assert charset_decoder(charset)(bytes.fromhex(hexadecimal)) == text
    assert representable(text, charset) == text
    assert set(LACKING) == {"armscii8", "geostd8", "swe7", "dec8", "keybcs2"}
