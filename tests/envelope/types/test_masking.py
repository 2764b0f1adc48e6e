"""Masking, hashing and truncating. The hashes were recorded from Debezium (golden case ``masking``) and Java."""

import hashlib
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.envelope.types.masking import column_mapper, java_serialized, keeps_apart, truncate_text
from rowtide.topics.column_rules import Hash, Mask, Truncate

VARCHAR, INTEGER, BLOB, BIT = 12, 4, 2004, -7


@dataclass(frozen=True, slots=True)
class Column:
    jdbc_type: int
    length: int | None


def changed(rule: Hash | Mask | Truncate, value: object, jdbc_type: int = VARCHAR, length: int | None = 100) -> object:
    change = column_mapper(rule, Column(jdbc_type, length))
    return change.convert(value) if change.convert else value


@pytest.mark.parametrize(
    ("value", "hashed"),
    [
        ("value", "c2393c2ca67cf3272d1736f60f64cec8bdea9759e6f2e6339e9c3cbc0b266d2e"),
        ("", "c03d43cc1b99b435eb8052eec9a3b514542d2154cb5e758b4c541b218c33bc70"),
        ("日本語", "814a2a3401d5a9b46530edaa8a52e68bfd7e9bac77d18b9a79e6a518cf4dc660"),
        ("other", "886e43671500cda3e467d4220b678426a3c26277701839f07dbabcadce955c6f"),
        (None, None),
    ],
)
def test_hash_version_1_digests_the_java_serialization(value: str | None, hashed: str | None) -> None:
    assert changed(Hash("SHA-256", "pepper", 1), value) == hashed


@pytest.mark.parametrize(
    ("algorithm", "salt", "value", "length", "hashed"),
    [
        ("SHA-256", "pepper", "value", 20, "e27ecd4203693b037529"),
        ("SHA-256", "pepper", "é😀", 8, "d21f019d"),
        ("SHA-256", "pepper", "", 20, "8cbbcf29d9cef89675c5"),
        ("MD5", "x", "md5", 40, "f49b5fffbc1696168ac721d244613b84"),
        ("MD5", "x", "é", 40, "93baa6f8b47573690577f569c259c69f"),
        ("SHA-256", "pepper", "other", 300, "d53b115028e9d7352dc91f2a66526efbf2e7ed5a94a23ff3696203e2fc072ab9"),
        ("SHA-256", "pepper", None, 300, None),
    ],
)
def test_hash_version_2_digests_utf8_and_is_truncated_to_the_column(
    algorithm: str, salt: str, value: str | None, length: int, hashed: str | None
) -> None:
    assert changed(Hash(algorithm, salt, 2), value, length=length) == hashed


# SHA-1 of the output of ObjectOutputStream in Java 17.
@pytest.mark.parametrize(
    ("text", "digest"),
    [
        ("a\0b", "17137833e44af01e8f1faaafd6c47bac4a66c696"),
        ("😀\ud83d", "07151e4ea689e0c5795e84a16ca2ca9a79460d6d"),
        ("x" * 65535, "d718bca3178c949e7717c97ad2f4d98774c44f1a"),
        ("x" * 65536, "85d30a94d9552aeb1c3953f242d6fbb3a59384e6"),
        ("é" * 40000, "375178088f024ea75f1818d667999a15917180f5"),
    ],
)
def test_strings_are_serialized_as_in_java(text: str, digest: str) -> None:
    assert hashlib.sha1(java_serialized(text), usedforsecurity=False).hexdigest() == digest


def test_a_mask_replaces_null_too() -> None:
    assert changed(Mask(5), "secret") == "*****"
    assert changed(Mask(5), None) == "*****"
    assert changed(Mask(0), "x") == ""


def test_masks_and_hashes_mark_numbers_without_changing_them() -> None:
    for rule in (Mask(5), Hash("MD5", "x", 2)):
        change = column_mapper(rule, Column(INTEGER, None))
        assert change.convert is None
        assert change.parameters == (("masked", "true"),)


def test_the_hash_of_bytes_is_null() -> None:
    assert changed(Hash("MD5", "x", 2), b"ab") is None


def test_only_longer_columns_are_truncated() -> None:
    assert changed(Truncate(3), "abcdef") == "abc"
    assert changed(Truncate(3), "abcdef", length=3) == "abcdef"
    assert changed(Truncate(3), b"abcdef", BLOB, None) == b"abc"
    assert changed(Truncate(3), 12345, INTEGER, 11) == 12345
    assert changed(Truncate(3), None) is None
    assert column_mapper(Truncate(3), Column(VARCHAR, None)).parameters == (("truncateLength", "3"),)
    assert column_mapper(Truncate(3), Column(VARCHAR, 3)).parameters == ()


def test_truncation_never_splits_a_character() -> None:
    assert truncate_text("😀😀😀😀😀", 3) == "😀"
    assert truncate_text("😀a", 3) == "😀a"
    assert truncate_text("日本語", 2) == "日本"


@given(st.text(st.characters(exclude_categories=["Cs"])), st.integers(0, 20))
def test_a_truncated_text_is_a_prefix_within_the_length(text: str, length: int) -> None:
    cut = truncate_text(text, length)
    assert text.startswith(cut)
    units = len(cut.encode("utf-16-le")) // 2
    assert units <= length
    assert cut == text or units >= length - 1


def test_bits_are_marked_as_truncated_without_being_changed() -> None:
    change = column_mapper(Truncate(3), Column(BIT, 28))
    assert (change.convert, change.parameters) == (None, (("truncateLength", "3"),))
    assert changed(Truncate(3), b"abcd", BLOB) == b"abc"


@pytest.mark.parametrize(
    ("rule", "length", "apart"),
    [
        (Hash("SHA-256", "salt", 2), 64, True),
        (Hash("MD5", "salt", 1), 0, True),
        (Hash("SHA-256", "salt", 2), 20, False),
        (Mask(40), 64, False),
        (Truncate(40), 64, False),
    ],
)
def test_only_a_whole_hash_keeps_texts_apart(rule: Hash | Mask | Truncate, length: int, *, apart: bool) -> None:
    convert = column_mapper(rule, Column(VARCHAR, length)).convert
    assert convert is not None
    assert keeps_apart(convert) is apart
