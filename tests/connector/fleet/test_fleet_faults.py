"""Faults of a fleet, with the outcomes that docs/fleet.md states: nothing is lost or doubled, and others continue."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from rowtide_stack.ports import free_port

from rowtide.connector.fleet.configurations import connector_record
from tests.chaos.clock import Clock
from tests.connector.fleet.test_fleet_live import Cluster, all_have, state_is
from tests.support.processes.worker_process import eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.nightly]

HOUR_S = 3600


def test_kafka_is_away_for_longer_than_a_session(tmp_path: Path, mysql_db: Database) -> None:
    from rowtide_stack import Kafka

    with Kafka() as kafka:
        cluster = Cluster(tmp_path, kafka, mysql_db)
        with cluster.worker() as one, cluster.worker() as other:
            one.wait_for_log("this worker has 1 of 2")
            configs = [cluster.add(partition) for partition in (0, 1)]
            all_have(cluster, configs, [1, 2])
            kafka.kill()
            for config in configs:
                cluster.insert(config, 3)
            time.sleep(20)  # three sessions
            assert one.running
            assert other.running
            kafka.start()
            all_have(cluster, configs, [1, 2, 3, 4])
            for config in configs:
                state_is(cluster, config, "RUNNING")
            one.stop()
            other.stop()


def test_a_connector_that_fails_at_every_start_disturbs_no_other(
    tmp_path: Path, kafka: Kafka, mysql_db: Database
) -> None:
    cluster = Cluster(tmp_path, kafka, mysql_db)
    with cluster.worker() as worker:
        worker.wait_for_log("the fleet has 0 connectors")
        good, away, refused = (cluster.prepared() for _ in range(3))
        away.properties["database.port"] = str(free_port())
        refused.properties["database.password"] = "wrong"
        cluster.write(*(connector_record(one.name, one.properties) for one in (good, away, refused)))
        all_have(cluster, [good], [1, 2])
        state_is(cluster, refused, "FAILED")
        assert "Access denied" in cluster.statuses()[refused.name].trace
        begin = worker.log.count("reading the binlog from")
        eventually(lambda: worker.log.count("the connector starts again from its stored position") >= 4, "tries")
        waits = [
            float(line.rsplit(" in ", 1)[1].removesuffix(" s"))
            for line in worker.log.splitlines()
            if line.endswith(" s") and "the connector starts again from its stored position" in line
        ]
        assert waits == sorted(waits)
        assert waits[-1] > waits[0], "each try waits longer"
        assert worker.log.count("reading the binlog from") == begin == 1, "the good one has not started again"
        away.properties["database.port"] = good.properties["database.port"]
        cluster.write(connector_record(away.name, away.properties))
        all_have(cluster, [good], [1, 2, 3])
        eventually(lambda: cluster.keys(away) == [1], "it runs once its configuration is right")
        worker.stop()


def test_clocks_of_workers_that_are_an_hour_apart(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    cluster = Cluster(tmp_path, kafka, mysql_db, balance_ms=1000)
    clock = Clock(tmp_path)
    clock.step(HOUR_S)
    early, late = cluster.worker(), cluster.worker(program=clock.command())
    with early, late:
        early.wait_for_log("this worker has 1 of 2")
        configs = [cluster.add(partition) for partition in (0, 1)]
        all_have(cluster, configs, [1, 2])
        for worker in (early, late):
            metrics = worker.get("/metrics")[1]
            assert "rowtide_lag_seconds" in metrics
            assert not [line for line in metrics.splitlines() if line.endswith(" -1") or " -3" in line]
        late.kill()
        all_have(cluster, configs, [1, 2, 3])
        with cluster.worker(program=clock.command()) as again:
            again.wait_for_log("this worker has 1 of 2")
            all_have(cluster, configs, [1, 2, 3, 4])
            early.kill()
            all_have(cluster, configs, [1, 2, 3, 4, 5])
            again.stop()


def test_two_fleets_with_one_group(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    (tmp_path / "other").mkdir()
    cluster, other = Cluster(tmp_path, kafka, mysql_db), Cluster(tmp_path / "other", kafka, mysql_db)
    other._file.write_text(other._file.read_text().replace(f"group.id={other.group}", f"group.id={cluster.group}"))
    with cluster.worker() as worker:
        config = cluster.add(0)
        eventually(lambda: cluster.keys(config) == [1], "the snapshot")
        with other.worker() as second:
            assert second.wait() == 1
            assert f"workers with config.storage.topic={cluster.group}-config are in this group" in second.log
            assert "Traceback" not in second.log
        all_have(cluster, [config], [1, 2])
        worker.stop()


def test_a_full_disk_stops_no_connector(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    cluster = Cluster(tmp_path, kafka, mysql_db)
    with cluster.worker("", "--log-file", "/dev/full") as worker:
        config = cluster.add(0)
        all_have(cluster, [config], [1, 2])
        assert json.loads(worker.get("/health")[1])["status"] == "UP"
        worker.signal()
        assert worker.wait() == 0


def test_records_of_a_newer_version_are_skipped(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    """What an old worker does while others of its fleet have a newer version."""
    cluster = Cluster(tmp_path, kafka, mysql_db)
    with cluster.worker() as worker:
        config = cluster.add(0)
        eventually(lambda: cluster.keys(config) == [1], "the snapshot")
        state_is(cluster, config, "RUNNING")
        cluster.write((b"rowtide-of-tomorrow-" + config.name.encode(), b'{"any": "thing"}'))
        cluster.write(connector_record(config.name, {**config.properties, "rowtide.of.tomorrow": "1"}))
        state_is(cluster, config, "FAILED")
        assert "rowtide.of.tomorrow" in cluster.statuses()[config.name].trace
        cluster.write(connector_record(config.name, config.properties))
        all_have(cluster, [config], [1, 2])
        worker.stop()
