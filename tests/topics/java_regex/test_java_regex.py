"""Translated Java patterns have the results that Java has."""

import contextlib
import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.topics.java_regex import InvalidPatternError, Replacement, compile_java
from rowtide.topics.java_regex.character_classes import category_ranges, complement

RECORDED: dict[str, Any] = json.loads(Path(__file__).with_name("java_regex.json").read_text())
CASE_INSENSITIVE, DOTALL = 2, 32


@pytest.mark.parametrize(("pattern", "flags", "matching"), RECORDED["patterns"])
def test_java_matches_the_same_names(pattern: str, flags: int, matching: list[str] | None) -> None:
    try:
        compiled = compile_java(pattern, ignore_case=bool(flags & CASE_INSENSITIVE), dot_all=bool(flags & DOTALL))
    except InvalidPatternError:
        assert matching is None
        return
    assert [name for name in RECORDED["names"] if compiled.fullmatch(name)] == matching


@pytest.mark.parametrize(("pattern", "replacement", "text", "result"), RECORDED["replacements"])
def test_java_replaces_the_same(pattern: str, replacement: str, text: str, result: str | None) -> None:
    compiled = compile_java(pattern)
    if result is not None:
        assert Replacement(replacement, compiled).replace_all(text) == result
    else:
        with pytest.raises(ValueError, match=r"replacement|group"):
            Replacement(replacement, compiled)


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        ("shop\\.(a", "unclosed group"),
        ("a)", r"unmatched closing"),
        ("[a-", "unclosed character class"),
        ("a{", "illegal repetition"),
        ("*a", "dangling meta character"),
        ("\\y", "unsupported escape sequence"),
        ("\\p{IsLatin}", r"\\p\{L\}"),
        ("(?x)a", "flag \\(x\\) is not supported"),
        ("(?<=a+)b", "look-behind"),
        ("[b-a]", "illegal character range"),
        ("a\\", "unexpected end"),
        ("\\x{110000}", "hexadecimal"),
    ],
)
def test_an_invalid_pattern_is_named_with_its_reason(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidPatternError, match=reason) as caught:
        compile_java(pattern)
    assert repr(pattern) in str(caught.value)


def test_letters_beyond_ascii_keep_their_case() -> None:
    assert compile_java("ünï", ignore_case=True).fullmatch("ÜNÏ") is None
    assert compile_java("(?u)ünï", ignore_case=True).fullmatch("ÜNÏ")


def test_a_flag_applies_to_the_end_of_its_group() -> None:
    assert compile_java("(a(?i)b|c)d").fullmatch("Cd")
    assert compile_java("(a(?i)b|c)d").fullmatch("cD") is None


@given(st.text(max_size=12))
def test_a_quoted_text_matches_itself_only(text: str) -> None:
    quoted = "\\Q" + text.replace("\\E", "") + "\\E"
    assert compile_java(quoted).fullmatch(text.replace("\\E", ""))


@given(st.text(max_size=20), st.booleans())
def test_any_text_is_a_pattern_or_a_named_error(text: str, ignore_case: bool) -> None:
    with contextlib.suppress(InvalidPatternError):
        compile_java(text, ignore_case=ignore_case)


def test_a_category_and_its_complement_are_everything() -> None:
    both = sorted([*category_ranges("L"), *complement(category_ranges("L"))])
    assert both[0][0] == 0
    assert both[-1][1] == 0x10FFFF
    assert all(one[1] + 1 == other[0] for one, other in itertools.pairwise(both))


def test_only_the_first_match_is_replaced() -> None:
    assert Replacement("$1-", compile_java("(a)")).replace_first("aa") == "a-a"
