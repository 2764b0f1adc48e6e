"""The parts of the demo that need no server."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from rowtide_demo.runtime.interruption import Interrupted, Interruption
from rowtide_demo.shop.rows import COLUMNS, generate_rows
from rowtide_demo.shop.schema import TABLES, Sizes
from rowtide_demo.steps.streaming import differences
from rowtide_demo.steps.tables import environment as spark_environment
from rowtide_demo.topic_watch import expected_records, operation


def test_an_interrupted_start_of_spark_leaves_no_temporary_folder_behind(tmp_path: Path) -> None:
    """PySpark makes one until Java answers. The demo removes its own folder with all that is in it."""
    command = [sys.executable, "-c", "import tempfile; print(tempfile.mkdtemp())"]
    environment = {**os.environ, **spark_environment(tmp_path)}
    made = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    assert Path(made.strip()).parent == tmp_path


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
