"""``rowtide deadletters``: shows each record once, its value as it was, and replays it."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from rowtide.cli import dead_letters, main
from rowtide.connector.config import from_properties
from rowtide.connector.engine.dead_letter_replay import DeadLetterReplay
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.pipeline.row_writer import RowWriter
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.dead_letters import DeadLetters, Reason, identified, parts
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import Transforms
from rowtide.connector.records.transforms import Transformer
from rowtide.envelope.converters.json import JsonConverter
from rowtide.envelope.converters.plain import ByteArrayConverter
from rowtide.envelope.schema import INT32, struct
from rowtide.envelope.settings import JsonSettings
from rowtide.envelope.transforms import TransformChain
from rowtide.topics.settings import TopicSettings
from tests.support.configurations import PROPERTIES
from tests.support.recordings.golden import Case, Written, by_topic, written

if TYPE_CHECKING:
    from tests.support.kafka.topic_tools import Topics

VALUE = bytes(range(250))
PLACE = SourceOffset("b.000001", 4)
TOO_LARGE = Reason("KAFKA_PRODUCE", "k", "too large")
PLAIN = JsonSettings(schemas_enable=False)


def too_large(topic: str, key: bytes | None, value: bytes, timestamp: int = 0) -> tuple[Message, str]:
    given = Batch(topic, -1, [], PLACE, 0, 0, timestamp=timestamp)
    made = DeadLetters("x", "n", context=True).letter(given, (key, value, ()), TOO_LARGE)
    return identified(made.messages[0], PLACE, 0)


def rejected(topic: str) -> tuple[Message, str]:
    """A record that the converter of values rejected."""
    strict = Transforms(TransformChain(()), JsonConverter(PLAIN), ByteArrayConverter(), tolerant=True)
    schemas = struct("Key", {"id": INT32}), struct("Value", {"id": INT32})
    given = Batch(topic, -1, [(b'{"id":7}', b'{"id":7}', ())], PLACE, 0, 0, schemas)
    made = Transformer(replace(strict, dead_letters=DeadLetters("x"))).batch(given)
    return identified(made.messages[0], PLACE, 0)


def configured(tmp_path: Path, more: dict[str, str]) -> Path:
    config = tmp_path / "shop.json"
    config.write_text(json.dumps({**PROPERTIES, "rowtide.large.records": "dead-letter", **more}))
    return config


def run(config: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["deadletters", "--config", str(config), *arguments])


def test_a_configuration_without_dead_letters(tmp_path: Path) -> None:
    result = run(configured(tmp_path, {"rowtide.large.records": "fail"}))
    assert result.exit_code == 2
    assert "has no errors.deadletterqueue.topic.name" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--value", "x", "--json"], "--value, --replay and --json are mutually exclusive"),
        (["--value", "x", "--replay", "all"], "--value, --replay and --json are mutually exclusive"),
        (["--overwrite"], "--overwrite needs --replay"),
    ],
)
def test_options_that_contradict_each_other(tmp_path: Path, arguments: list[str], message: str) -> None:
    result = run(configured(tmp_path, {}), *arguments)
    assert result.exit_code == 2
    assert message in result.output


@pytest.fixture
def letters(topics: Topics, tmp_path: Path) -> Any:
    """The configuration, the topic of the records, and what sends messages to the topic of dead letters or another."""
    name = topics.name()
    plain = {}
    for side in ("key", "value"):
        plain[f"{side}.converter"] = "org.apache.kafka.connect.json.JsonConverter"
        plain[f"{side}.converter.schemas.enable"] = "false"
    header = {"header.converter": "org.apache.kafka.connect.storage.StringConverter"}  # so that converters are used
    given = {"bootstrap.servers": topics.client["bootstrap.servers"], "errors.deadletterqueue.topic.name": name}
    config = configured(tmp_path, {**given, **plain, **header})
    producer = Producer(topics.client)

    def send(*messages: Message, topic: str = name, partition: int = 0, at: int = 0) -> None:
        for number, (key, value, headers) in enumerate(messages, at or int(time.time() * 1000) - len(messages)):
            producer.produce(topic, value, key, headers=list(headers), partition=partition, timestamp=number)
        assert producer.flush(20) == 0

    return config, name, send


@pytest.mark.servers
def test_dead_letters_are_shown_and_replayed_once(topics: Topics, letters: Any) -> None:
    config, name, send = letters
    assert f"there is no topic {name}" in run(config).output
    topics.admin.ensure(name, TopicSettings(1, 1))
    topic, k, o = topics.new(), b'{"id":1}', b'{"id":2}'
    (large, first), (small, second) = too_large(topic, k, VALUE), too_large(topic, o, b"old")
    odd, third = rejected(topic)
    send(*parts(large, 100), small, odd)
    send((o, b"new", ()), topic=topic)
    shown = run(config).output
    assert f"{first}  {topic}  before b.000001:4  250 bytes\n  key     {k.decode()}\n  stage   KAFKA_PRODUCE" in shown
    assert run(config, "--value", first).stdout_bytes == VALUE
    assert [json.loads(line)["id"] for line in run(config, "--json").output.splitlines()] == [first, second, third]

    result = run(config, "--replay", "all")
    assert result.exit_code == 1
    assert f"{first}  replayed to {topic}" in result.output
    assert f"{second}  not replayed: topic {topic} has a record with the same key" in result.output
    assert f"{third}  replayed to {topic}" in result.output
    seen = [(one.key, one.value, one.headers) for one in topics.read(topic)]
    assert seen == [(o, b"new", ()), (k, VALUE, ()), (b'{"id":7}', b'{"id":7}', ())]

    assert f"dead letter {first} was replayed before" in run(config, "--replay", first).output
    assert run(config, "--replay", "all", "--overwrite").output == f"{second}  replayed to {topic}\n"
    assert run(config, "--replay", "all").output == ""
    assert [one.value for one in topics.read(topic)][3:] == [b"old"]
    assert [json.loads(line)["replayed"] for line in run(config, "--json").output.splitlines()] == [True] * 3


@pytest.mark.servers
def test_a_replay_never_makes_an_old_version_the_last_one(topics: Topics, letters: Any) -> None:
    config, name, send = letters
    topics.admin.ensure(name, TopicSettings(1, 1))
    topic, now = topics.new(2), int(time.time() * 1000) - 10_000
    keys = "again", "moved", "twice", "timed"
    (older, first), *others = [too_large(topic, key.encode(), b"old") for key in keys]
    (newer, second), (moved, _), (twice, _) = too_large(topic, b"again", b"new"), *others[:2]
    timed, _ = too_large(topic, b"timed", b"old", timestamp=7)
    for number, letter in enumerate([older, newer, moved, twice, timed]):
        send(letter, at=now + number * 100)
    send(twice, at=now + 2000)  # after a crash, which also sends the record before it again
    send((b"twice", b"older", ()), topic=topic, at=now + 1000)
    send((b"timed", b"new", ()), topic=topic, at=5)  # sent last, with a time that a transform chose
    send((b"moved", b"new", ()), topic=topic, partition=0, at=now + 5000)
    send((b"moved", b"older", ()), topic=topic, partition=1, at=now + 400)  # the topic had one partition

    assert f"{first}  replayed" in run(config, "--replay", first, "--overwrite").output
    result = run(config, "--replay", "all", "--omit-newer")
    assert f"{second}  replayed to {topic}" in result.output
    assert result.output.count("not replayed") == 2, result.output
    assert result.output.count("newer records replace it") == 1
    found: dict[bytes | None, list[bytes | None]] = {}
    for one in topics.read(topic):
        found.setdefault(one.key, []).append(one.value)
    assert (found[b"again"], found[b"timed"], found[b"twice"]) == ([b"old", b"new"], [b"new"], [b"older"])
    assert b"old" not in found[b"moved"]
    assert run(config, "--replay", "all", "--overwrite").exit_code == 0


@pytest.mark.servers
def test_two_replays_at_the_same_time_send_a_record_without_a_key_once(
    topics: Topics, letters: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    config, name, send = letters
    topics.admin.ensure(name, TopicSettings(1, 1))
    topic = topics.new()
    send(too_large(topic, None, b"row")[0])

    class Late(DeadLetterReplay):
        def __init__(self, *arguments: Any) -> None:
            with monkeypatch.context() as patch:
                patch.setattr(dead_letters, "DeadLetterReplay", DeadLetterReplay)
                assert "replayed to" in run(config, "--replay", "all").output
            super().__init__(*arguments)

    monkeypatch.setattr(dead_letters, "DeadLetterReplay", Late)
    assert run(config, "--replay", "all").exit_code == 0
    assert [one.value for one in topics.read(topic)] == [b"row"]


@pytest.mark.servers
def test_a_dead_letter_that_is_still_too_large_stays(topics: Topics, letters: Any) -> None:
    config, name, send = letters
    topics.admin.ensure(name, TopicSettings(1, 1))
    topic = topics.new(1, {"max.message.bytes": "5000"})
    (large, first), (small, second) = too_large(topic, b"k", bytes(10_000)), too_large(topic, b"o", b"v")
    send(large, small)
    result = run(config, "--replay", "all")
    assert result.exit_code == 1
    assert f"{first}  not replayed: Kafka refuses a message for topic" in result.output
    assert f"{second}  replayed to {topic}" in result.output
    assert [one.value for one in topics.read(topic)] == [b"v"]
    assert [json.loads(line)["replayed"] for line in run(config, "--json").output.splitlines()] == [False, True]


@pytest.mark.servers
def test_events_are_replayed_with_the_structures_of_the_schema_history(
    topics: Topics, letters: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, name, send = letters
    topics.admin.ensure(name, TopicSettings(1, 1))
    case, history = Case("keys"), tmp_path / "history"
    changes = (json.dumps(json.loads(one["value"])) for one in case.records if one["topic"] == "history")
    history.write_text("".join(f"{change}\n" for change in changes))
    given = {
        **case.properties(),
        "topic.prefix": topics.name(),
        "bootstrap.servers": topics.client["bootstrap.servers"],
        "table.include.list": r"k\.(comp|func)",
        "event.processing.failure.handling.mode": "warn",
        "errors.deadletterqueue.topic.name": name,
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(history),
    }
    given = {name: text for name, text in given.items() if not name.startswith("schema.history.internal.kafka")}
    config = tmp_path / "keys.json"
    config.write_text(json.dumps(given))
    settings = pipeline_settings(from_properties(given), "run")

    def streamed() -> dict[str, list[Written]]:
        return by_topic(written(replay(case.binlog, settings, case.start)))

    whole = streamed()
    with monkeypatch.context() as patch:
        patch.setattr(RowWriter, "write", lambda *_: (_ for _ in ()).throw(ValueError("not known")).send(None))
        outputs = [one for one in replay(case.binlog, settings, case.start) if isinstance(one, Batch)]
    failed = [(one.offset, message) for one in outputs for message in one.messages if one.topic == name]
    made = [identified(message, offset, 0) for offset, message in failed]
    send(*(message for message, _ in made))
    topic = f"{given['topic.prefix']}.k.comp"
    changed = [one for one in whole[topic] if '"op":"u"' in (one.value or "")]
    newer = changed[-1]
    topics.admin.ensure(topic, TopicSettings(1, 1))
    send(((newer.key or "").encode(), b"newer", ()), topic=topic)
    assert "an event of k.comp" in run(config).output

    result = run(config, "--replay", "all")
    assert result.exit_code == 1
    stayed = [line for line in result.output.splitlines() if "has a record with the same key" in line]
    assert stayed, result.output
    assert any("newer (1 of" in line for line in stayed)
    assert f"replayed to {given['topic.prefix']}.k.func" in result.output
    result = run(config, "--replay", "all", "--omit-newer")
    assert "records replace it" in result.output
    # Rows of k.comp have no key for some time, and another one later. A record without a key may be that of a TRUNCATE,
    # and the same row has other keys before and after.
    assert (result.exit_code, "2 of 4 dead letters stay" in result.output) == (1, True)
    for table in ("comp", "func"):
        name = f"{given['topic.prefix']}.k.{table}"
        sent = [(one.key, one.value, ()) for one in topics.read(name) if one.value != b"newer"]
        found = by_topic(written([Batch(name, -1, sent, PLACE, 0, 0)]))[name]
        expected = [replace(one, headers=()) for one in whole[name] if one.key != newer.key or table == "func"]
        assert set(found) <= set(expected)  # a dead letter that was replayed first has newer records than one before it
        last = {one.key: one for one in expected}
        assert {one.key: one for one in found}.items() <= last.items()
        assert table == "comp" or len(found) == len(expected)
