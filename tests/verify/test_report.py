"""The report."""

from __future__ import annotations

import json

from rowtide.verify.fold import KeyRange
from rowtide.verify.positions import RecordPlace
from rowtide.verify.run import exit_code, report_json, report_lines, spark_lines, summary
from rowtide.verify.tables import TableDifference, TableResult
from rowtide.verify.verification import Result

OLD, NEW = RecordPlace(0, 3, "c", "binlog.000001", 100), RecordPlace(0, 9, "u", "binlog.000001", 900, "u:7")


def test_each_difference_of_a_table_says_what_is_wrong_and_where() -> None:
    table = TableResult("shop.shop.orders", "/t/shop/orders", "different", version=4, others=["version 4 (DELETE)"])
    table.offsets, table.behind, table.last = {0: 10}, 2, {0: NEW}
    topic, row = {"id": "i1", "s": "sb"}, {"id": "i1", "s": "sa"}
    table.differences = [
        TableDifference("not applied", {"id": "i1"}, topic, row, ("s",), (OLD, NEW), applied=OLD),
        TableDifference("doubled", {"id": "i1"}, topic, row, (), (NEW,), 2),
        TableDifference("column", {}, {"n": "sint32"}, None, ("n",)),
    ]
    text = "\n".join(spark_lines(table, 2))
    assert "not applied: id=1: the table has the row as of offset 3: later changes were read, but not applied" in text
    assert 'topic: s="b"\n      table: s="a"' in text
    assert "record: partition 0, offset 9, op u, from binlog.000001:900, u:7" in text
    assert "doubled: id=1: the table has the row 2 times" in text
    assert "version 4, compared at offset 10 of partition 0; 2 offsets behind the topic" in text
    assert "version 4 (DELETE) is not of rowtide tables" in text
    assert "… and 1 more" in text
    found = [(Result("shop.orders", "equal"), [table])]
    assert (exit_code(found), summary(found)) == (1, "topics: 1 equal; tables: 1 different")
    document = json.loads(json.dumps(report_json(found)))
    assert document["tables"][0]["spark_tables"][0]["differences"][0]["applied"]["offset"] == 3


def test_the_ranges_of_further_differences() -> None:
    result = Result("shop.orders", "different", more=True, key_names=["shop", "id"])
    result.ranges = [
        KeyRange(("i1", "sa"), ("i9", "sz"), {"lost": 1200, "stale": 3}),
        KeyRange(None, None, {"extra": 2}),
    ]
    text = "\n".join(report_lines(result, 20))
    assert "1,205 further keys differ, and were not compared again (--max-differences):" in text
    assert '\n    1,200 lost, 3 stale: from shop=1, id="a" to shop=9, id="z"' in text
    assert "\n    2 extra: only in the topic" in text
    (table,) = report_json([(result, ())])["tables"]
    assert table["further_ranges"] == [
        {"first": {"shop": "1", "id": "a"}, "last": {"shop": "9", "id": "z"}, "lost": 1200, "stale": 3},
        {"first": None, "last": None, "extra": 2},
    ]


def test_a_table_that_is_not_decided_is_not_equal() -> None:
    table = TableResult("shop.shop.orders", reason="there is no table")
    found = [(Result("shop.orders", "equal"), [table])]
    assert (exit_code(found), summary(found)) == (2, "topics: 1 equal; tables: 1 undecided")
    assert list(spark_lines(table, 9)) == ["  table shop.shop.orders: not decided: there is no table"]


def test_tables_without_a_result_are_not_equal() -> None:
    """The server was lost after the first table. The document said ``equal`` next to the error."""
    equal, different = Result("shop.orders", "equal"), Result("shop.parts", "different")
    found = [report_json([(one, ())], error)["outcome"] for one in (equal, different) for error in (None, "lost")]
    assert found == ["equal", "undecided", "different", "different"]
