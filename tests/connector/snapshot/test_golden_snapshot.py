"""The snapshot of every recorded case, taken of a real server: records, structure and offsets byte for byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from differences import put_right
from golden import Case, cases, check_messages
from live_snapshot import SnapshotOutput, configuration, prepared, recorded, run, taken, unmarked
from snapshot_differences import DIFFERENCES, HISTORY, MORE, NOT_TAKEN, SEQUENCES

if TYPE_CHECKING:
    from rowtide_stack import MariaDB, MySQL

_NOT_YET = ("signal.", "incremental.")
"""Properties of what is not there yet, and is no part of an initial snapshot's records."""


def expected(case: Case) -> SnapshotOutput:
    """What was recorded, with what rowtide writes instead where it is damaged."""
    answer = recorded(case)
    put_right(answer.topics, DIFFERENCES.get(case.name, []), case.name)
    for wrong, right in HISTORY.get(case.name, {}).items():
        assert any(wrong in text for text in answer.history)
        answer.history[:] = [text.replace(wrong, right) for text in answer.history]
    return answer


def without_sequences(answer: SnapshotOutput, names: tuple[str, ...]) -> SnapshotOutput:
    """Without the statements about sequences: each of them must be there once."""
    topics, history = {topic: list(messages) for topic, messages in answer.topics.items()}, list(answer.history)
    schema_changes = next(messages for topic, messages in topics.items() if "SchemaChangeKey" in str(messages[0].key))
    for name in names:
        quoted = ".".join(f"`{part}`" for part in name.split("."))
        for statement in (f"DROP TABLE IF EXISTS {quoted}", f"CREATE TABLE `{name.split('.')[1]}`"):
            told = [message for message in schema_changes if f'"ddl":"{statement}' in str(message.value)]
            kept = [text for text in history if f'"ddl" : "{statement}' in text]
            assert len(told) == len(kept) == 1
            schema_changes.remove(told[0])
            history.remove(kept[0])
    return SnapshotOutput(topics, history, answer.running, answer.completed)


@pytest.mark.servers
@pytest.mark.parametrize("name", [name for name in cases() if name not in NOT_TAKEN])
def test_the_snapshot_is_what_was_recorded(name: str, request: pytest.FixtureRequest) -> None:
    case = Case(name)
    server: MySQL | MariaDB = request.getfixturevalue(case.description.get("server", "mysql"))
    properties = {name: text for name, text in case.properties().items() if not name.startswith(_NOT_YET)}
    with prepared(case, server):
        _, outputs = run(configuration(properties, server))
    wanted, found = expected(case), taken(outputs)
    if name in SEQUENCES:
        found = without_sequences(found, SEQUENCES[name])
    messages = dict(wanted.topics)
    for topic in found.topics.keys() - messages.keys():
        # What a transform made of a record may not tell whether it is the snapshot's.
        messages[topic] = unmarked(case, topic)[: len(found.topics[topic])]
    check_messages(messages, found.topics, more=name in MORE)
    kept = found.history[: len(wanted.history)] if name in MORE else found.history
    assert kept == wanted.history
    assert wanted.running in (None, found.running)
    assert wanted.completed in (None, found.completed)
    for text in MORE.get(name, ())[1:]:
        assert any(text in str(message.value) for messages in found.topics.values() for message in messages)


def test_every_case_is_accounted_for() -> None:
    known = set(cases())
    for names in (DIFFERENCES, HISTORY, MORE, NOT_TAKEN, SEQUENCES):
        assert set(names) <= known
