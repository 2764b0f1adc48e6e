"""``rowtide deadletters``: shows each record once, its value as it was, and replays it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from confluent_kafka import Producer

from rowtide.cli import main
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

if TYPE_CHECKING:
    from tests.support.kafka.topic_tools import Topics

VALUE = bytes(range(250))
PLACE = SourceOffset("b.000001", 4)
TOO_LARGE = Reason("KAFKA_PRODUCE", "k", "too large")
PLAIN = JsonSettings(schemas_enable=False)


def too_large(topic: str, key: bytes, value: bytes) -> tuple[Message, str]:
    made = DeadLetters("x", "n", context=True).letter(Batch(topic, -1, [], PLACE, 0, 0), (key, value, ()), TOO_LARGE)
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
        (["--value", "x", "--json"], "--value, --replay and --json exclude each other"),
        (["--value", "x", "--replay", "all"], "--value, --replay and --json exclude each other"),
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

    def send(*messages: Message, topic: str = name) -> None:
        for key, value, headers in messages:
            producer.produce(topic, value, key, headers=list(headers), partition=0)
        assert producer.flush(20) == 0

    return config, name, send


@pytest.mark.servers
def test_dead_letters_are_shown_and_replayed_once(topics: Topics, letters: Any) -> None:
    config, name, send = letters
    assert f"there is no topic {name}" in run(config).output
    topics.admin.ensure(name, TopicSettings(1, 1))
    topic = topics.new()
    (large, first), (small, second) = too_large(topic, b"k", VALUE), too_large(topic, b"o", b"old")
    odd, third = rejected(topic)
    send(*parts(large, 100), small, odd)
    send((b"o", b"new", ()), topic=topic)
    assert f"{first}  {topic}  before b.000001:4  250 bytes\n  key     k\n  stage   KAFKA_PRODUCE" in run(config).output
    assert run(config, "--value", first).stdout_bytes == VALUE
    assert [json.loads(line)["id"] for line in run(config, "--json").output.splitlines()] == [first, second, third]

    result = run(config, "--replay", "all")
    assert result.exit_code == 1
    assert f"{first}  replayed to {topic}" in result.output
    assert f"{second}  not replayed: topic {topic} has a record with the same key" in result.output
    assert f"{third}  replayed to {topic}" in result.output
    seen = [(one.key, one.value, one.headers) for one in topics.read(topic)]
    assert seen == [(b"o", b"new", ()), (b"k", VALUE, ()), (b'{"id":7}', b'{"id":7}', ())]

    assert f"dead letter {first} was replayed before" in run(config, "--replay", first).output
    assert run(config, "--replay", "all", "--overwrite").output == f"{second}  replayed to {topic}\n"
    assert run(config, "--replay", "all").output == ""
    assert [one.value for one in topics.read(topic)][3:] == [b"old"]
    assert [json.loads(line)["replayed"] for line in run(config, "--json").output.splitlines()] == [True] * 3


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
