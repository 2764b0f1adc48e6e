"""Every regular expression is matched in bounded time, and with the result of :mod:`re` where that has one in time."""

import pickle
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.topics.filters import MessageKeys, Patterns
from rowtide.topics.java_regex import InvalidPatternError, Replacement, compile_java, compile_untrusted
from rowtide.topics.java_regex.linear_matcher import LinearMatcher
from rowtide.topics.java_regex.parser import parse_java

NAME = "shop." + "a" * 120


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        (r"([\w.]+)+!", NAME + "!", NAME),
        (r"(a|a)*b", "a" * 60 + "b", "a" * 60),
        (r"(a*)*b", "a" * 60 + "b", "a" * 60),
        (r"(.*)*(.*)*(.*)*!", NAME + "!", NAME),
        (r".*.*.*.*.*.*.*!", NAME + "!", NAME),
        (r"(a?){60}a{60}", "a" * 60, "a" * 59),
        (r"(a|a)" * 40 + "b", "a" * 40 + "b", "a" * 40),
        (r"(\w+\.)*(\w+_)*(\w+)*!", NAME + "!", NAME),
        (r"(?!.*_tmp$)(\w+\.)+(\w+)+", NAME, NAME + "_tmp"),
        (r"(?:(?!x.*y)[\w.])*(a*)*!", NAME + "!", "x" + NAME + "y!"),
        (r"(\w+)+(?<!_old)\.(\w+)*", "a" * 60 + ".b", "a" * 60 + "_old.b!"),
        (r"(?>(a+)+)\.b", "a" * 60 + ".b", "a" * 60 + "b"),
        (r"(?:(a+)+)++b", "a" * 60 + "b", "a" * 60),
        (r"(?i)(SHOP|shop|s.op)*(\.[a-z&&[^x]]+)+!", "shop." + "A" * 90 + "!", "shop." + "A" * 90),
        (r"(^|\b)*(\w+\.?)+?(!|$\R)", "ab" * 60 + "!", "ab" * 60 + "?"),
    ],
)
def test_a_pattern_that_backtracks_matches_all_the_same(pattern: str, matching: str, other: str) -> None:
    compiled = compile_java(pattern, ignore_case=True)
    assert compiled.fullmatch(matching)
    assert compiled.fullmatch(other) is None
    assert Patterns.of([pattern]).match(matching)
    assert not Patterns.of([pattern]).match(other)


def test_a_key_that_backtracks_finds_its_columns() -> None:
    keys = MessageKeys.parse(r"([\w.]+)+:((id)+)+")
    assert keys.key_columns("shop", "a" * 60, ["id", "b" * 60]) == ("id",)


def test_a_replacement_of_a_pattern_that_backtracks_has_its_groups() -> None:
    pattern = compile_java(r"((\w+)\.)*(\w+)+!")
    assert Replacement("$2-$3", pattern).replace_first("a.b." + "c" * 60 + "!") == "b-" + "c" * 60
    assert Replacement("<$3>", compile_java(r"((\w+)\.)*(\w+)+!?")).replace_all("a.b c!") == "<b> <c>"


def test_a_text_that_is_longer_than_a_name_takes_no_longer_for_each_character() -> None:
    pattern = compile_java(r"\w*\w*!")
    assert pattern.fullmatch("a" * 3000 + "!")
    assert pattern.fullmatch("a" * 3000) is None


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [
        (r"(\w+)+\1(\w+)*!", "reference to a group"),
        (r"((\w{0,100}){0,100}){0,100}!", "too many repetitions"),
        ("(" * 5000 + ")" * 5000, "more than 100 nested groups"),
        (r"\p{L}" * 2000, "too long"),
    ],
)
def test_a_pattern_that_cannot_be_bounded_is_refused_with_its_reason(pattern: str, reason: str) -> None:
    with pytest.raises(InvalidPatternError, match=reason) as caught:
        compile_java(pattern)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("pattern", [r"(?!.*_tmp)shop\..*", r"(\w)\1\..*", r"db\d{1,3}\.(orders|items)_\d+", r"a.*b.*"])
def test_an_everyday_pattern_is_left_to_re(pattern: str) -> None:
    assert compile_java(pattern).matched_by_re


def test_many_words_are_an_everyday_pattern() -> None:
    words = "|".join(f"table{number}" for number in range(2000))
    assert compile_java(rf"(db1|db2)\.({words})_({words})").matched_by_re


def test_the_patterns_of_a_client_are_bounded_together() -> None:
    assert compile_untrusted([rf"shop\.t{number}_.*" for number in range(1000)])
    assert compile_untrusted([r"([\w.]+)+!", r"(?!.*_tmp)(\w+\.)+x"])
    with pytest.raises(InvalidPatternError, match="takes too long"):
        compile_untrusted([r"([\w.]+)+!"] * 100)
    with pytest.raises(InvalidPatternError, match="too long"):
        compile_untrusted(["a" * 1000] * 300)


def test_a_pattern_is_the_same_after_pickling() -> None:
    pattern = compile_java(r"(a+)+\.b", ignore_case=True)
    again = pickle.loads(pickle.dumps(pattern))
    assert again == pattern
    assert again.fullmatch("AA.B")


_ATOMS = st.sampled_from(["a", "b", ".", r"\w", "[ab]", "[^a]", r"\b", "^", "$", "(?=a)", "(?!b)", "(?<=a)", "(?<!b)"])
_QUANTIFIERS = st.sampled_from(["", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{0,2}?", "*+", "?+"])


def _grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.tuples(st.sampled_from(["(", "(?:", "(?>"]), inner, _QUANTIFIERS).map(lambda p: f"{p[0]}{p[1]}){p[2]}")
    return st.one_of(group, st.tuples(inner, inner).map("".join), st.tuples(inner, inner).map("|".join))


_EXPRESSIONS = st.recursive(st.tuples(_ATOMS, _QUANTIFIERS).map("".join), _grown, max_leaves=8)


@given(_EXPRESSIONS, st.text("ab.", max_size=6))
def test_the_linear_matcher_agrees_with_re(pattern: str, text: str) -> None:
    part = parse_java(pattern)
    try:
        compiled = re.compile(part.text, re.ASCII)
    except re.error:
        return
    matcher = LinearMatcher(part, re.ASCII)
    assert (matcher.fullmatch(text) is not None) == (compiled.fullmatch(text) is not None)
    found, expected = matcher.search(text, 0), compiled.search(text)
    assert (found and found[:2]) == (expected and expected.span())
