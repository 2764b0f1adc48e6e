"""Selection of tables and columns; the expected results of the first test are those of Debezium's classes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.topics import filters
from rowtide.topics.filters import (
    ColumnFilter,
    ColumnSelector,
    MessageKeys,
    Patterns,
    Selection,
    TableFilter,
    split_list,
)
from rowtide.topics.java_regex import InvalidPatternError, compile_java

TABLES = ["db/t", "DB/T", "db-w/t", "mysql/user", "sys/x", "db/a,b", "db/été", "db/a.b", "Ünï/t", "sig/s"]


def tables(include: str | None = None, exclude: str | None = None) -> Selection:
    return Selection(
        Patterns.parse(include) if include is not None else None,
        Patterns.parse(exclude) if exclude is not None else None,
    )


def captured(table_filter: TableFilter) -> list[str]:
    return [name for name in TABLES if table_filter.captures(*name.split("/"))]


@pytest.mark.parametrize(
    ("table_filter", "expected"),
    [
        (TableFilter(), [t for t in TABLES if not t.startswith(("mysql", "sys"))]),
        (TableFilter(tables=tables("db\\.t")), ["db/t", "DB/T"]),
        (TableFilter(tables=tables("db.t , .*[.]x")), ["db/t", "DB/T"]),
        (TableFilter(tables=tables("db\\.a\\,b")), ["db/a,b"]),
        (TableFilter(tables=tables("db.a,b")), []),
        (TableFilter(tables=tables("DB\\.ÉTÉ")), []),
        (TableFilter(tables=tables("ünï\\.t")), []),
        (TableFilter(tables=tables("`db`.`t`")), []),
        (TableFilter(tables=tables("mysql\\.user")), []),
        (TableFilter(ignore_builtin=False), TABLES),
        (TableFilter(databases=tables("db"), tables=tables("Ü.*")), []),
        (TableFilter(databases=tables(exclude="db.*")), ["Ünï/t", "sig/s"]),
        (TableFilter(tables=tables("db.t"), always=frozenset({("sig", "s")})), ["db/t", "DB/T", "sig/s"]),
        (TableFilter(tables=tables(",")), []),
        (TableFilter(tables=tables("db\\.\\w+")), ["db/t", "DB/T"]),
        (TableFilter(tables=tables("db\\.a{1\\,1}.*")), ["db/a,b", "db/a.b"]),
        (TableFilter(tables=tables(exclude="db\\.(t|a.*)")), ["db-w/t", "db/été", "Ünï/t", "sig/s"]),
    ],
)
def test_tables_are_captured_as_debezium_does(table_filter: TableFilter, expected: list[str]) -> None:
    assert captured(table_filter) == expected


def test_eligible_tables_ignore_the_table_lists() -> None:
    table_filter = TableFilter(databases=tables("db"), tables=tables("db\\.t"))
    assert table_filter.eligible("db", "other")
    assert not table_filter.eligible("else", "t")
    assert not TableFilter().eligible("MySQL", "user")
    assert table_filter.captures_database("DB")


def test_a_list_is_split_at_commas_without_a_backslash() -> None:
    assert split_list("a\\,b, c ,,d\\.x,{1\\,2}, c") == ("a,b", "c", "d\\.x", "{1,2}")


def test_a_list_that_ends_in_a_backslash_is_an_error() -> None:
    with pytest.raises(InvalidPatternError, match="backslash"):
        split_list("x\\")


@given(st.lists(st.text(st.characters(exclude_characters="\\, \t", exclude_categories=["Zs", "Cc"]), min_size=1)))
def test_items_without_commas_are_unchanged(items: list[str]) -> None:
    items = [item.strip() for item in items if item.strip()]
    assert split_list(",".join(items)) == tuple(dict.fromkeys(items))


def test_columns_by_include_and_exclude_list() -> None:
    only = ColumnFilter(tables("db\\.t\\.c"))
    assert only.captures("DB", "t", "C")
    assert not only.captures("db", "t", "d")
    without = ColumnFilter(tables(exclude="db\\.t\\.c,.*é"))
    assert not without.captures("db", "t", "c")
    assert not without.captures("x", "y", "é")
    assert without.captures("x", "y", "z")


def test_keys_follow_the_order_of_their_patterns() -> None:
    keys = MessageKeys.parse("k.custom:b,a;k.nokey:x; k.(re|rf):y,nosuch ")
    assert keys.key_columns("k", "custom", ["id", "a", "b"]) == ("b", "a")
    assert keys.key_columns("k", "rf", ["x", "y"]) == ("y",)
    assert keys.key_columns("k", "other", ["x", "y"]) == ()


def test_an_invalid_key_pattern_is_named() -> None:
    with pytest.raises(ValueError, match=r"'bad' is not of the form"):
        MessageKeys.parse("a.b:c;bad")


def test_selectors_without_a_list_select_nothing() -> None:
    assert not ColumnSelector().selects("d", "t", "c")
    assert ColumnSelector(Patterns.parse(".*\\.c")).selects("d", "t", "c")
    assert not ColumnSelector().selects("d", "t", "INT")
    assert ColumnSelector(Patterns.parse(".+\\.INT UNSIGNED")).selects("d", "t", "INT UNSIGNED")


NAMES = ["d.t1", "D.T1", "dxt1", "d.t2", "d-t.t_3", "d.\u212a", "d.k", "\u00c4.t", "d.t1x", "d\\.t1"]


@given(
    st.lists(
        st.sampled_from(["d.t1", "d\\.t1", "D\\.t2", "d-t\\.t_3", "d\\.k", "d\\..*", "d.t[12]", "\u00c4\\.t"]),
        max_size=6,
    ),
    st.sampled_from(NAMES),
)
def test_names_and_other_expressions_match_alike(sources: list[str], name: str) -> None:
    patterns = Patterns.parse(",".join(sources))
    matching = [n for n, s in enumerate(patterns.sources) if compile_java(s, ignore_case=True).fullmatch(name)]
    assert patterns.match(name) == bool(matching)
    assert patterns.index(name) == min(matching, default=len(patterns.sources))


def test_a_long_list_of_names_is_not_searched_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    monkeypatch.setattr(filters, "compile_java", lambda source, **_: compiled.append(source))
    patterns = Patterns.parse(",".join(f"d\\.t{number}" for number in range(2000)))
    assert patterns.match("d.T1999")
    assert not patterns.match("d.t2000")
    assert patterns.index("d.t7") == 7
    assert compiled == []
