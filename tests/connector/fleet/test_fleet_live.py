"""Workers of a fleet with a real MySQL and Kafka: who runs which connector, and what happens when one ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import threading
import urllib.request
import uuid
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from confluent_kafka import Consumer

from rowtide.cli import main
from rowtide.connector.fleet.configurations import Record, Target, connector_record, restart_record, target_record
from rowtide.connector.fleet.fleet import partition_of
from rowtide.connector.fleet.statuses import ConnectorStatus, Statuses
from rowtide.schema_history.store.topic_writer import TopicWriter
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

PARTITIONS = 2


class Cluster:
    """A fleet with its own topics, and connectors that each read one table."""

    def __init__(
        self, folder: Path, kafka: Kafka, database: Database, partitions: int = PARTITIONS, balance_ms: int = 0
    ) -> None:
        self.folder, self.kafka, self.database = folder, kafka, database
        self.group = f"f{uuid.uuid4().hex[:8]}"
        self.topics = Topics(kafka.bootstrap)
        self._file = folder / "fleet.properties"
        self._writer = TopicWriter({"bootstrap.servers": kafka.bootstrap}, 30)
        properties = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": self.group,
            **{f"{kind}.storage.topic": f"{self.group}-{kind}" for kind in ("config", "status", "offset")},
            **{f"{kind}.storage.replication.factor": "1" for kind in ("config", "status", "offset")},
            "offset.storage.partitions": "1",
            "rowtide.fleet.partitions": str(partitions),
            "rest.advertised.host.name": "127.0.0.1",
            "rowtide.fleet.balance.interval.ms": str(balance_ms),
            "topic.creation.default.partitions": "1",
            "topic.creation.default.replication.factor": "1",
        }
        self._file.write_text("".join(f"{name}={value}\n" for name, value in properties.items()))

    def worker(
        self, labels: str = "", *options: str, program: Sequence[str] = (sys.executable, "-m", "rowtide")
    ) -> Worker:
        """Start another worker, with labels and further options."""
        config = WorkerConfig(self.folder, self.database.server, self.kafka.bootstrap, {})
        own = self.folder / f"labels-{labels}.properties"
        own.write_text(f"rowtide.worker.labels={labels}\n")
        files = [str(self._file), str(own)]
        return Worker(config, command=[*program, "worker", *files, "--web-port", "{port}", *options])

    def faust_worker(self) -> Worker:
        """Start another worker by Faust's command."""
        config = WorkerConfig(self.folder, self.database.server, self.kafka.bootstrap, {})
        program = Path(sys.executable).with_name("faust")
        command = [
            str(program),
            "-A",
            "rowtide.connector.fleet",
            "worker",
            "--loglevel",
            "info",
            "--web-port",
            "{port}",
        ]
        return Worker(config, command=command, environment={**os.environ, "ROWTIDE_CONFIG": str(self._file)})

    def add(self, partition: int | None = None) -> WorkerConfig:
        """Add a connector for a new table with one row, in a partition of the fleet's topic."""
        config = self.prepared(partition)
        self.write(connector_record(config.name, config.properties))
        return config

    def prepared(self, partition: int | None = None) -> WorkerConfig:
        """Create the table, and return the configuration."""
        config = WorkerConfig(self.folder, self.database.server, self.kafka.bootstrap, {})
        while partition is not None and partition_of(config.name, PARTITIONS) != partition:
            config = WorkerConfig(self.folder, self.database.server, self.kafka.bootstrap, {})
        self.database.execute(f"CREATE TABLE {config.name} (id INT PRIMARY KEY)")
        self.insert(config, 1)
        config.properties["connector.class"] = "io.debezium.connector.mysql.MySqlConnector"
        config.properties["table.include.list"] = f"{self.database.name}.{config.name}"
        del config.properties["offset.storage.topic"]
        return config

    def insert(self, config: WorkerConfig, key: int) -> None:
        """Insert a row into the table of a connector."""
        self.database.execute(f"INSERT INTO {config.name} VALUES ({key})")

    def write(self, *records: Record) -> None:
        """Write to the topic of configurations."""
        for key, value in records:
            self._writer.send(f"{self.group}-config", value, key)
        self._writer.wait()

    def send(self, topic: str, value: bytes, key: bytes, partition: int) -> None:
        """Write a record to a partition."""
        self._writer.send(topic, value, key, partition)
        self._writer.wait()

    def keys(self, config: WorkerConfig) -> list[int]:
        """The keys of a connector's table that a consumer of committed records sees."""
        topic = config.topic(f"{self.database.name}.{config.name}")
        return [json.loads(record.key or b"{}")["id"] for record in self.topics.read(topic)]

    def statuses(self) -> dict[str, ConnectorStatus]:
        """What the workers say."""
        found = Statuses()
        for record in self.topics.read(f"{self.group}-status"):
            found.apply(record.key, record.value)
        return dict(found.by_name)


@pytest.fixture
def cluster(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> Cluster:
    return Cluster(tmp_path, kafka, mysql_db)


def all_have(cluster: Cluster, configs: list[WorkerConfig], keys: list[int]) -> None:
    """Insert the last key, and wait until the topics have all keys once."""
    for one in configs:
        cluster.insert(one, keys[-1])
    eventually(lambda: all(cluster.keys(one) == keys for one in configs), f"the rows {keys}")


def state_is(cluster: Cluster, config: WorkerConfig, state: str | None) -> None:
    """Wait for the state of a connector; ``None``: it has none."""

    def found() -> str | None:
        status = cluster.statuses().get(config.name)
        return None if status is None else status.state

    eventually(lambda: found() == state, f"the state {state}")


def test_connectors_continue_on_another_worker(cluster: Cluster) -> None:
    with cluster.worker() as first:
        first.wait_for_log("the fleet has 0 connectors")
        configs = [cluster.add(partition % PARTITIONS) for partition in range(3)]
        eventually(lambda: all(cluster.keys(one) == [1] for one in configs), "the snapshots")
        with cluster.worker() as second:
            second.streaming()
            all_have(cluster, configs, [1, 2])
            eventually(lambda: len({one.worker_id for one in cluster.statuses().values()}) == 2, "both workers")
            assert {one.state for one in cluster.statuses().values()} == {"RUNNING"}
            first.kill()
            all_have(cluster, configs, [1, 2, 3])
            second.stop()
    assert {one.state for one in cluster.statuses().values()} == {"UNASSIGNED"}


def test_a_worker_that_sleeps_writes_nothing_when_it_wakes(cluster: Cluster) -> None:
    with cluster.worker() as first:
        first.wait_for_log("the fleet has 0 connectors")
        configs = [cluster.add(partition) for partition in range(PARTITIONS)]
        eventually(lambda: all(cluster.keys(one) == [1] for one in configs), "the snapshots")
        with cluster.worker() as second:
            second.streaming()
            first.signal(signal.SIGSTOP)
            all_have(cluster, configs, [1, 2])
            first.signal(signal.SIGCONT)
            all_have(cluster, configs, [1, 2, 3])
            first.wait_for_log("this process did not run")
            second.kill()
            all_have(cluster, configs, [1, 2, 3, 4])
            first.stop()


def test_a_connector_is_what_its_records_say(cluster: Cluster) -> None:
    with cluster.worker() as worker:
        config = cluster.add()
        state_is(cluster, config, "RUNNING")
        for target in (Target.PAUSED, Target.STOPPED):
            cluster.write(target_record(config.name, target))
            state_is(cluster, config, target.value)
        cluster.insert(config, 2)
        cluster.write(target_record(config.name, Target.STARTED))
        eventually(lambda: cluster.keys(config) == [1, 2], "the row after the stop")

        before = worker.log.count("reading the binlog from")
        cluster.write(restart_record(config.name, only_failed=False))
        worker.wait_for_log("reading the binlog from", before + 1)

        cluster.write(connector_record(config.name, {**config.properties, "snapshot.mode": "sometimes"}))
        state_is(cluster, config, "FAILED")
        assert "snapshot.mode" in cluster.statuses()[config.name].trace
        cluster.write((b"connector-" + config.name.encode(), b"{broken"))
        worker.wait_for_log("is skipped: it is not JSON")
        cluster.write(connector_record(config.name, config.properties))
        state_is(cluster, config, "RUNNING")
        all_have(cluster, [config], [1, 2, 3])

        cluster.write(target_record(config.name, Target.PAUSED))
        state_is(cluster, config, "PAUSED")
        cluster.write(connector_record(config.name, None), target_record(config.name, None))
        state_is(cluster, config, None)
        assert json.loads(worker.get("/health")[1])
        worker.stop()


def page_of(worker: Worker) -> Any:
    """What the page of a worker shows."""
    with urllib.request.urlopen(f"http://127.0.0.1:{worker.port}/page/events", timeout=60) as answer:
        return json.loads(next(line for line in answer if line.startswith(b"data: "))[6:])


def test_connectors_are_controlled_on_any_worker(cluster: Cluster) -> None:
    with cluster.worker() as one, cluster.faust_worker() as other:
        one.wait_for_log("this worker has 1 of 2")
        other.wait_for_log("this worker has 1 of 2")
        config = cluster.prepared()
        for worker in (one, other):
            worker.wait_for_log("the fleet has 0 connectors")
        body = json.dumps({"name": config.name, "config": config.properties})
        assert one.send("POST", "/connectors", body)[0] == 201
        eventually(lambda: config.name in other.get("/connectors")[1], "the other worker knows it")
        assert other.send("POST", "/connectors", body)[0] == 409
        state_is(cluster, config, "RUNNING")
        path = f"/connectors/{config.name}"
        for worker in (one, other):

            def shown_by(worker: Worker = worker) -> tuple[str, str]:
                state = json.loads(worker.get(f"{path}/status")[1])["connector"]
                return state["state"], state["worker_id"]

            runs = ("RUNNING", cluster.statuses()[config.name].worker_id)
            eventually(lambda shown_by=shown_by, runs=runs: shown_by() == runs, "the state")
            seen = page_of(worker)
            assert {found["worker"]: found.get("problem") for found in seen["workers"]} == {
                f"127.0.0.1:{running.port}": None for running in (one, other)
            }
            assert seen["connectors"][config.name]["worker"] == runs[1]
            assert seen["connectors"][config.name]["status"] == "UP"
            assert worker.send("POST", f"{path}/signals", '{"type": "log", "data": {"message": "x"}}')[0] == 202
            assert list(json.loads(worker.get(f"/page{path}/tables")[1])["tables"]) == [
                f"{cluster.database.name}.{config.name}"
            ]
        shown = json.loads(one.get(f"{path}/config")[1])
        assert shown["database.password"] == "********"
        assert other.send("PUT", f"{path}/config", json.dumps({**shown, "max.batch.size": "100"}))[0] == 200
        assert other.send("PUT", f"{path}/config", json.dumps({**shown, "max.batch.size": "no"}))[0] == 400
        all_have(cluster, [config], [1, 2])
        for word, code, state in (("pause", 202, "PAUSED"), ("stop", 204, "STOPPED"), ("resume", 202, "RUNNING")):
            assert one.send("PUT", f"{path}/{word}")[0] == code
            state_is(cluster, config, state)
        all_have(cluster, [config], [1, 2, 3])
        assert other.send("DELETE", path)[0] == 204
        state_is(cluster, config, None)
        one.stop()
        other.stop()


USERS = "ed.token=e\ned.role=edit\nops.password=o\nops.role=operate\nana.token=r\nana.role=read\n"


def test_a_connector_with_a_label_runs_where_the_label_is(cluster: Cluster, tmp_path: Path) -> None:
    """And users do what their roles allow, on any worker."""
    users, password = tmp_path / "users.properties", tmp_path / "password"
    users.write_text(USERS)
    password.write_text("o\n")
    with cluster.worker("", "--web-users-file", str(users)) as plain:  # the leader, without the topic of the label
        plain.wait_for_log("the fleet has 0 connectors")
        config = cluster.prepared()
        config.properties["rowtide.runs.on"] = "ssd"
        path, body = f"/connectors/{config.name}", json.dumps({"name": config.name, "config": config.properties})
        assert [plain.send("POST", "/connectors", body, token)[0] for token in ("", "r", "e")] == [401, 403, 201]

        def none_fits() -> bool:
            shown = json.loads(plain.get(f"{path}/status", "r")[1])["connector"]
            return (shown["state"], shown.get("trace")) == (
                "UNASSIGNED",
                "no worker of the fleet has the label ssd (rowtide.worker.labels)",
            )

        eventually(none_fits, "no worker fits")
        with cluster.worker("ssd", "--web-users-file", str(users)) as fast:
            fast.streaming()
            all_have(cluster, [config], [1, 2])
            state_is(cluster, config, "RUNNING")
            assert "reading the binlog from" not in plain.log
            signal_options = ["--channel", "http", "--web-token-file", str(password), "--data", '{"message": "here"}']
            for user, code in (("ops@", 0), ("", 1)):
                url = f"http://{user}127.0.0.1:{fast.port}"
                sent = CliRunner().invoke(main, ["signal", "log", str(config.path), "--web", url, *signal_options])
                assert sent.exit_code == code, sent.output
            fast.wait_for_log("ops at 127.0.0.1: POST " + path + "/signals: 202")
            assert "here" in fast.stop()
        eventually(none_fits, "no worker fits any more")
        assert "ana at 127.0.0.1: POST /connectors: 403" in plain.stop()


@pytest.mark.nightly
def test_one_of_three_connectors_moves_to_an_idle_worker(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    cluster = Cluster(tmp_path, kafka, mysql_db, balance_ms=3000)
    with cluster.worker() as one, cluster.worker() as other:
        one.wait_for_log("this worker has 1 of 2")
        other.wait_for_log("this worker has 1 of 2")
        configs = [cluster.add(0) for _ in range(3)]

        def by_worker() -> list[int]:
            found = Counter(status.worker_id for status in cluster.statuses().values() if status.state == "RUNNING")
            return sorted(found.values())

        eventually(lambda: by_worker() == [1, 2], "one has moved")
        all_have(cluster, configs, [1, 2])
        (line,) = re.findall(r"connector (\w+) moves to partition 1", one.log + other.log)
        moved = next(config for config in configs if config.name == line)
        value = b'{"id":"s","type":"log","data":{"message":"found it"}}'
        cluster.send(f"{cluster.group}-fleet", value, moved.name.encode(), partition_of(moved.name, PARTITIONS))
        eventually(lambda: "found it" in one.log + other.log, "the signal follows it")
        all_have(cluster, configs, [1, 2, 3])
        assert by_worker() == [1, 2]
        logs = one.stop() + other.stop()
    assert logs.count("moves to partition") == 1
    assert logs.count("found it") == 1


def test_a_group_of_another_program_is_refused(cluster: Cluster) -> None:
    consumer = Consumer({"bootstrap.servers": cluster.kafka.bootstrap, "group.id": cluster.group})
    try:
        joined = threading.Event()
        consumer.subscribe(["__consumer_offsets"], on_assign=lambda *_: joined.set())
        eventually(lambda: consumer.poll(0.1) or joined.is_set(), "the group has a member")
        with cluster.worker() as worker:
            assert worker.wait() == 1
            assert f"group.id={cluster.group}: consumers of another program are in this group" in worker.log
            assert "Traceback" not in worker.log
    finally:
        consumer.close()
