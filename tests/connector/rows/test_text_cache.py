"""The text cache is bounded; strings that are escaped by the fast function are corrected afterwards."""

from json.encoder import encode_basestring

import orjson
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.rows.text_cache import MAX_ENTRIES, CacheBudget, TextCache
from rowtide.envelope.json.text import normalize_escapes, string_text

MANY = 20_000


def test_a_text_is_converted_once() -> None:
    converted: list[bytes] = []

    def text(stored: bytes) -> str:
        converted.append(stored)
        return stored.hex()

    texts = TextCache(text)
    assert [texts[b"\1"], texts[b"\2"], texts[b"\1"]] == ["01", "02", "01"]
    assert converted == [b"\1", b"\2"]


def test_a_cache_does_not_grow_with_the_values() -> None:
    texts = TextCache(bytes.hex)
    for number in range(MANY):
        stored = number.to_bytes(4, "big")
        assert texts[stored] == stored.hex()
        assert len(texts) <= MAX_ENTRIES


def test_the_caches_do_not_grow_with_the_columns() -> None:
    budget = CacheBudget(100)
    columns = [TextCache(repr, budget) for _ in range(30)]
    for number in range(10):
        for column in columns:
            assert column[str(number)] == repr(str(number))
            assert sum(map(len, columns)) <= 100
    del columns[:], column
    assert not budget._texts


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_fast_escapes_are_normalized_to_jacksons(text: str) -> None:
    expected = string_text(text)
    assert normalize_escapes(orjson.dumps(text).decode()) == expected
    assert normalize_escapes(encode_basestring(text)) == expected
    assert normalize_escapes(expected) == expected


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_normalizing_a_row_normalizes_each_string(texts: list[str]) -> None:
    quick = ",".join(orjson.dumps(text).decode() for text in texts)
    assert normalize_escapes(quick) == ",".join(string_text(text) for text in texts)
