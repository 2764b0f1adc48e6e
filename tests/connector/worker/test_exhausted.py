"""A worker whose process may open no more files."""

from __future__ import annotations

import json
import resource
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

HALF = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"


def test_half_requests_at_the_web_server_do_not_end_the_capture(
    mysql_db: Database, configured: Callable[..., WorkerConfig]
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
    config = configured()
    topics, topic = Topics(config.properties["bootstrap.servers"]), config.topic(f"{mysql_db.name}.t")
    with Worker(config).streaming() as worker:
        eventually(lambda: topics.read(topic), "the first row")
        open_files = len(list(Path(f"/proc/{worker.pid}/fd").iterdir()))
        resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (open_files + 20, 4096))
        clients = [socket.create_connection(("127.0.0.1", worker.port)) for _ in range(100)]
        for client in clients:
            client.sendall(HALF)
        worker.wait_for_log("out of system resource")
        mysql_db.execute("INSERT INTO t VALUES (2)")
        eventually(lambda: len(topics.read(topic)) == 2, "a change is delivered")
        resource.prlimit(worker.pid, resource.RLIMIT_NOFILE, (4096, 4096))
        for client in clients:
            client.close()
        assert worker.health()["status"] == "UP"
        worker.signal(signal.SIGTERM)
        assert worker.wait() == 0, worker.log
    assert [json.loads(record.key or b"")["id"] for record in topics.read(topic)] == [1, 2]
