"""The tables of topics that Debezium wrote equal a fold of their records in plain Python."""

from pathlib import Path

import pytest

from tests.support.recordings.recorded_tables import fold, recorded, same_rows

pytestmark = pytest.mark.spark

TOPICS = {
    "numeric-types": ["num.bits", "num.decs", "num.floats", "num.ints"],
    "temporal-types": ["tim.d", "tim.ts"],
    "temporal-isostring": ["tim.i"],
    "temporal-nanoseconds": ["tim.n"],
    "strings-and-charsets": ["txt.bin", "txt.s"],
    "enum-set-json": ["esj.es", "esj.j"],
    "geometry-and-vector": ["geo.g", "geo.v"],
    "keys": ["k.comp", "k.enk"],
    "no-tombstones-and-truncate": ["nt.t"],
    "defaults-in-schemas": ["def.t"],
}
"""One topic for each family of types and each kind of change; every topic takes seconds."""


def test_every_table_equals_the_fold_of_its_records(spark, frame_of, rows_of, tmp_path: Path) -> None:
    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    by_topic = {f"{case}.{topic}": [] for case, topics in TOPICS.items() for topic in topics}
    for case in TOPICS:
        for record in recorded(case):
            if record.topic in by_topic:
                by_topic[record.topic].append(record)
    source = FrameSource(frame_of([record for records in by_topic.values() for record in records]).cache())

    outcomes = list(update_tables(spark, source, Settings(str(tmp_path), str(tmp_path / "_rowtide")), ".*"))

    assert {outcome.name.topic: outcome.error for outcome in outcomes} == dict.fromkeys(by_topic)
    for outcome in outcomes:
        records = by_topic[outcome.name.topic]
        assert outcome.records == len(records)
        same_rows(rows_of(str(tmp_path / outcome.name.path)), fold(records))
