"""Tests of ``connector.snapshot.records.groups_by_size``."""

from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.snapshot.records import groups_by_size

Row = tuple[str | None, ...]


def characters(rows: list[Row]) -> int:
    return sum(len(value) for row in rows for value in row if value is not None)


@given(st.lists(st.tuples(st.none() | st.text(max_size=9), st.text(max_size=9))), st.integers(1, 20))
def test_groups_are_the_rows_in_order_and_as_large_as_they_may_be(rows: list[Row], limit: int) -> None:
    groups = [list(group) for group in groups_by_size(rows, limit)]
    assert [row for group in groups for row in group] == rows
    for place, group in enumerate(groups):
        assert group
        assert characters(group) <= limit or not characters(group[:-1]), "more than one row with texts"
        if place:
            assert characters([*groups[place - 1], group[0]]) > limit, "the row fits into the group before"
