"""The demo's proof and its parts that need no server: a proof must fail when anything is different."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace

import pytest
from rowtide_demo.checksums.canonical_text import Column, mysql_text, spark_text
from rowtide_demo.checksums.comparison import ColumnSum, TableSum, compare, from_json, to_json
from rowtide_demo.runtime.interruption import Interrupted, Interruption
from rowtide_demo.shop.rows import COLUMNS, generated
from rowtide_demo.shop.schema import TABLES, Sizes
from rowtide_demo.steps.streaming import differences
from rowtide_demo.topic_watch import expected, operation

SUMS = {
    "customers": TableSum(3, {"id": ColumnSum(0, 10**19), "city": ColumnSum(1, 77)}),
    "orders": TableSum(2, {"id": ColumnSum(0, 5)}),
}


def test_equal_sums_have_no_difference_also_after_a_way_through_json() -> None:
    assert compare(SUMS, from_json(to_json(SUMS))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        (replace(SUMS["customers"], rows=4), "customers: the number of rows is 3 in MySQL and 4 in Spark"),
        (
            replace(SUMS["customers"], columns={**SUMS["customers"].columns, "city": ColumnSum(1, 78)}),
            "customers.city: the checksum is 77 in MySQL and 78 in Spark",
        ),
        (
            replace(SUMS["customers"], columns={**SUMS["customers"].columns, "city": ColumnSum(0, 77)}),
            "customers.city: the number of nulls is 1 in MySQL and 0 in Spark",
        ),
        (
            replace(SUMS["customers"], columns={"id": SUMS["customers"].columns["id"]}),
            "customers.city: the column is there in MySQL and missing in Spark",
        ),
        (
            replace(SUMS["customers"], columns={**SUMS["customers"].columns, "more": ColumnSum(0, 0)}),
            "customers.more: the column is missing in MySQL and there in Spark",
        ),
    ],
)
def test_each_difference_is_told(changed: TableSum, told: str) -> None:
    assert list(map(str, compare(SUMS, {**SUMS, "customers": changed}))) == [told]


def test_a_missing_table_is_a_difference() -> None:
    (found,) = compare(SUMS, {"orders": SUMS["orders"]})
    assert str(found) == "customers: the table is there in MySQL and missing in Spark"


@pytest.mark.parametrize("nothing", [{}, {"orders": TableSum(0, {})}])
def test_nothing_proves_nothing(nothing: dict[str, TableSum]) -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        compare(nothing, nothing)


def test_a_type_without_a_canonical_text_is_an_error_on_both_sides() -> None:
    for text in (mysql_text, spark_text):
        with pytest.raises(KeyError, match="geometry"):
            text(Column("where", "geometry"))


def test_records_are_expected_as_debezium_writes_them() -> None:
    done = Counter({("orders", "insert"): 5, ("orders", "update"): 4, ("orders", "delete"): 3, ("products", "key"): 2})
    assert expected(done) == {
        ("orders", "c"): 5,
        ("orders", "u"): 4,
        ("orders", "d"): 3,
        ("orders", "tombstone"): 3,
        ("products", "c"): 2,
        ("products", "d"): 2,
        ("products", "tombstone"): 2,
    }


def test_records_too_many_and_too_few_are_told_but_not_the_snapshots() -> None:
    wanted, seen = Counter({("a", "c"): 2, ("a", "d"): 1}), Counter({("a", "c"): 3, ("a", "r"): 9})
    assert differences(wanted, seen) == ["a c: 2 expected, 3 seen", "a d: 1 expected, 0 seen"]


def test_the_operation_is_read_from_the_end_of_a_record() -> None:
    value = b'{"payload":{"before":null,"after":{"note":"\\"op\\":\\"x\\""},"source":{},"op":"u","ts_ms":1}}'
    assert operation(value) == "u"
    assert operation(None) == "tombstone"


@pytest.mark.parametrize("rows", [1000, 4321, 240_000])
def test_the_shop_has_as_many_rows_as_were_asked_for(rows: int) -> None:
    assert Sizes.of(rows).total == rows


def test_the_same_rows_are_generated_each_time_with_a_value_for_every_column() -> None:
    sizes = Sizes.of(1000)
    assert set(COLUMNS) == set(TABLES)
    for table, columns in COLUMNS.items():
        rows = list(generated(table, sizes))
        assert rows == list(generated(table, sizes))
        assert {len(row) for row in rows} == {len(columns.split())}
        assert len(rows) == getattr(sizes, table)


def test_a_signal_interrupts_once_and_not_while_things_are_being_ended() -> None:
    interruption = Interruption()
    interruption.check()
    with pytest.raises(Interrupted):
        interruption.receive(signal.SIGTERM, None)
    with pytest.raises(Interrupted):  # an exception that was lost is raised again where the demo waits
        interruption.check()
    interruption.hold()
    interruption.receive(signal.SIGINT, None)
    interruption.check()
    assert interruption.exit_code == 143
