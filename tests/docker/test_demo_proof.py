"""The comparison of checksums in the demo, and its other modules that need no server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from rowtide_demo.checksums.canonical_text import Column, mysql_text, spark_text
from rowtide_demo.checksums.comparison import ColumnChecksum, TableChecksum, compare, from_json, to_json
from rowtide_demo.runtime.interruption import Interrupted, Interruption
from rowtide_demo.shop.rows import COLUMNS, generate_rows
from rowtide_demo.shop.schema import TABLES, Sizes
from rowtide_demo.steps.streaming import differences
from rowtide_demo.steps.tables import environment as spark_environment
from rowtide_demo.topic_watch import expected_records, operation

CHECKSUMS = {
    "customers": TableChecksum(3, {"id": ColumnChecksum(0, 10**19), "city": ColumnChecksum(1, 77)}),
    "orders": TableChecksum(2, {"id": ColumnChecksum(0, 5)}),
}


def test_an_interrupted_start_of_spark_leaves_no_temporary_folder_behind(tmp_path: Path) -> None:
    """PySpark makes one until Java answers. The demo removes its own folder with all that is in it."""
    command = [sys.executable, "-c", "import tempfile; print(tempfile.mkdtemp())"]
    environment = {**os.environ, **spark_environment(tmp_path)}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert Path(made.strip()).parent == tmp_path


def test_equal_checksums_have_no_difference_also_after_conversion_to_json() -> None:
    assert compare(CHECKSUMS, from_json(to_json(CHECKSUMS))) == []  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (replace(CHECKSUMS["customers"], rows=4), "customers: the number of rows is 3 in MySQL and 4 in Spark"),
        (
            replace(CHECKSUMS["customers"], columns={**CHECKSUMS["customers"].columns, "city": ColumnChecksum(1, 78)}),
            "customers.city: the checksum is 77 in MySQL and 78 in Spark",
        ),
        (
            replace(CHECKSUMS["customers"], columns={**CHECKSUMS["customers"].columns, "city": ColumnChecksum(0, 77)}),
            "customers.city: the number of nulls is 1 in MySQL and 0 in Spark",
        ),
        (
            replace(CHECKSUMS["customers"], columns={"id": CHECKSUMS["customers"].columns["id"]}),
            "customers.city: the column is present in MySQL and missing in Spark",
        ),
        (
            replace(CHECKSUMS["customers"], columns={**CHECKSUMS["customers"].columns, "more": ColumnChecksum(0, 0)}),
            "customers.more: the column is missing in MySQL and present in Spark",
        ),
    ],
)
def test_each_difference_is_reported(changed: TableChecksum, message: str) -> None:
    assert list(map(str, compare(CHECKSUMS, {**CHECKSUMS, "customers": changed}))) == [message]


def test_a_missing_table_is_a_difference() -> None:
    (found,) = compare(CHECKSUMS, {"orders": CHECKSUMS["orders"]})
    assert str(found) == "customers: the table is present in MySQL and missing in Spark"


@pytest.mark.parametrize("nothing", [{}, {"orders": TableChecksum(0, {})}])
def test_tables_without_rows_are_not_compared(nothing: dict[str, TableChecksum]) -> None:
    with pytest.raises(ValueError, match="nothing to compare"):
        compare(nothing, nothing)


def test_a_type_without_a_canonical_text_is_an_error_on_both_sides() -> None:
    for text in (mysql_text, spark_text):
        with pytest.raises(KeyError, match="geometry"):
            text(Column("where", "geometry"))


def test_the_expected_records_are_those_of_debezium() -> None:
    done = Counter({("orders", "insert"): 5, ("orders", "update"): 4, ("orders", "delete"): 3, ("products", "key"): 2})
    assert expected_records(done) == {
        ("orders", "c"): 5,
        ("orders", "u"): 4,
        ("orders", "d"): 3,
        ("orders", "tombstone"): 3,
        ("products", "c"): 2,
        ("products", "d"): 2,
        ("products", "tombstone"): 2,
    }


def test_extra_and_missing_records_are_reported_but_not_those_of_the_snapshot() -> None:
    required, seen = Counter({("a", "c"): 2, ("a", "d"): 1}), Counter({("a", "c"): 3, ("a", "r"): 9})
    assert differences(required, seen) == ["a c: 2 expected, 3 seen", "a d: 1 expected, 0 seen"]


def test_the_operation_is_read_from_the_end_of_a_record() -> None:
    value = b'{"payload":{"before":null,"after":{"note":"\\"op\\":\\"x\\""},"source":{},"op":"u","ts_ms":1}}'
    assert operation(value) == "u"
    assert operation(None) == "tombstone"


@pytest.mark.parametrize("rows", [1000, 4321, 240_000])
def test_the_shop_has_the_requested_number_of_rows(rows: int) -> None:
    assert Sizes.of(rows).total == rows


def test_the_same_rows_are_generated_each_time_with_a_value_for_every_column() -> None:
    sizes = Sizes.of(1000)
    assert set(COLUMNS) == set(TABLES)
    for table, columns in COLUMNS.items():
        rows = list(generate_rows(table, sizes))
        assert rows == list(generate_rows(table, sizes))
        assert {len(row) for row in rows} == {len(columns.split())}
        assert len(rows) == getattr(sizes, table)


def test_a_signal_interrupts_once_and_not_while_the_demo_is_stopping() -> None:
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
