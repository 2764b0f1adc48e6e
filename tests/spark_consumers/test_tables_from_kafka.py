"""``rowtide tables`` with a real Kafka: topics that Debezium wrote, read in two runs, and errors."""

import json
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, recorded, same_rows

pytestmark = [pytest.mark.servers, pytest.mark.spark]

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
MORE = {"type": "string", "optional": False, "field": "more", "default": ',"payload":'}


def produce(bootstrap: str, topic: str, records) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": topic})
    producer.init_transactions()
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, record.value, record.key, partition=record.partition)
    producer.commit_transaction()  # its marker takes an offset, like those of the worker
    producer.begin_transaction()
    for record in records:
        producer.produce(topic, None, record.key, partition=record.partition)
    producer.flush()
    producer.abort_transaction()


def wait_until_gone(admin, topic: str) -> None:
    for _ in range(200):
        if topic not in admin.list_topics(timeout=30).topics:
            return
        time.sleep(0.1)
    raise AssertionError(f"topic {topic} is still there")


def test_tables_follow_the_topics_of_a_broker(spark, kafka, rows_of, tmp_path: Path) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    names = ["keys.k.comp", "keys.k.large"]
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    for future in admin.create_topics([NewTopic(name, 1, 1) for name in [*names, "keys"]]).values():
        future.result()
    records = {"keys.k.comp": [r for r in recorded("keys") if r.topic == "keys.k.comp"], "keys.k.large": large()}

    def run(*arguments: str) -> tuple[int, str]:
        found = CliRunner().invoke(
            main,
            [
                "tables",
                "--bootstrap-servers",
                kafka.bootstrap,
                "--topic-prefix",
                "keys",
                "--output",
                str(tmp_path),
                *arguments,
            ],
        )
        return found.exit_code, found.output

    parts = {name: (found[: len(found) // 2], found[len(found) // 2 :]) for name, found in records.items()}
    for part in (0, 1):
        for name in names:
            produce(kafka.bootstrap, name, parts[name][part])
        status, output = run("--json")
        assert status == 0, output
        outcomes = {line["topic"]: line for line in map(json.loads, output.splitlines()) if line["topic"] in names}
        assert {name: sum(outcomes[name]["read"].values()) for name in names} == {
            name: len(parts[name][part]) for name in names
        }
    for name in names:
        same_rows(rows_of(str(tmp_path / name.removeprefix("keys.").replace(".", "/"))), fold(records[name]))
    job = tmp_path / "tables.yaml"
    job.write_text("tables:\n- table: k[.]comp\n- table: k[.][cl].*\n- table: k[.]lrge\n")
    status, output = run("--job", str(job))
    assert (status, "2 tables had no new records." in output) == (0, True)
    assert [line for line in output.splitlines() if line.startswith("warning")] == [
        "warning  --job: table k[.]lrge matches no table of the topics: correct it, unless its tables are still to come"
    ]

    produce(kafka.bootstrap, "keys.k.comp", parts["keys.k.comp"][1])
    end = outcomes["keys.k.comp"]["offsets"]["0"][1] + 5
    admin.delete_records([TopicPartition("keys.k.comp", 0, end)])[TopicPartition("keys.k.comp", 0)].result()
    status, output = run()
    assert status == 1
    assert "topic keys.k.comp, partition 0: offsets" in output
    assert "were deleted by Kafka before they were read" in output

    # Its offsets are valid in the new topic, so that only the id shows that it is another one.
    admin.delete_topics(["keys.k.large"])["keys.k.large"].result()
    wait_until_gone(admin, "keys.k.large")
    admin.create_topics([NewTopic("keys.k.large", 1, 1)])["keys.k.large"].result()
    for _ in range(3):
        produce(kafka.bootstrap, "keys.k.large", records["keys.k.large"])
    status, output = run("--topics", "keys.k.large")
    assert (status, "topic keys.k.large was deleted and re-created" in output) == (1, True)
    status, output = run("--topics", "keys.k.large", "--restart", "k.large")
    assert status == 0, output
    same_rows(rows_of(str(tmp_path / "k" / "large")), fold(records["keys.k.large"]))

    status, output = run("--topics", "nothing.*")
    assert (status, "no topic matches nothing.*" in output) == (1, True)
    # An address without a listener, and a client with a short timeout
    status, output = run("--bootstrap-servers", "127.0.0.1:9", "--kafka-property", "default.api.timeout.ms=1500")
    assert (status, "Kafka at 127.0.0.1:9 did not answer" in output) == (1, True)


def large():
    """Return so many records that the schemas of a sample are used; one schema is not in the sample."""
    versions = [Topic("keys.k.large", columns, ["id"]) for columns in ([ID], [ID, TEXT], [ID, TEXT, MORE])]
    first = versions[0]
    for number in range(4_200):
        version = versions[(number >= 1_000) + (number >= 1_400)]
        version.ends, version.records = first.ends, first.records
        row = {"id": number % 50, "text": f'n{number},"payload":', "more": "{}"}
        row = {column["field"]: row[column["field"]] for column in version.columns}
        version.change("u", row, row, number)
        if number % 1_100 == 0:
            version.change("d", row, None, number)
            version.tombstone({"id": number % 50})
    return first.records
