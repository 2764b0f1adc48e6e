"""A worker with rejected and too large rows, in a snapshot and the stream, killed in between: each row is kept once."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

LARGE = "9" * 30_000
UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}
CAST = {
    "transforms": "unwrap,cast",
    "transforms.cast.type": "org.apache.kafka.connect.transforms.Cast$Value",
    "transforms.cast.spec": "n:int32",
}


@pytest.mark.parametrize("producer", ["native", pytest.param("librdkafka", marks=pytest.mark.nightly)])
def test_rows_that_cannot_be_sent_are_kept_once_and_replayed(
    mysql_db: Database, topics: Topics, configured: Callable[..., WorkerConfig], producer: str
) -> None:
    config, letters = configured(exactly_once=True), topics.name()
    config.properties |= {
        **UNWRAP,
        **CAST,
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "rowtide.large.records": "dead-letter",
        "rowtide.producer": producer,
        "producer.override.max.request.size": "20000",
        "producer.override.batch.size": "10000",
    }
    topic = config.topic(f"{mysql_db.name}.t")

    def rows(first: int) -> list[str]:
        values = [("1", "a"), ("x", "b"), ("3", LARGE), ("4", "d"), ("5", LARGE)]
        return [f"INSERT INTO t VALUES ({first + at}, '{n}', '{v}')" for at, (n, v) in enumerate(values)]

    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY, n VARCHAR(9), v MEDIUMTEXT)", *rows(1))
    for begin in (11, 21):
        with Worker(config).streaming() as worker:
            mysql_db.execute(*rows(begin))
            if begin == 11:
                worker.kill()
            else:
                eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "everything is read")
                worker.stop()
    sent = [json.loads(one.value or b"{}")["id"] for one in topics.read(topic)]
    assert sent == [1, 4, 11, 14, 21, 24]

    def run(*arguments: str) -> list[str]:
        result = CliRunner().invoke(main, ["deadletters", "--config", str(config.path), *arguments])
        assert result.exit_code == 0, result.output
        return result.output.splitlines()

    found = [json.loads(line) for line in run("--json")]
    stages = ["TRANSFORMATION", "KAFKA_PRODUCE", "KAFKA_PRODUCE"] * 3
    assert [one["stage"] for one in found] == stages
    assert all(one["parts"] == one["present"] for one in found)
    assert [one["parts"] > 1 for one in found] == [stage == "KAFKA_PRODUCE" for stage in stages]
    config.properties |= {**UNWRAP, "producer.override.max.request.size": "1000000"}
    assert len(run("--replay", "all")) == 9
    assert run("--replay", "all") == []
    seen = [json.loads(one.value or b"") for one in topics.read(topic)]
    rows_sent = {row["id"]: (row["n"], row["v"]) for row in seen}
    assert len(seen) == len(rows_sent) == 15
    assert rows_sent[12] == ("x", "b")
    assert rows_sent[25] == (5, LARGE)
