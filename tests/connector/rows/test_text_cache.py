"""Texts that are remembered: worked out once, forgotten before they are too many; and the quick way to escape."""

from json.encoder import encode_basestring

import orjson
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.rows.text_cache import MAX_ENTRIES, CacheBudget, TextCache
from rowtide.envelope.json.text import normalize_escapes, string_text

MANY = 20_000


def test_a_text_is_worked_out_once() -> None:
    asked: list[bytes] = []

    def text(stored: bytes) -> str:
        asked.append(stored)
        return stored.hex()

    texts = TextCache(text)
    assert [texts[b"\1"], texts[b"\2"], texts[b"\1"]] == ["01", "02", "01"]
    assert asked == [b"\1", b"\2"]


def test_memory_does_not_grow_with_the_values() -> None:
    texts = TextCache(bytes.hex)
    for number in range(MANY):
        stored = number.to_bytes(4, "big")
        assert texts[stored] == stored.hex()
        assert len(texts) <= MAX_ENTRIES


def test_memory_does_not_grow_with_the_columns() -> None:
    budget = CacheBudget(100)
    columns = [TextCache(repr, budget) for _ in range(30)]
    for number in range(10):
        for column in columns:
            assert column[str(number)] == repr(str(number))
            assert sum(map(len, columns)) <= 100
    del columns[:], column
    assert not budget._texts


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_strings_escaped_quickly_are_put_right_afterwards(text: str) -> None:
    wanted = string_text(text)
    assert normalize_escapes(orjson.dumps(text).decode()) == wanted
    assert normalize_escapes(encode_basestring(text)) == wanted
    assert normalize_escapes(wanted) == wanted


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_putting_right_a_row_is_putting_right_each_string(texts: list[str]) -> None:
    quick = ",".join(orjson.dumps(text).decode() for text in texts)
    assert normalize_escapes(quick) == ",".join(string_text(text) for text in texts)
