"""Snapshots of the recorded cases from a real server: records, structures and offsets, byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.recordings.differences import put_right
from tests.support.recordings.golden import Case, cases, check_messages
from tests.support.recordings.live_snapshot import (
    SnapshotOutput,
    configuration,
    prepared,
    recorded,
    run,
    taken,
    unmarked,
)
from tests.support.recordings.snapshot_differences import DIFFERENCES, HISTORY, MORE, NOT_TAKEN, SEQUENCES

if TYPE_CHECKING:
    from rowtide_stack import MariaDB, MySQL

_NOT_IMPLEMENTED = ("signal.", "incremental.")
"""Properties of features that are not implemented, and that do not affect the records of an initial snapshot."""


def expected(case: Case) -> SnapshotOutput:
    """What was recorded, with rowtide's output where Debezium damages a value."""
    output = recorded(case)
    put_right(output.topics, DIFFERENCES.get(case.name, []), case.name)
    for wrong, right in HISTORY.get(case.name, {}).items():
        assert any(wrong in text for text in output.history)
        output.history[:] = [text.replace(wrong, right) for text in output.history]
    return output


def without_sequences(output: SnapshotOutput, names: tuple[str, ...]) -> SnapshotOutput:
    """Output without the statements about sequences, each of which must be there once."""
    topics, history = {topic: list(messages) for topic, messages in output.topics.items()}, list(output.history)
    schema_changes = next(messages for topic, messages in topics.items() if "SchemaChangeKey" in str(messages[0].key))
    for name in names:
        quoted = ".".join(f"`{part}`" for part in name.split("."))
        for statement in (f"DROP TABLE IF EXISTS {quoted}", f"CREATE TABLE `{name.split('.')[1]}`"):
            sent = [message for message in schema_changes if f'"ddl":"{statement}' in str(message.value)]
            stored = [text for text in history if f'"ddl" : "{statement}' in text]
            assert len(sent) == len(stored) == 1
            schema_changes.remove(sent[0])
            history.remove(stored[0])
    return SnapshotOutput(topics, history, output.running, output.completed)


@pytest.mark.servers
@pytest.mark.parametrize("name", [name for name in cases() if name not in NOT_TAKEN])
def test_the_snapshot_is_what_was_recorded(name: str, request: pytest.FixtureRequest) -> None:
    case = Case(name)
    server: MySQL | MariaDB = request.getfixturevalue(case.description.get("server", "mysql"))
    properties = {name: text for name, text in case.properties().items() if not name.startswith(_NOT_IMPLEMENTED)}
    with prepared(case, server):
        _, outputs = run(configuration(properties, server))
    expected_output, found = expected(case), taken(outputs)
    if name in SEQUENCES:
        found = without_sequences(found, SEQUENCES[name])
    messages = dict(expected_output.topics)
    for topic in found.topics.keys() - messages.keys():
        # The result of a transform may not show whether its record was the snapshot's.
        messages[topic] = unmarked(case, topic)[: len(found.topics[topic])]
    check_messages(messages, found.topics, more=name in MORE)
    kept = found.history[: len(expected_output.history)] if name in MORE else found.history
    assert kept == expected_output.history
    assert expected_output.running in (None, found.running)
    assert expected_output.completed in (None, found.completed)
    for text in MORE.get(name, ())[1:]:
        assert any(text in str(message.value) for messages in found.topics.values() for message in messages)


def test_every_case_is_accounted_for() -> None:
    known = set(cases())
    for names in (DIFFERENCES, HISTORY, MORE, NOT_TAKEN, SEQUENCES):
        assert set(names) <= known
