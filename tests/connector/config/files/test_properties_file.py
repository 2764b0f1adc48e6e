"""Java's .properties format, compared with what Java itself read."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.config.files.properties_file import PropertiesSyntaxError, parse_properties

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("java_properties.json").read_text())


@pytest.mark.parametrize(("text", "expected"), RECORDED["cases"])
def test_java_reads_the_same(text: str, expected: list[list[str]] | None) -> None:
    if expected is None:
        with pytest.raises(PropertiesSyntaxError):
            parse_properties(text)
    else:
        assert dict(parse_properties(text)) == dict(map(tuple, expected))


def test_a_typical_file() -> None:
    text = r"""
# a comment, with a back-slash at its end \
! another
database.hostname = db.example.com
database.port:3306
topic.prefix shop
table.include.list = shop\\.orders,\
                     shop\\.order_lines
name=caf\u00e9
empty=
alone
"""
    assert dict(parse_properties(text)) == {
        "database.hostname": "db.example.com",
        "database.port": "3306",
        "topic.prefix": "shop",
        "table.include.list": r"shop\.orders,shop\.order_lines",
        "name": "café",
        "empty": "",
        "alone": "",
    }


def test_a_malformed_escape_is_reported_with_its_line() -> None:
    with pytest.raises(PropertiesSyntaxError, match=r"line 3: malformed"):
        parse_properties("a=1\n\nb=\\u12x4\n")


def test_a_character_beyond_the_first_plane_is_two_escapes() -> None:
    assert parse_properties(r"a=\ud83d\ude00") == [("a", "😀")]


def escaped(text: str, *, key: bool) -> str:
    """As ``java.util.Properties.store`` writes it."""
    out: list[str] = []
    for at, char in enumerate(text):
        if char in "\t\n\r\f":
            out.append("\\" + {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}[char])
        elif char in "\\=:#!" or (char == " " and (key or at == 0)):
            out.append("\\" + char)
        elif char.isascii() and char.isprintable():
            out.append(char)
        else:
            units = char.encode("utf-16-be")
            out += [f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2)]
    return "".join(out)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(
    st.dictionaries(TEXTS.filter(bool), TEXTS),
    st.sampled_from(["=", ":", " ", " = ", "\t:\t"]),
    st.sampled_from("\n\r"),
)
def test_stored_properties_are_read_back(properties: dict[str, str], separator: str, end: str) -> None:
    lines = [f"{escaped(key, key=True)}{separator}{escaped(value, key=False)}" for key, value in properties.items()]
    assert parse_properties("".join(line + end for line in lines)) == list(properties.items())


@given(TEXTS.filter(lambda text: "\\" not in text), st.integers(1, 40))
def test_a_line_may_be_continued_anywhere(value: str, at: int) -> None:
    written = escaped(value, key=False)
    cut = min(at, len(written))
    if "\\" in written:
        return  # a cut inside an escape means something else
    if written[cut : cut + 1] in (" ", "\t"):
        return  # blanks at the beginning of the next line are dropped
    assert parse_properties(f"k={written[:cut]}\\\n   {written[cut:]}\n") == parse_properties(f"k={written}\n")
