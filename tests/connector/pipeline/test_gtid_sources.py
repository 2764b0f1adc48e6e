"""Rows of ignored GTID sources are not published, and their statements are processed (``gtid.source.*``)."""

from __future__ import annotations

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.filters import Patterns, Selection
from tests.support.recordings.golden import Case, by_topic, written

CASES = ["ddl-stream", "mariadb-ddl"]


def replayed(case: Case, **more: str) -> list[Output]:
    properties = {name.replace("_", "."): value for name, value in more.items()}
    settings = pipeline_settings(from_properties(case.properties() | properties), "run")
    return list(replay(case.binlog, settings, case.start))


def source(case: Case) -> str:
    """The only source of the recorded server."""
    gtids = case.start.gtids or ""
    return gtids.partition(":")[0] if ":" in gtids else gtids.rpartition("-")[0]


def last_offset(outputs: list[Output]) -> SourceOffset:
    return [output for output in outputs if isinstance(output, Batch)][-1].offset


def history_entries(outputs: list[Output]) -> int:
    return sum(isinstance(output, HistoryEntry) for output in outputs)


@pytest.mark.parametrize("name", CASES)
def test_rows_of_an_ignored_source_are_omitted(name: str) -> None:
    case = Case(name)
    everything, filtered = replayed(case), replayed(case, gtid_source_excludes=source(case).upper())
    wanted = by_topic(written(everything))
    changes = case.prefix  # the topic of schema changes
    assert wanted.keys() - {changes}, "the case has rows"
    found = by_topic(written(filtered))
    assert found.keys() == {changes}
    assert [(one.key, one.headers) for one in found[changes]] == [(one.key, one.headers) for one in wanted[changes]]
    assert history_entries(filtered) == history_entries(everything) > 0


@pytest.mark.parametrize("name", CASES)
def test_only_the_position_ignores_the_source_without_the_filter_of_rows(name: str) -> None:
    case = Case(name)
    topics = by_topic(written(replayed(case))).keys()
    ignored = replayed(case, gtid_source_excludes=".*", gtid_source_filter_dml_events="false")
    assert by_topic(written(ignored)).keys() == topics
    included = replayed(case, gtid_source_includes=f"other,{source(case)}")
    assert by_topic(written(included)).keys() == topics
    assert last_offset(included) == last_offset(replayed(case))


def test_the_source_is_that_of_the_current_transaction() -> None:
    progress = Progress(SourceOffset("b.1", 4), Selection(Patterns.parse("a6c0,1-7")))
    for gtid, filtered in (
        ("a6c0:5", False),
        ("A6C0:tag:5", False),
        ("b7d1:5", True),
        ("1-7-100", False),
        ("1-8-101", True),
        (None, False),
    ):
        progress.gtid_started(gtid or "", None, None, None) if gtid else progress.anonymous_started(None)
        assert progress.filtered == filtered, gtid
