"""Unchanged clients of Kafka Connect's REST interface against a worker: from PyPI, from Maven, and what others send."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rowtide_stack.programs.cache import cached
from rowtide_stack.programs.catalogue import java_command
from rowtide_stack.programs.host import run
from rowtide_stack.programs.maven import copy_jars

from tests.connector.fleet.test_fleet_live import Cluster
from tests.support.processes.worker_process import SOON, Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.nightly]

USER, PASSWORD = "anna", "g3heim"
CLASS = "io.debezium.connector.mysql.MySqlConnector"
PACKAGES = ("kafkaconnect==1.3.1", "kafka-connect-py==1.0.0")


def clients() -> Path:
    """The packages of the clients, without what they need: these environments have it."""

    def install(folder: Path) -> None:
        run([sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, *PACKAGES])

    return cached("rest-clients-1", install)


def call(program: str, *arguments: str) -> str:
    """Run a command of a client, which must succeed; returns what it prints."""
    environment = {**os.environ, "PYTHONPATH": str(clients())}
    command = [sys.executable, "-c", program, *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env=environment, timeout=SOON)
    assert done.returncode == 0, (arguments, done.stdout, done.stderr)
    return done.stdout


def wait_for(worker: Worker, name: str, state: str | None) -> None:
    """Wait until the connector and its task have a state, or until there is no such connector."""

    def found() -> bool:
        status, text = ask(worker, "GET", f"/connectors/{name}/status")
        if state is None or status != 200:
            return (status, state) == (404, None)
        body = json.loads(text)
        return {body["connector"]["state"], *(task["state"] for task in body["tasks"])} == {state}

    eventually(found, f"{name} is {state}")


def ask(worker: Worker, method: str, path: str, body: Any = None) -> tuple[int, str]:
    """Send a request as a user with a password, as these clients do."""
    login = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    headers = {"Authorization": f"Basic {login}", "Accept": "application/json", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{worker.port}{path}", data, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=SOON) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_clients_of_kafka_connect(tmp_path: Path, kafka: Kafka, mysql_db: Database) -> None:
    """The commands of both programs, then the calls of kcctl, kafka-ui and Strimzi with the statuses that they need."""
    cluster = Cluster(tmp_path, kafka, mysql_db)
    users = tmp_path / "users.properties"
    users.write_text(f"{USER}.password={PASSWORD}\n{USER}.role=edit\n")
    with cluster.worker("", "--web-users-file", str(users)) as worker:
        worker.wait_for_log("the fleet has 0 connectors")
        kafka_connect_py(worker, cluster)
        kafkaconnect(worker, cluster)
        sourcelab(worker, cluster.prepared())
        others(worker, cluster.prepared())
        worker.stop()


def kafka_connect_py(worker: Worker, cluster: Cluster) -> None:
    config = cluster.prepared()
    name, url = config.name, f"http://127.0.0.1:{worker.port}"

    def kc(*arguments: str) -> str:
        program = "from kafka_connect.cli import cli; cli()"
        return call(program, "--url", url, "--auth", f"{USER}:{PASSWORD}", *arguments)

    assert "kafka_cluster_id" in kc("info")
    kc("create", "--config-data", json.dumps({"name": name, "config": config.properties}))
    wait_for(worker, name, "RUNNING")
    eventually(lambda: cluster.keys(config) == [1], "the snapshot")
    assert name in kc("list")
    assert "RUNNING" in kc("list", "--expand", "status")
    assert name in kc("get", name)
    assert config.properties["topic.prefix"] in kc("config", name)
    assert "RUNNING" in kc("status", name)
    assert name in kc("list-tasks", name)
    assert "RUNNING" in kc("task-status", name, "0")
    eventually(lambda: config.topic(f"{cluster.database.name}.{name}") in kc("list-topics", name), "its topics")
    kc("reset-topics", name)
    assert CLASS in kc("list-plugins")
    validate = (  # its command validate-config encodes the configuration twice, which Kafka Connect refuses, too
        "import sys, json, kafka_connect; url, login, plugin, config = sys.argv[1:]; "
        "client = kafka_connect.KafkaConnect(url, login); "
        "print(client.validate_connector_config(plugin, json.loads(config))['error_count'])"
    )
    assert call(validate, url, f"{USER}:{PASSWORD}", CLASS, json.dumps(config.properties)) == "0\n"
    kc("pause", name)
    wait_for(worker, name, "PAUSED")
    kc("resume", name)
    wait_for(worker, name, "RUNNING")
    kc("restart", name)
    kc("restart", "--include-tasks", name)
    kc("restart-task", name, "0")
    wait_for(worker, name, "RUNNING")
    kc("update", name, "--config-data", json.dumps({**config.properties, "max.queue.size": "4096"}))
    assert "4096" in kc("config", name)
    kc("delete", name)
    wait_for(worker, name, None)


def kafkaconnect(worker: Worker, cluster: Cluster) -> None:
    config = cluster.prepared()
    name, url = config.name, f"http://{USER}:{PASSWORD}@127.0.0.1:{worker.port}"  # it has no option for a log-in

    def kc(*arguments: str) -> str:
        return call("from kafkaconnect.cli import main; main()", "--connect", url, *arguments)

    file = config.folder / "connector.json"
    file.write_text(json.dumps(config.properties))
    kc("upload", "--name", name, str(file))
    wait_for(worker, name, "RUNNING")
    assert name in kc("list")
    assert "RUNNING" in kc("status", name)
    assert config.properties["topic.prefix"] in kc("config", name)
    assert name in kc("info", name)
    assert name in kc("tasks", name)
    assert CLASS in kc("plugins")
    kc("pause", name)
    wait_for(worker, name, "PAUSED")
    kc("resume", name)
    wait_for(worker, name, "RUNNING")
    kc("restart", name)
    wait_for(worker, name, "RUNNING")
    kc("delete", name)
    wait_for(worker, name, None)


def sourcelab(worker: Worker, config: WorkerConfig) -> None:
    """The client in Java that AKHQ uses."""
    jars = cached(
        "sourcelab-client-4.0.5", lambda folder: copy_jars(folder, "org.sourcelab:kafka-connect-client:4.0.5")
    )
    program = java_command(jars, "256m", Path(__file__).with_name("RestClient.java"))
    url = f"http://127.0.0.1:{worker.port}"
    lines = "".join(f"{name}={text}\n" for name, text in config.properties.items())
    command = [*program, url, USER, PASSWORD, config.name]
    done = subprocess.run(command, check=False, input=lines, capture_output=True, text=True, timeout=SOON)
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines())
    assert (said["created"], said["config"], said["tasks"]) == (config.name, config.properties["topic.prefix"], "1")
    assert config.name in said["connectors"]
    assert config.name in said["expanded"]
    assert {said[word] for word in ("paused", "resumed", "restarted", "deleted")} == {"true"}
    wait_for(worker, config.name, None)


def others(worker: Worker, config: WorkerConfig) -> None:
    """Send what is in the sources of kcctl 1.0 (KafkaConnectApi), kafka-ui and Strimzi (KafkaConnectApiImpl)."""
    name, properties = config.name, config.properties
    connector = f"/connectors/{name}"

    def sent(status: int, method: str, path: str, body: Any = None) -> Any:
        found, text = ask(worker, method, path, body)
        assert found == status, (method, path, found, text)
        return json.loads(text) if text else None

    # Strimzi
    assert sent(200, "GET", "/connectors") == []
    sent(404, "GET", connector)
    assert sent(201, "PUT", f"{connector}/config", properties)["name"] == name
    wait_for(worker, name, "RUNNING")
    assert sent(200, "PUT", f"{connector}/config", properties)["tasks"] == [{"connector": name, "task": 0}]
    assert sent(200, "GET", f"{connector}/config")["connector.class"] == CLASS
    wait_for(worker, name, "RUNNING")
    sent(202, "PUT", f"{connector}/pause")
    wait_for(worker, name, "PAUSED")
    sent(202, "PUT", f"{connector}/resume")
    wait_for(worker, name, "RUNNING")
    sent(204, "POST", f"{connector}/restart")
    sent(204, "POST", f"{connector}/tasks/0/restart")
    sent(202, "POST", f"{connector}/restart?includeTasks=true&onlyFailed=true")
    assert {"class", "type", "version"} == set(sent(200, "GET", "/connector-plugins")[0])
    assert all("level" in one for one in sent(200, "GET", "/admin/loggers/").values())
    assert sent(200, "PUT", "/admin/loggers/rowtide.some", {"level": "DEBUG"}) == ["rowtide.some"]
    assert sent(200, "GET", f"{connector}/topics")[name]["topics"] is not None
    # kafka-ui
    found = sent(200, "GET", "/connectors?expand=status&expand=info")[name]
    assert (set(found), found["info"]["type"]) == ({"status", "info"}, "source")
    wait_for(worker, name, "RUNNING")
    assert sent(200, "GET", f"{connector}/tasks")[0]["id"] == {"connector": name, "task": 0}
    assert sent(200, "GET", f"{connector}/tasks/0/status")["state"] == "RUNNING"
    sent(202, "POST", f"{connector}/restart?includeTasks=true&onlyFailed=false")
    assert sent(200, "PUT", f"/connector-plugins/{CLASS}/config/validate", properties)["error_count"] == 0
    # kcctl
    assert {"version", "commit", "kafka_cluster_id"} == set(sent(200, "GET", "/"))
    assert sent(200, "GET", "/connectors/") == [name]
    sent(409, "POST", "/connectors/", {"name": name, "config": properties})
    assert len(sent(200, "GET", f"/connector-plugins/{CLASS}/config")) > 100
    wait_for(worker, name, "RUNNING")
    eventually(lambda: sent(200, "GET", f"{connector}/offsets")["offsets"], "a position")
    sent(204, "PUT", f"{connector}/stop")
    eventually(lambda: sent(200, "GET", f"{connector}/status")["connector"]["state"] == "STOPPED", "it has stopped")
    offsets = sent(200, "GET", f"{connector}/offsets")
    assert "altered successfully" in sent(200, "PATCH", f"{connector}/offsets", offsets)["message"]
    assert "reset successfully" in sent(200, "DELETE", f"{connector}/offsets")["message"]
    sent(204, "PUT", "/admin/loggers/rowtide.some?scope=cluster", {"level": "INFO"})
    assert sent(200, "GET", "/admin/loggers/rowtide.some")["level"] in {"INFO", "DEBUG"}
    sent(204, "DELETE", connector)
    wait_for(worker, name, None)
