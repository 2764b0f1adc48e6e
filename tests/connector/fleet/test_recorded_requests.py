"""The requests that Kafka Connect 4.3.1 answered with Debezium 3.6.1, sent to a worker of a fleet: the same answers."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.request
from email.message import Message
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.connector.fleet.test_fleet_live import Cluster
from tests.support.processes.worker_process import Worker, eventually
from tests.support.source_tree import ROOT

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = pytest.mark.servers

STEPS: list[dict[str, Any]] = [
    json.loads(line)
    for line in gzip.decompress((ROOT / "tests" / "golden_rest" / "requests.jsonl.gz").read_bytes()).splitlines()
]
OTHER = {"worker_id", "version", "commit", "kafka_cluster_id", "last_modified", "trace", "offset", "offsets", "topics"}
"""What differs from worker to worker."""
FREE = (
    "/health",
    "/admin/loggers/golden.rest",
    "/config",
    "/connector-plugins",
    "/admin/loggers",
    "/admin/loggers/root",
)
"""Paths whose answers may differ: definitions, plugins and loggers are rowtide's, secrets are masked."""
MASKED = '"********"'
BETTER = {
    "an offset that is none": 400,
    "a partition that is none": 400,
    "no partition": 400,
    "a predicate that is not defined": 400,
}
"""Statuses that differ, by the note of the step: Kafka Connect accepts positions and predicates that do not exist."""


class Answer:
    """An answer: its status and its body, parsed if it is JSON."""

    def __init__(self, status: int, text: str, headers: Message) -> None:
        self.status, self.headers = status, headers
        try:
            self.body: Any = json.loads(text) if text else None
        except ValueError:
            self.body = {"text": text}


def filled(text: str, given: dict[str, str]) -> str:
    """A text with the values of its placeholders."""
    for name, value in given.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    return text


def ask(worker: Worker, step: dict[str, Any], given: dict[str, str]) -> Answer:
    """Send a request."""
    body = None if step["body"] is None else filled(step["body"], given).encode()
    headers = {"Content-Type": "application/json", **(step["headers"] or {})}
    url = f"http://127.0.0.1:{worker.port}{filled(step['path'], given)}"
    request = urllib.request.Request(url, body, headers, method=step["method"])
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return Answer(answer.status, answer.read().decode(), answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, error.read().decode(), error.headers)


def plain(body: Any) -> Any:
    """A body without what differs from worker to worker."""
    if isinstance(body, dict):
        return {name: plain(value) for name, value in sorted(body.items()) if name not in OTHER}
    return sorted(map(plain, body), key=str) if isinstance(body, list) else body


def difference(step: dict[str, Any], answer: Answer, given: dict[str, str]) -> str | None:
    """How an answer differs from the recorded one, beyond what may differ."""
    wanted = json.loads(filled(json.dumps(step["answer"]), given).replace('"dbz"', MASKED))
    path = step["path"].partition("?")[0]
    status = next((better for kind, better in BETTER.items() if kind in (step["note"], path)), step["status"])
    if answer.status != (400 if step["status"] == 500 else status):
        return f"status {answer.status}, not {status}: {answer.body}"
    for name in ("Location", "Content-Type"):
        recorded = filled(step["answer_headers"].get(name, ""), given)
        # Kafka Connect's framework sends no type with its errors, and HTML with one of them; rowtide's are all JSON.
        if answer.headers.get(name, "") != recorded and not (step["status"] >= 400 or step["method"] == "OPTIONS"):
            return f"{name}: {answer.headers.get(name)}, not {recorded}"
    if answer.status >= 400:
        return None
    if path.endswith("/validate"):
        return None if wrong_ones(answer.body) == wrong_ones(wanted) else f"errors of {wrong_ones(answer.body)}"
    if any(path.endswith(end) for end in FREE) or step["method"] in ("OPTIONS", "HEAD"):
        return None
    body = json.loads(json.dumps(answer.body).replace('"dbz"', MASKED))
    return None if plain(body) == plain(wanted) else f"{plain(body)}, not {plain(wanted)}"


def wrong_ones(body: Any) -> set[str]:
    """The properties with errors in the answer to a request for validation."""
    values = [one["value"] for one in body["configs"] if one["value"] is not None]
    return {value["name"] for value in values if value["errors"]}


def test_a_fleet_answers_as_kafka_connect(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    cluster = Cluster(tmp_path, kafka, mysql_db)
    server = mysql_db.server
    server.query("CREATE USER IF NOT EXISTS dbz@'%' IDENTIFIED BY 'dbz'")
    server.query("GRANT ALL ON *.* TO dbz@'%'")
    given = {"mysql_host": server.host, "mysql_port": str(server.port), "kafka": kafka.bootstrap}
    differences = []
    with cluster.worker() as worker:
        worker.wait_for_log("the fleet has 0 connectors")
        given |= {"url": f"http://127.0.0.1:{worker.port}", "worker": f"127.0.0.1:{worker.port}"}
        for step in STEPS:
            if "wait" in step:
                wait(worker, step)
            else:
                found = difference(step, ask(worker, step, given), given)
                if found is not None:
                    differences.append(f"{step['method']} {step['path']} ({step['note']}): {found}")
    assert not differences, "\n".join(differences)


def wait(worker: Worker, step: dict[str, Any]) -> None:
    """Wait until a page has some texts."""

    def has_all() -> bool:
        page = worker.get(step["wait"])[1].replace(" ", "")
        return all(text.replace(" ", "") in page for text in step["until"])

    eventually(has_all, str(step))
