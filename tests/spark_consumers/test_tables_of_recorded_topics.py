"""Topics that Debezium wrote become tables that equal a fold of their records in plain Python."""

from collections import defaultdict
from pathlib import Path

import pytest
from recorded_tables import fold, recorded, same_rows

from rowtide.spark_consumers.naming import table_topics

pytestmark = pytest.mark.spark

CASES = [
    "numeric-types",
    "temporal-types",
    "strings-and-charsets",
    "keys",
    "geometry-and-vector",
]


@pytest.mark.parametrize("case", CASES)
def test_every_table_equals_the_fold_of_its_records(spark, frame_of, rows_of, tmp_path: Path, case: str) -> None:
    import re

    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.settings import Settings
    from rowtide.spark_consumers.source import FrameSource

    by_topic = defaultdict(list)
    for record in recorded(case):
        if re.fullmatch(table_topics(case), record.topic):
            by_topic[record.topic].append(record)
    source = FrameSource(frame_of([record for records in by_topic.values() for record in records]).cache())
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), prefix=case)

    outcomes = list(update_tables(spark, source, settings))

    assert [outcome.error for outcome in outcomes] == [None] * len(by_topic)
    for outcome in outcomes:
        records = by_topic[outcome.name.topic]
        assert outcome.records == len(records)
        expected = fold(records)
        same_rows(rows_of(str(tmp_path / outcome.name.path)), expected)
