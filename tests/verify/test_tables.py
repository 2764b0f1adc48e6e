"""The comparison of a table with the records that its topic still has."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rowtide.schema_history.store.topic_reader import Extent
from rowtide.spark_consumers.state import Batch, RowFilter
from rowtide.verify.errors import Undecided
from rowtide.verify.tables import TableComparison, TableResult

COLUMNS = (
    ("__op", "string"), ("__source_ts_ms", "bigint"), ("__source_file", "bigint"), ("__source_pos", "bigint"),
    ("__source_row", "int"),
)  # fmt: skip


def comparison(policy: str, result: TableResult, where: RowFilter | None = None) -> TableComparison:
    """Return the comparison of a table of changes that has a row of which its topic has no record."""
    stored: Any = SimpleNamespace(
        path="t",
        version=1,
        others=(),
        batch=Batch("a", offsets={0: 9}, layout="append", where=where),
        columns=lambda: COLUMNS,
        rows=lambda _columns: iter([("c", 5, 1, 5, 0)]),
        is_replaced=lambda: False,
    )
    topic: Any = SimpleNamespace(
        topic_id=lambda _name: None,
        extents=lambda _name: {0: Extent(0, 9)},
        records_before=lambda _name, _ends: iter(()),
    )
    texts: Any = SimpleNamespace(key_names=("id",), kinds={}, compares=lambda _name: True)
    options: Any = SimpleNamespace(most=10)
    return TableComparison(result, stored, topic, texts, options, lambda: (), lambda: policy, exact=True)


def test_a_change_that_the_topic_does_not_have_is_named(tmp_path: Path) -> None:
    result = TableResult("p.d.t")
    comparison("delete", result).run(tmp_path)
    assert (result.outcome, [one.kind for one in result.differences]) == ("different", ["extra"])


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        ("compact", r"Kafka deletes earlier records of a key \(cleanup.policy=compact\): rows that only the table has"),
        ("compact,delete", r"\(cleanup.policy=compact,delete\)"),
        ("", r"Kafka does not report whether topic p.d.t is compacted \(cleanup.policy\)"),
    ],
)
def test_a_compacted_topic_proves_no_row_of_a_table_of_changes_wrong(tmp_path: Path, policy: str, reason: str) -> None:
    with pytest.raises(Undecided, match=reason):
        comparison(policy, TableResult("p.d.t")).run(tmp_path)


def test_a_table_with_some_of_the_rows_is_undecided(tmp_path: Path) -> None:
    with pytest.raises(Undecided, match="the table has only the rows with a = 1"):
        comparison("delete", TableResult("p.d.t"), RowFilter("a = 1")).run(tmp_path)
