"""``rowtide signal``: the channel, the wait for a result, and the exit code; ``rowtide snapshot status``."""

import json
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner, Result

from rowtide.cli import main
from rowtide.cli.connectors.signal import TYPES
from rowtide.cli.connectors.worker_client import WorkerClient

CONFIG = (
    "name=shop\ntopic.prefix=shop\ndatabase.hostname=127.0.0.1\ndatabase.user=u\ndatabase.password=p\n"
    "database.server.id=1\nbootstrap.servers=127.0.0.1:1\nschema.history.internal.kafka.topic=h\n"
    "signal.enabled.channels=file\nsignal.file={}/signals.txt\n"
)
SIGNAL = {"id": "s-1", "aggregate_type": "Signal", "additional_data": {}}
SNAPSHOT = {"id": "s-1", "aggregate_type": "Incremental Snapshot", "additional_data": {"connector_name": "shop"}}


class Worker:
    """The answers of a worker, one after the other; the last one for ever."""

    def __init__(self, *answers: list[Mapping[str, Any]]) -> None:
        self.answers = list(answers)
        self.sent: list[Mapping[str, Any]] = []

    def send(self, fields: Mapping[str, Any]) -> None:
        self.sent.append(fields)

    def notifications(self, _client: WorkerClient, signal_id: str | None = None) -> list[Mapping[str, Any]]:
        assert signal_id in ("s-1", None)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    config = tmp_path / "shop.properties"
    config.write_text(CONFIG.format(tmp_path))

    def invoke(worker: Worker, *arguments: str) -> Result:
        monkeypatch.setattr(WorkerClient, "send", worker.send)
        monkeypatch.setattr(WorkerClient, "require_connector", lambda _client: None)
        monkeypatch.setattr(WorkerClient, "notifications", lambda client, name=None: worker.notifications(client, name))
        found = [str(config) if argument == "CONFIG" else argument for argument in arguments]
        return CliRunner().invoke(main, found)

    monkeypatch.setattr("rowtide.cli.connectors.signal._POLL_S", 0.001)
    return invoke


def of(kind: str, of_what: Mapping[str, Any] = SIGNAL) -> dict[str, Any]:
    return {**of_what, "type": kind}


def test_the_first_enabled_channel_is_used(run: Callable[..., Result], tmp_path: Path) -> None:
    data = '{"message": "ä"}'
    result = run(Worker([]), "signal", "log", "CONFIG", "--id", "s-1", "--data", data, "--no-wait")
    assert result.exit_code == 0, result.output
    assert result.stderr == "sent signal s-1 by channel file\n"
    lines = (tmp_path / "signals.txt").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{"id": "s-1", "type": "log", "data": {"message": "ä"}}]


def test_it_waits_for_the_result(run: Callable[..., Result]) -> None:
    worker = Worker([], [], [of("COMPLETED")])
    result = run(worker, "signal", "log", "CONFIG", "--id", "s-1", "--channel", "http")
    assert (result.exit_code, json.loads(result.stdout)["type"]) == (0, "COMPLETED")
    assert worker.sent == [{"id": "s-1", "type": "log", "data": {}}]


def test_a_refused_signal_fails(run: Callable[..., Result]) -> None:
    result = run(Worker([of("FAILED")]), "signal", "log", "CONFIG", "--id", "s-1")
    assert (result.exit_code, json.loads(result.stdout)["type"]) == (1, "FAILED")


def test_an_incremental_snapshot_is_awaited_to_its_end(run: Callable[..., Result]) -> None:
    begun = [of("STARTED", SNAPSHOT), of("COMPLETED")]
    worker = Worker(begun, begun, [*begun, of("IN_PROGRESS", SNAPSHOT), of("COMPLETED", SNAPSHOT)])
    result = run(worker, "signal", "execute-snapshot", "CONFIG", "--id", "s-1")
    types = [json.loads(line)["type"] for line in result.stdout.splitlines()]
    assert (result.exit_code, types) == (0, ["STARTED", "COMPLETED", "IN_PROGRESS", "COMPLETED"])


def test_no_result_in_time_is_an_error(run: Callable[..., Result]) -> None:
    result = run(Worker([]), "signal", "log", "CONFIG", "--id", "s-1", "--timeout", "0.01")
    assert result.exit_code == 1
    assert "no result in 0.01 s: look at the log of the connector" in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "{"], "it is not JSON"),
        (["--data", "5"], "it must be a JSON object"),
        (["--channel", "source"], "the channel source needs signal.data.collection"),
        (["--channel", "kafka"], "the channel kafka needs kafka in signal.enabled.channels"),
    ],
)
def test_what_cannot_be_sent_is_named(run: Callable[..., Result], arguments: list[str], message: str) -> None:
    result = run(Worker([]), "signal", "log", "CONFIG", *arguments)
    assert result.exit_code != 0
    assert message in result.output


def test_the_state_of_a_snapshot(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    tables = {
        "shop.a": {"state": "FINISHED", "rows": 1000, "estimated_rows": 990, "rows_per_second": 7.0},
        "shop.lines": {"state": "READING", "rows": 40, "estimated_rows": 300, "rows_per_second": 1234.5},
        "shop.orders": {"state": "READING", "rows": 5, "estimated_rows": None, "rows_per_second": 0.0},
    }
    now = {"connector": "shop", "state": "SNAPSHOT", "tables": tables}
    monkeypatch.setattr(WorkerClient, "snapshot", lambda _client: now)
    progress = {**SNAPSHOT, "type": "IN_PROGRESS", "additional_data": {"connector_name": "shop", "maximum_key": "9"}}
    result = run(Worker([of("COMPLETED"), progress]), "snapshot", "status", "CONFIG")
    assert result.output.splitlines() == [
        "connector shop: SNAPSHOT",
        "  shop.a       finished  1,000 rows",
        "  shop.lines   reading   40 of about 300 rows, 1,234 rows/s",
        "  shop.orders  reading   5 rows",
        "incremental snapshot, last notification (id s-1): in progress (maximum_key=9)",
    ]


def test_the_state_without_an_initial_snapshot(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    now = {"connector": "shop", "state": "RUNNING", "tables": {}}
    monkeypatch.setattr(WorkerClient, "snapshot", lambda _client: now)
    initial = {**SNAPSHOT, "aggregate_type": "Initial Snapshot"}
    skipped = run(Worker([of("SKIPPED", initial)]), "snapshot", "status", "CONFIG")
    assert skipped.output.splitlines()[1:] == ["no snapshot was taken since the worker was started"]
    blocking = [of("COMPLETED", initial), of("COMPLETED", {**SNAPSHOT, "aggregate_type": "Blocking Snapshot"})]
    result = run(Worker([*blocking, of("SKIPPED", initial)]), "snapshot", "status", "CONFIG")
    assert result.output.splitlines()[1:] == [
        "initial or blocking snapshot, last notification (id s-1): completed",
        "blocking snapshot, last notification (id s-1): completed",
    ]


def test_the_help_of_the_group_is_not_cut() -> None:
    result = CliRunner().invoke(main, ["snapshot", "--help"])
    assert result.output.splitlines()[-1].split(maxsplit=1) == [
        "status",
        "Show the progress of the snapshot of each table.",
    ]


def test_an_unreachable_worker_is_reported_with_hints_of_the_same_command(tmp_path: Path) -> None:
    config = tmp_path / "shop.properties"
    config.write_text(CONFIG.format(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as closed:
        url = f"http://127.0.0.1:{closed.getsockname()[1]}"
    status = CliRunner().invoke(main, ["snapshot", "status", str(config), "--web", url])
    assert "cannot be reached" in status.output
    assert "urlopen" not in status.output
    assert "--no-wait" not in status.output
    assert "--no-wait" in CliRunner().invoke(main, ["signal", "log", str(config), "--web", url]).output


def test_the_help_and_the_completion_have_all_types() -> None:
    help_text = " ".join(CliRunner().invoke(main, ["signal", "--help"]).output.split())
    assert all(kind in help_text for kind in TYPES)
    completed = ShellComplete(main, {}, "rowtide", "_ROWTIDE_COMPLETE").get_completions(["signal"], "s")
    assert [item.value for item in completed] == ["stop-snapshot", "schema-changes", "set-binlog-position"]


def test_a_snapshot_that_leaves_a_table_out_fails(run: Callable[..., Result]) -> None:
    def scanned(**data: str) -> dict[str, Any]:
        return {**of("TABLE_SCAN_COMPLETED", SNAPSHOT), "additional_data": data}

    ok = [of("COMPLETED"), scanned(scanned_collection="shop.a", status="EMPTY"), of("COMPLETED", SNAPSHOT)]
    assert run(Worker(ok), "signal", "execute-snapshot", "CONFIG", "--id", "s-1").exit_code == 0
    unknown = scanned(scanned_collection="shop.oders", status="UNKNOWN_SCHEMA") | {"error": "Did you mean shop.orders?"}
    refused = scanned(scanned_collection="shop.b", status="SQL_EXCEPTION")
    worker = Worker([of("COMPLETED"), unknown, refused, of("COMPLETED", SNAPSHOT)])
    result = run(worker, "signal", "execute-snapshot", "CONFIG", "--id", "s-1")
    assert result.exit_code == 1
    assert result.stderr.endswith(
        "not every table was read:\n  - Did you mean shop.orders?\n  - table shop.b: SQL_EXCEPTION\n"
    )


def test_the_configuration_of_one_of_several_connectors(run: Callable[..., Result], tmp_path: Path) -> None:
    own = tmp_path / "own.properties"
    own.write_text(f"signal.file={tmp_path}/own.txt\n")
    result = run(Worker([]), "signal", "log", "CONFIG", "--connector", str(own), "--id", "s-1", "--no-wait")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "own.txt").exists()


def test_a_worker_of_another_connector_is_named(tmp_path: Path) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path == "/connectors"
            body = b'["crm"]' if known else b'{"message": "Connector shop not found"}'
            self.send_response(200 if known else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Stay quiet."""

    path = tmp_path / "shop.properties"
    path.write_text(CONFIG.format(tmp_path))
    with HTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        web = f"http://127.0.0.1:{server.server_port}"
        result = CliRunner().invoke(main, ["signal", "log", str(path), "--web", web])
        server.shutdown()
    assert result.exit_code == 1
    assert f"the worker at {web} does not run connector shop, but crm. Give the URL by --web" in result.output
    assert not (tmp_path / "signals.txt").exists(), "a signal is sent although its result cannot be read"


@pytest.mark.parametrize(
    ("user", "expected"),
    [("", "Bearer s3cret"), ("anna@", "Basic YW5uYTpzM2NyZXQ="), ("anna%40home@", "Basic YW5uYUBob21lOnMzY3JldA==")],
)
def test_a_user_in_the_url_logs_in_with_a_password(tmp_path: Path, user: str, expected: str) -> None:
    config, secret, seen = tmp_path / "shop.properties", tmp_path / "secret", list[str]()
    config.write_text(CONFIG.format(tmp_path))
    secret.write_text("s3cret\n")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers["Authorization"])
            self.send_error(403, "no")

        def log_message(self, *_given: object) -> None: ...

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{user}127.0.0.1:{server.server_port}/"
        options = ["--web", url, "--web-token-file", str(secret)]
        result = CliRunner().invoke(main, ["snapshot", "status", str(config), *options])
        server.shutdown()
    assert seen == [expected]
    assert f"the worker at http://127.0.0.1:{server.server_port} answers 403" in result.output


def test_a_password_in_the_url_is_refused(tmp_path: Path) -> None:
    config = tmp_path / "shop.properties"
    config.write_text(CONFIG.format(tmp_path))
    result = CliRunner().invoke(main, ["snapshot", "status", str(config), "--web", "http://anna:s3cret@127.0.0.1:1"])
    assert result.exit_code == 1
    assert "--web-token-file" in result.output
    assert "s3cret" not in result.output
