"""Helper tables of online schema changes: recognised by name, and only beside the table that is changed."""

from __future__ import annotations

import pytest

from rowtide.topics.filters import CapturedNames, Patterns, Selection, TableFilter, split_list
from rowtide.topics.java_regex import InvalidPatternError
from rowtide.topics.online_schema_change import NO_HELPERS, WELL_KNOWN_HELPERS, HelperNames, parse_helper_names

_TABLES = {
    "t", "_t_gho", "_t_ghc", "_t_del", "_t_20260131120000_del", "_t_new", "_t_old", "__t_old", "_t_chkpnt", "t_new",
    "_u_new", "_u_old", "_", "__new", "_x", "__x_new", "_v_gho", "_v_ghc", "_v_del", "_w_del",
}  # fmt: skip


def helped(helpers: HelperNames, tables: set[str] = _TABLES) -> dict[str, str]:
    found = {table: helpers.table_of("d", table, lambda database, name: name in tables) for table in tables}
    return {table: of for table, of in found.items() if of is not None}


def test_the_names_of_the_tools() -> None:
    of_t = {"_t_gho", "_t_ghc", "_t_del", "_t_20260131120000_del", "_t_new", "_t_old", "__t_old", "_t_chkpnt"}
    between_two_renames = {"_v_gho": "v", "_v_ghc": "v", "_v_del": "v"}
    assert helped(WELL_KNOWN_HELPERS) == {**dict.fromkeys(of_t, "t"), "__x_new": "_x", **between_two_renames}
    assert helped(NO_HELPERS) == {}


def test_further_names() -> None:
    helpers = parse_helper_names(split_list(r"well-known, (.{1\,9})__shadow"))
    assert helped(helpers, {"t", "t__shadow", "_t_new"}) == {"t__shadow": "t", "_t_new": "t"}
    assert parse_helper_names(("none",)) == NO_HELPERS == parse_helper_names(())


@pytest.mark.parametrize("items", [("none", "well-known"), ("_.*_new",), ("_(a)_(b)",), ("_(",)])
def test_invalid_names(items: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"only item|one group|unclosed group"):
        parse_helper_names(items)


def test_an_expression_without_a_group_is_named() -> None:
    with pytest.raises(InvalidPatternError, match=r"'_\.\*_new': it must have one group"):
        parse_helper_names(("_.*_new",))


def captured(include: str | None = None, exclude: str | None = None) -> CapturedNames:
    include_list, exclude_list = (None if text is None else Patterns.parse(text) for text in (include, exclude))
    tables = TableFilter(tables=Selection(include_list, exclude_list), helpers=WELL_KNOWN_HELPERS)
    return CapturedNames.among(tables, (("d", name) for name in _TABLES))


@pytest.mark.parametrize("include", [None, r"d\..*", r"d\.(t|_t_new|_u_new)", r"other\.x,d\.t,d\._._new"])
def test_a_helper_table_is_not_captured(include: str | None) -> None:
    names = captured(include)
    assert names.captures("d", "t")
    assert not names.captures("d", "_t_new")
    assert names.leaves_out("d", "_t_new")
    assert names.captures("d", "_u_new")
    assert not names.leaves_out("d", "_u_new")
    assert names.keeps_structure("d", "_t_new")


@pytest.mark.parametrize("include", ["d.t,d._t_new", r"d\._t_new", r"D\._T_NEW"])
def test_a_helper_table_that_the_include_list_names_is_captured(include: str) -> None:
    names = captured(include)
    assert names.captures("d", "_t_new")
    assert not names.captures("d", "_t_old")
    assert names.helped("d", "_t_new") is None


def test_the_structure_of_helper_tables_of_captured_tables_is_kept() -> None:
    names = captured(r"d\.t")
    assert not names.captures("d", "_t_gho")
    assert not names.leaves_out("d", "_t_gho")
    assert names.keeps_structure("d", "_t_gho")
    assert not names.keeps_structure("d", "_u_new")
    assert not captured(r"d\.u").keeps_structure("d", "_t_gho")
    assert not captured(exclude=r"d\..*").keeps_structure("d", "_t_gho")


def test_the_helper_tables_of_an_excluded_table_are_not_captured() -> None:
    names = captured(exclude=r"d\.t")
    assert not names.captures("d", "_t_gho")
    assert names.captures("d", "_u_new")
