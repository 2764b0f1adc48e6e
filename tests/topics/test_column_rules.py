"""Column rules, parsed from the names of properties."""

import hashlib

import pytest

from rowtide.topics.column_rules import ColumnRules, Hash, Mask, Truncate, is_rule_name, parse_rule_name


def test_rules_are_parsed_from_names() -> None:
    assert parse_rule_name("column.truncate.to.20.chars") == Truncate(20)
    assert parse_rule_name("column.mask.with.0.chars") == Mask(0)
    assert parse_rule_name("column.mask.hash.SHA-256.with.salt.pepper.corn") == Hash("SHA-256", "pepper.corn", 1)
    assert parse_rule_name("column.mask.hash.v2.MD5.with.salt.") == Hash("MD5", "", 2)


@pytest.mark.parametrize("name", ["column.mask.with.x.chars", "column.truncate.to.5", "column.include.list"])
def test_other_names_are_not_rules(name: str) -> None:
    assert not is_rule_name(name)
    with pytest.raises(ValueError, match="not the name of a column rule"):
        parse_rule_name(name)


def test_an_unknown_algorithm_is_named_with_those_that_are_known() -> None:
    with pytest.raises(ValueError, match=r"'SHA-999'; known are .*SHA-512"):
        parse_rule_name("column.mask.hash.SHA-999.with.salt.s")


def test_algorithms_are_known_to_hashlib() -> None:
    for name in ("MD5", "sha-1", "SHA-224", "SHA-256", "SHA-384", "SHA-512", "SHA-512/256", "SHA3-256"):
        rule = parse_rule_name(f"column.mask.hash.v2.{name}.with.salt.s")
        assert isinstance(rule, Hash)
        assert hashlib.new(rule.hashlib_name)


def test_the_first_rule_in_debeziums_order_applies() -> None:
    rules = ColumnRules.parse(
        {
            "column.mask.hash.v2.MD5.with.salt.s": "d\\.t\\..*",
            "column.mask.hash.MD5.with.salt.s": "d\\.t\\.(a|b|c)",
            "column.mask.with.3.chars": "d\\.t\\.(a|b)",
            "column.truncate.to.5.chars": "d\\.t\\.a",
        }
    )
    assert rules.rule_for("d", "t", "a") == Truncate(5)
    assert rules.rule_for("D", "T", "B") == Mask(3)
    assert rules.rule_for("d", "t", "c") == Hash("MD5", "s", 1)
    assert rules.rule_for("d", "t", "e") == Hash("MD5", "s", 2)
    assert rules.rule_for("d", "u", "e") is None
