"""``rowtide peek``: which records it prints, and its errors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer

from rowtide.cli import main
from rowtide.cli.peek import _Printer
from rowtide.connector.delivery.errors import ClaimCheckUnavailable
from rowtide.envelope.claim_check import ClaimCheck
from rowtide.schema_history.store.topic_reader import StoredRecord
from rowtide.topics.settings import TopicSettings

if TYPE_CHECKING:
    from tests.support.kafka.topic_tools import Topics


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["peek", *arguments])
    return result.exit_code, result.output


def produce(topics: Topics, topic: str, values: Mapping[str, str | None], partition: int = 0) -> None:
    producer = Producer(topics.client)
    for key, value in values.items():
        producer.produce(topic, value, key, partition)
    assert producer.flush(20) == 0


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("t",), "the addresses of Kafka are needed: --config or --bootstrap-servers"),
        (("t", "--from-start", "--follow"), "--from-start and --follow are mutually exclusive"),
    ],
)
def test_wrong_options(arguments: tuple[str, ...], text: str) -> None:
    status, output = run(*arguments)
    assert status == 2
    assert text in output


def test_a_configuration_without_kafka(tmp_path: Path) -> None:
    config = tmp_path / "shop.properties"
    config.write_text(
        "name=x\ntopic.prefix=p\nrowtide.sink=stdout\noffset.storage.file.filename=/tmp/offsets\n"
        "schema.history.internal=io.debezium.storage.file.history.FileSchemaHistory\n"
        "schema.history.internal.file.filename=/tmp/history\n"
    )
    status, output = run("t", "--config", str(config))
    assert status == 2
    assert "has no bootstrap.servers: add --bootstrap-servers" in output


def test_messages_without_schemas_have_one_note(capsys: pytest.CaptureFixture[str]) -> None:
    event = b'{"op":"c","source":{},"after":{"spent":"A4Q="}}'
    for as_json, notes in ((False, 1), (True, 0)):
        printer = _Printer(as_json=as_json)
        for offset in range(2):
            printer.print("t", StoredRecord(0, offset, -1, None, event))
        out, err = capsys.readouterr()
        assert out.count("A4Q=") == 2
        assert err.count("have no schemas") == notes


@pytest.mark.servers
def test_the_last_records_are_printed(topics: Topics) -> None:
    topic = topics.new()
    produce(topics, topic, {f'{{"id":{n}}}': f'{{"n":{n}}}' for n in range(20)})
    status, text = run(topic, "--bootstrap-servers", topics.client["bootstrap.servers"], "-n", "3")
    assert status == 0
    values = [line for line in text.splitlines() if line.startswith("  value")]
    assert values == ["  value   n=17", "  value   n=18", "  value   n=19"]
    assert f"{topic}  partition 0  offset 19  written 20" in text


@pytest.mark.servers
def test_the_first_records_as_json(topics: Topics) -> None:
    topic = topics.new(2)
    produce(topics, topic, {"a": "1", "b": None}, partition=1)
    status, text = run(
        topic, "--bootstrap-servers", topics.client["bootstrap.servers"], "-n", "2", "--from-start", "--json"
    )
    assert status == 0
    first, second = map(json.loads, text.splitlines())
    assert (first["partition"], first["offset"], first["key"], first["value"]) == (1, 0, "a", "1")
    assert (second["key"], second["value"]) == ("b", None)


@pytest.mark.servers
def test_records_of_aborted_transactions_are_omitted(topics: Topics) -> None:
    topic = topics.new()
    producer = Producer({**topics.client, "transactional.id": topic})
    producer.init_transactions(30)
    for value, commit in (("committed", True), ("aborted", False)):
        producer.begin_transaction()
        producer.produce(topic, f'{{"state":"{value}"}}')
        producer.commit_transaction(30) if commit else producer.abort_transaction(30)
    status, text = run(topic, "--bootstrap-servers", topics.client["bootstrap.servers"])
    assert status == 0
    assert 'state="committed"' in text
    assert "aborted" not in text


@pytest.mark.servers
def test_a_table_of_a_connector(topics: Topics, tmp_path: Path) -> None:
    topic = topics.new()
    full = f"{topic}.shop.orders"
    topics.admin.ensure(full, TopicSettings(1, 1))
    produce(topics, full, {"a": '{"id":1}'})
    config = tmp_path / "shop.properties"
    config.write_text(f"topic.prefix={topic}\nbootstrap.servers={topics.client['bootstrap.servers']}\n")
    status, text = run("shop.orders", "--config", str(config))
    assert (status, "id=1" in text) == (0, True), text
    status, text = run("shop.order", "--config", str(config))
    assert status == 1
    assert f"there is no topic shop.order or {topic}.shop.order" in text
    assert f"did you mean {full}" in text


def test_a_claim_check_is_shown_by_its_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    value = b'{"id":"\xc3\xbc"}'
    digest = hashlib.sha256(value).hexdigest()
    check = ClaimCheck(f"file:///data/t/{digest}", digest, len(value))
    record = StoredRecord(0, 0, -1, b"1", check.record_value())
    _Printer(as_json=True).print("t", record)
    assert f"rowtide-claim-check {digest}" in capsys.readouterr().out
    printer = _Printer(claim_checks=str(tmp_path), as_json=True)
    with pytest.raises(ClaimCheckUnavailable, match=digest):
        printer.print("t", record)
    (tmp_path / "t").mkdir()
    (tmp_path / "t" / digest).write_bytes(value)
    printer.print("t", record)
    assert json.loads(capsys.readouterr().out)["value"] == value.decode()
