"""The alerts and the queries of the Grafana board, in a real Prometheus that scrapes the workers of a fleet."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from rowtide_stack.ports import free_port

from tests.connector.fleet.test_fleet_live import Cluster
from tests.docker.test_deployment import ALERTS, dashboard
from tests.support.processes.worker_process import SOON, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

    from tests.support.processes.worker_process import Worker

pytestmark = [pytest.mark.servers, pytest.mark.nightly]

DEBEZIUM = [
    f'debezium_metrics_{name}{{plugin="mysql",name=~".+",context=~"{context}"}}'
    for context, names in {
        "(binlog|streaming)": "Connected MilliSecondsSinceLastEvent TotalNumberOfEventsSeen",
        "streaming": "MilliSecondsBehindSource BinlogPosition IsGtidModeEnabled NumberOfCommittedTransactions "
        "NumberOfDisconnects QueueTotalCapacity QueueRemainingCapacity",
        "snapshot": "TotalTableCount RemainingTableCount SnapshotRunning SnapshotAborted SnapshotCompleted "
        "TotalNumberOfEventsSeen RowsScanned",
    }.items()
    for name in names.split()
]
"""Queries of the boards in Debezium's examples: ``monitoring/debezium-grafana``."""


class Prometheus:
    """A running Prometheus."""

    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}/api/v1"

    def get(self, path: str, **query: str) -> Any:
        """The data of an answer."""
        url = f"{self._url}/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=SOON) as answer:
            found = json.load(answer)
        assert found["status"] == "success"
        return found["data"]

    def query(self, expression: str) -> list[dict[str, Any]]:
        """The series of an expression now."""
        return self.get("query", query=expression)["result"]  # type: ignore[no-any-return]

    def answers(self) -> bool:
        """Whether it has started."""
        try:
            return bool(self.get("status/config"))
        except OSError:
            return False


@contextmanager
def scraping(folder: Path, workers: list[Worker]) -> Iterator[Prometheus]:
    """Run Prometheus, which scrapes workers each second."""
    targets = [f"127.0.0.1:{worker.port}" for worker in workers]
    jobs = {"rowtide": "/metrics", "debezium": "/metrics/debezium"}
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ALERTS)],
        "scrape_configs": [
            {"job_name": job, "metrics_path": path, "static_configs": [{"targets": targets}]}
            for job, path in jobs.items()
        ],
    }
    file, port = folder / "prometheus.yaml", free_port()
    file.write_text(yaml.safe_dump(config))
    options = [
        f"--config.file={file}",
        f"--storage.tsdb.path={folder / 'tsdb'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (folder / "prometheus.out").open("wb") as out:
        process = subprocess.Popen(["prometheus", *options], stdout=out, stderr=out)
    try:
        found = Prometheus(port)
        eventually(found.answers, "Prometheus has started")
        yield found
    finally:
        process.kill()
        process.wait()


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="prometheus is not installed (Debian: prometheus)")
def test_alerts_and_board_have_data(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    cluster = Cluster(tmp_path, kafka, mysql_db)
    with cluster.worker() as one, cluster.worker() as other:
        one.wait_for_log("this worker has 1 of 2")
        configs = [cluster.add(partition) for partition in (0, 1)]
        eventually(lambda: all(cluster.keys(config) == [1] for config in configs), "the snapshots")
        names = {config.name for config in configs}
        with scraping(tmp_path, [one, other]) as prometheus:

            def known(expression: str) -> set[str]:
                return {series["metric"].get("connector", "") for series in prometheus.query(expression)}

            eventually(lambda: known("rowtide_binlog_runway_seconds > 0") == names, "the runway of both connectors")
            eventually(lambda: known("rate(rowtide_events_read_total[1m])") == names, "a rate of both connectors")
            for panel in dashboard()["panels"]:
                for target in panel["targets"]:
                    expression = target["expr"].replace("$connector", ".*").replace("$__rate_interval", "1m")
                    assert prometheus.query(expression), (panel["title"], expression)
            for expression in DEBEZIUM:
                assert len(prometheus.query(expression)) == len(configs), expression
            rules = [rule for group in prometheus.get("rules")["groups"] for rule in group["rules"]]
            assert len(rules) == ALERTS.read_text().count("- alert:")
            assert {rule["health"] for rule in rules} <= {"ok", "unknown"}
            assert not [rule["name"] for rule in rules if rule["state"] == "firing"]
        one.stop()
        other.stop()
