"""The streamed records of every recorded case, replayed from its binlog files, byte for byte."""

import json
from typing import Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import HistoryEntry, Output
from rowtide.schema_history.position.gtid import GtidSet
from tests.support.recordings import history_differences
from tests.support.recordings.differences import (
    DIFFERENCES,
    LOST,
    MORE,
    NOT_REPLAYED,
    PENDING,
    PHANTOMS,
    STOPS,
    put_right,
)
from tests.support.recordings.golden import Case, Written, by_topic, cases, check_messages, normalised, written

CASES = [
    pytest.param(name, marks=pytest.mark.xfail(reason=PENDING[name], strict=True) if name in PENDING else ())
    for name in cases()
    if name not in NOT_REPLAYED
]


def expected(case: Case) -> dict[str, list[Written]]:
    """The recorded messages, with rowtide's messages where the recorded ones are damaged."""
    topics = case.streamed()
    put_right(topics, DIFFERENCES.get(case.name, []), case.name)
    for topic, places in PHANTOMS.get(case.name, ("", {}))[1].items():
        for place in reversed(places):
            del topics[f"{case.prefix}.{topic}"][place]
    return topics


def take_lost(case: Case, found: dict[str, list[Written]]) -> None:
    """Remove the messages that Debezium lost, after checking them."""
    for lost in reversed(LOST.get(case.name, [])):
        message = found[f"{case.prefix}.{lost.topic}"].pop(lost.place)
        assert message.value is not None
        payload = json.loads(message.value)["payload"]
        assert (payload["before"], payload["after"]) == (lost.before, lost.after)
        assert payload["op"] == ("c" if lost.before is None else "d" if lost.after is None else "u")


@pytest.mark.parametrize("name", CASES)
def test_the_replayed_stream_equals_the_recorded_one(name: str) -> None:
    case = Case(name)
    _, more = STOPS.get(name, ("", {}))
    settings = pipeline_settings(from_properties(case.properties() | more), "run")
    outputs = list(replay(case.binlog, settings, case.start))
    found = by_topic(written(outputs))
    take_lost(case, found)
    found.pop(case.description["config"].get("notification.sink.topic.name", ""), None)  # see test_signal_cases
    wanted = expected(case)
    check_messages(wanted, found, more=name in MORE)
    further = [message for topic in found for message in found[topic][len(wanted.get(topic, [])) :]]
    for text in MORE.get(name, ())[1:]:
        assert any(text in str(message.value) for message in further), text
    check_history(case, [json.loads(output.text) for output in outputs if isinstance(output, HistoryEntry)])


def check_history(case: Case, found: list[dict[str, Any]]) -> None:
    """Compare the records of the schema history; clocks may differ, and so may entries that only rowtide writes."""
    recorded = [json.loads(record["value"]) for record in case.records if record["topic"] == "history"]
    begin = None if case.start is None else case.start.to_map()  # of a blocking snapshot's last record, too
    positions = ((record, record["position"]) for record in recorded)
    wanted = [record for record, position in positions if not position.get("snapshot") and position != begin]
    more = history_differences.MORE.get(case.name, set())
    found = [record for record in found if record.get("ddl") not in more]
    if case.name in history_differences.UNCHECKED or not wanted:
        return
    tables = history_differences.TABLES.get(case.name, {})
    met = set()
    for want, have in zip(wanted, found, strict=case.name not in MORE and case.name not in LOST):
        fields = {**have, "ts_ms": want["ts_ms"]}
        fields.pop("session", None)
        if case.name in history_differences.GTID_SETS:
            have_gtids, want_gtids = (GtidSet.parse(record["position"]["gtids"]) for record in (fields, want))
            assert have_gtids == want_gtids
            fields["position"] = {**fields["position"], "gtids": want["position"]["gtids"]}
        other = next((begin for begin in tables if want.get("ddl", "").startswith(begin)), None)
        if other is not None:
            assert fields["tableChanges"] != want["tableChanges"]
            fields["tableChanges"] = want["tableChanges"]
            met.add(other)
        assert fields == want
    assert met == set(tables)


@pytest.mark.parametrize("name", sorted(STOPS))
def test_a_stream_stops_where_rows_would_be_lost(name: str) -> None:
    case = Case(name)
    message, _ = STOPS[name]
    outputs = replay(case.binlog, pipeline_settings(from_properties(case.properties()), "run"), case.start)
    found: list[Output] = []
    with pytest.raises(ConnectorError, match=message):
        found.extend(outputs)
    wanted = expected(case)
    for topic, messages in by_topic(written(found)).items():
        assert messages == wanted[topic][: len(messages)]
        assert len(messages) < len(wanted[topic])


def test_every_case_is_accounted_for() -> None:
    known = set(cases())
    for names in (DIFFERENCES, LOST, MORE, PHANTOMS, STOPS, NOT_REPLAYED, PENDING):
        assert set(names) <= known
    assert not set(PENDING) & set(NOT_REPLAYED)


def test_messages_are_compared_without_the_times_of_processing() -> None:
    one = Written("t", None, '{"op":"c","ts_ms":1,"ts_us":2,"ts_ns":3}', (("__debezium.context.runId", "a"),))
    two = Written("t", None, '{"op":"c","ts_ms":4,"ts_us":5,"ts_ns":6}', (("__debezium.context.runId", "b"),))
    assert normalised(one) == normalised(two)
    assert normalised(one) != normalised(Written("t", None, '{"op":"u","ts_ms":1,"ts_us":2,"ts_ns":3}', one.headers))
