"""``rowtide deadletters``: each record once, and its value as it was."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from rowtide.cli import main
from rowtide.cli.dead_letters import summaries, value_of
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.dead_letters import Reason, dead_letter, parts
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import StoredRecord
from rowtide.topics.settings import TopicSettings
from tests.support.configurations import PROPERTIES

if TYPE_CHECKING:
    from tests.support.kafka.topic_tools import Topics

VALUE = bytes(range(250))
BATCH = Batch("shop.a", -1, [], SourceOffset("b.000001", 4), 0, 0)
LETTER, IDENTITY = dead_letter(BATCH, (b"k", VALUE, ()), Reason("s", "k", "too large"), connector="n", context=True)
OTHER = StoredRecord(0, 0, -1, b"k", b"v", (("__connect.errors.topic", b"x"),))


def stored(most: int = 100) -> list[StoredRecord]:
    return [StoredRecord(0, n, -1, *made[:2], tuple(made[2])) for n, made in enumerate(parts(LETTER, most))]


def test_a_letter_that_was_sent_twice_is_shown_once() -> None:
    assert summaries([OTHER, *stored(), *stored()]) == [
        {
            "id": IDENTITY,
            "topic": "shop.a",
            "position": "b.000001:4",
            "size": 250,
            "parts": 3,
            "present": 3,
            "key": "k",
            "reason": "too large",
        }
    ]
    assert value_of([*stored(), OTHER, *stored()[:2]], IDENTITY) == VALUE


def test_a_missing_part_is_seen() -> None:
    (letter,) = summaries(stored()[:2])
    assert (letter["parts"], letter["present"]) == (3, 2)
    with pytest.raises(ValueError, match="has 3 parts, and 2 of them"):
        value_of(stored()[:2], IDENTITY)
    with pytest.raises(ValueError, match="there is no dead letter x"):
        value_of(stored(), "x")


def test_a_configuration_without_dead_letters(tmp_path: Path) -> None:
    config = tmp_path / "shop.json"
    config.write_text(json.dumps(PROPERTIES))
    result = CliRunner().invoke(main, ["deadletters", "--config", str(config)])
    assert result.exit_code == 2
    assert "has no errors.deadletterqueue.topic.name" in result.output


@pytest.mark.servers
def test_the_value_of_a_letter_in_kafka_is_printed(topics: Topics, tmp_path: Path) -> None:
    topic, config = topics.name(), tmp_path / "shop.json"
    given = {"bootstrap.servers": topics.client["bootstrap.servers"], "errors.deadletterqueue.topic.name": topic}
    config.write_text(json.dumps({**PROPERTIES, **given, "rowtide.large.records": "dead-letter"}))
    arguments = ["deadletters", "--config", str(config)]
    assert f"there is no topic {topic}" in CliRunner().invoke(main, arguments).output
    topics.admin.ensure(topic, TopicSettings(1, 1))
    producer = Producer(topics.client)
    for key, value, headers in parts(LETTER, 100):
        producer.produce(topic, value, key, headers=list(headers))
    assert producer.flush(20) == 0
    assert f"{IDENTITY}  shop.a  before b.000001:4  250 bytes\n" in CliRunner().invoke(main, arguments).output
    assert CliRunner().invoke(main, [*arguments, "--value", IDENTITY]).stdout_bytes == VALUE
    assert json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output)["id"] == IDENTITY
