"""Signals to a worker by every channel, sent by ``rowtide signal``, and done once also after a kill."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from rowtide.cli import main
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

CHANNELS = ["source", "kafka", "file", "http"]


def send(worker: Worker, config: WorkerConfig, kind: str, channel: str, data: object, signal_id: str) -> list[str]:
    """Send a signal; returns the types of its notifications."""
    arguments = ["signal", kind, str(config.path), "--channel", channel, "--id", signal_id, "--data", json.dumps(data)]
    result = CliRunner().invoke(main, [*arguments, "--web", f"http://127.0.0.1:{worker.port}"])
    types = [json.loads(line)["type"] for line in result.stdout.splitlines()]
    assert result.exit_code == (0 if types and types[-1] == "COMPLETED" else 1), result.output
    return types


def test_a_signal_of_any_channel_is_done_once(
    mysql_db: Database,
    kafka: Kafka,
    topics: Topics,
    configured: Callable[..., WorkerConfig],
    tmp_path: Path,
) -> None:
    mysql_db.execute(
        "CREATE TABLE sig (id VARCHAR(64) PRIMARY KEY, type VARCHAR(32), data VARCHAR(2048))",
        "CREATE TABLE t (id INT PRIMARY KEY)",
    )
    config = configured(exactly_once=True)
    config.properties |= {
        "signal.data.collection": f"{mysql_db.name}.sig",
        "signal.enabled.channels": "source,kafka,file",
        "signal.file": str(tmp_path / "signals.txt"),
        "signal.poll.interval.ms": "100",
        "signal.kafka.groupId": f"{config.name}-signals",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": f"{config.name}-notes",
    }
    topic = f"{config.name}-signal"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(30)
    foreign = Producer({"bootstrap.servers": kafka.bootstrap})
    foreign.produce(topic, b'{"type":"log","data":{"message":"not for us"}}', b"another", partition=0)
    foreign.produce(topic, b"no json", config.name.encode(), partition=0)
    assert foreign.flush(30) == 0

    def failures() -> dict[str, dict[str, str]]:
        """The data of the notifications of failures that are in Kafka, by the ids of the signals."""
        notified = [json.loads(record.value or "") for record in topics.read(f"{config.name}-notes")]
        return {one["id"]: one["additional_data"] for one in notified if one["type"] == "FAILED"}

    with Worker(config).streaming() as worker:
        for channel in CHANNELS:
            assert send(worker, config, "log", channel, {"message": f"by {channel}: {{}}"}, f"1-{channel}") == [
                "COMPLETED"
            ]
            assert send(worker, config, "no-such-type", channel, {}, f"2-{channel}") == ["FAILED"]
        eventually(lambda: list(tmp_path.glob("*.taken")) == [], "the effects of all signals are stored")
        eventually(lambda: {f"2-{channel}" for channel in CHANNELS} <= failures().keys(), "all notifications")
        first = worker.log
        worker.signal(signal.SIGKILL)
        worker.wait()
    for channel in CHANNELS:
        assert first.count(f"by {channel}: {{") == 1
    assert "not for us" not in first
    failed = failures()
    assert {name for name in failed if name.startswith("2-")} == {f"2-{channel}" for channel in CHANNELS}
    assert [data["error"].split(" (")[0] for data in failed.values() if data["signal_type"] == ""] == [
        "a signal is not JSON"
    ]

    with Worker(config).streaming() as worker:
        for channel in CHANNELS:
            assert send(worker, config, "log", channel, {"message": f"again by {channel}"}, f"3-{channel}") == [
                "COMPLETED"
            ]
        log = worker.stop()
    assert [line for line in log.splitlines() if "signal '1-" in line or "signal '2-" in line] == []


def test_a_position_is_set_by_a_signal(
    mysql_db: Database, topics: Topics, configured: Callable[..., WorkerConfig]
) -> None:
    """The next start reads again from there, and every later start does not."""
    config = configured(exactly_once=True)
    topic = config.topic(f"{mysql_db.name}.t")
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    with Worker(config).streaming() as worker:
        eventually(lambda: worker.health()["position"]["read"]["file"], "the position of the first event")
        read = worker.health()["position"]["read"]
        mysql_db.execute("INSERT INTO t VALUES (1)")
        eventually(lambda: len(topics.read(topic)) == 1, "the row")
        position = {"binlog_filename": read["file"], "binlog_position": read["pos"]}
        assert send(worker, config, "set-binlog-position", "http", position, "p") == ["COMPLETED"]
        worker.stop()
    for rows in (2, 2):
        with Worker(config).streaming() as worker:
            eventually(lambda expected=rows: len(topics.read(topic)) == expected, "the row again")  # type: ignore[misc]
            worker.stop()


def test_the_state_of_the_snapshot(mysql_db: Database, configured: Callable[..., WorkerConfig]) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1), (2)")
    config = configured()
    with Worker(config).streaming() as worker:
        arguments = ["snapshot", "status", str(config.path), "--web", f"http://127.0.0.1:{worker.port}"]
        shown = CliRunner().invoke(main, arguments)
        assert shown.exit_code == 0, shown.output
        lines = shown.output.splitlines()
        assert lines[0] == f"connector {config.name}: RUNNING"
        assert lines[1].split()[:3] == [f"{mysql_db.name}.t", "finished", "2"]
        assert lines[2].startswith("initial or blocking snapshot, last notification (id ")
        assert lines[2].endswith("): completed")
        found = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).output)
        assert found["tables"][f"{mysql_db.name}.t"]["state"] == "FINISHED"
    gone = CliRunner().invoke(main, arguments)
    assert gone.exit_code == 1
    assert "the web server of the worker cannot be reached" in gone.output
