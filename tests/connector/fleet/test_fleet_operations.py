"""What operators do with a fleet: HTTPS between its workers, files that are read again, groups that are taken."""

from __future__ import annotations

import contextlib
import json
import signal
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rowtide_stack.servers.tls import TlsFiles

from tests.connector.fleet.test_fleet_live import Cluster, all_have, state_is
from tests.support.processes.worker_process import Worker, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

UNCHECKED = (
    "from rowtide.connector.fleet import fleet, topics; topics.require_group = lambda _settings: None; "
    "from rowtide.cli import main; main()"
)
"""A worker that does not look at the group before it joins, as if both fleets had joined at the same moment."""


def ask(worker: Worker, trusted: ssl.SSLContext, method: str, path: str, body: str = "") -> tuple[int, Any]:
    """The status and the body of the answer of a worker with HTTPS; of a page, the first event."""
    url, headers = f"https://127.0.0.1:{worker.port}{path}", {"Content-Type": "application/json"}
    request = urllib.request.Request(url, body.encode() or None, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60, context=trusted) as answer:
            if path == "/page/events":
                return 200, json.loads(next(line for line in answer if line.startswith(b"data: "))[6:])
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def test_workers_ask_each_other_over_https(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    cluster, made = Cluster(tmp_path, kafka, mysql_db, partitions=1), TlsFiles.make(tmp_path / "tls")
    options = [f"--web-tls-certificate={made.folder / 'server.pem'}", f"--web-tls-key={made.folder / 'server.key'}"]
    trusted = ssl.create_default_context(cafile=made.ca)

    def trusting() -> Worker:
        with pytest.MonkeyPatch.context() as environment:
            environment.setenv("SSL_CERT_FILE", str(made.ca))
            return cluster.worker("", *options)

    with contextlib.ExitStack() as workers:
        workers.enter_context(trusting())
        config = cluster.add()
        state_is(cluster, config, "RUNNING")
        other, doubting = (workers.enter_context(one) for one in (trusting(), cluster.worker("", *options)))
        metrics, log = f"/debezium/mysql/connectors/{config.name}/metrics", '{"type": "log", "data": {"message": "x"}}'
        for worker in (other, doubting):
            worker.wait_for_log("this worker has 0 of 1")
        eventually(lambda: ask(other, trusted, "GET", metrics)[0] == 200, "the metrics")
        assert ask(other, trusted, "GET", metrics)[1]["name"] == config.name
        assert ask(other, trusted, "POST", f"/connectors/{config.name}/signals", log)[0] == 202

        def refused() -> bool:
            return ask(doubting, trusted, "GET", metrics)[0] == 502

        eventually(refused, "the refusal")
        message = ask(doubting, trusted, "GET", metrics)[1]["message"]
        assert "certificate verify failed" in message
        assert "needs a certificate for 127.0.0.1 from an authority that this worker trusts: SSL_CERT_FILE" in message
        shown = {
            found["worker"]: found["problem"] for found in ask(doubting, trusted, "GET", "/page/events")[1]["workers"]
        }
        assert shown.pop(f"127.0.0.1:{doubting.port}") is None
        assert all("SSL_CERT_FILE" in problem for problem in shown.values())


def test_a_worker_reads_its_file_again(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    cluster = Cluster(tmp_path, kafka, mysql_db)
    written = cluster._file.read_text()
    with cluster.worker() as worker:
        worker.wait_for_log("the fleet has 0 connectors")
        follows, own = cluster.prepared(), cluster.prepared()
        own.properties["poll.interval.ms"] = "400"
        for config in (follows, own):
            assert worker.send("PUT", f"/connectors/{config.name}/config", json.dumps(config.properties))[0] == 201
        all_have(cluster, [follows, own], [1, 2])

        cluster._file.write_text(f"{written}poll.interval.ms=none\n")
        worker.signal(signal.SIGHUP)
        worker.wait_for_log(
            "the files of this worker are not used, and nothing changes: the configuration has a problem:"
        )
        assert "  - poll.interval.ms: must be a whole number" in worker.log

        cluster._file.write_text(f"{written}poll.interval.ms=300\nheartbeat.interval.ms=1000\n")
        worker.signal(signal.SIGHUP)
        worker.wait_for_log("the files were read again: 1 connectors changed, 1 as before")
        assert "which reads these changed properties at its start: heartbeat.interval.ms\n" in worker.log
        all_have(cluster, [follows, own], [1, 2, 3])
        assert worker.log.count(f"starts connector {follows.name}") == 2
        assert worker.log.count(f"starts connector {own.name}") == 1
        worker.stop()


def test_a_fleet_that_joins_the_group_of_another_ends(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    (tmp_path / "other").mkdir()
    cluster, other = Cluster(tmp_path, kafka, mysql_db), Cluster(tmp_path / "other", kafka, mysql_db)
    other._file.write_text(other._file.read_text().replace(f"group.id={other.group}", f"group.id={cluster.group}"))
    with cluster.worker() as worker:
        config = cluster.add(0)
        state_is(cluster, config, "RUNNING")
        with other.worker(program=(sys.executable, "-c", UNCHECKED)) as second:
            assert second.wait() == 1
            assert f"workers with config.storage.topic={cluster.group}-config are in this group" in second.log
            assert "Traceback" not in second.log
        all_have(cluster, [config], [1, 2])
        worker.stop()
