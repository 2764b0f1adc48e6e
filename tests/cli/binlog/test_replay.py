"""``rowtide replay``."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from rowtide.cli import main
from tests.support.canal.golden import recorded
from tests.support.kafka.topic_tools import Topics
from tests.support.recordings.golden import Case, Written, by_topic

if TYPE_CHECKING:
    from rowtide_stack import Kafka

CASE = "keys"


def configured(folder: Path, **more: str) -> str:
    """A configuration with only the properties that a replay needs."""
    config = Case(CASE).description["config"]
    path = folder / "config.json"
    path.write_text(
        json.dumps(
            {"connector.class": "io.debezium.connector.mysql.MySqlConnector", "topic.prefix": CASE, **config, **more}
        )
    )
    return str(path)


def run(*arguments: str) -> Result:
    """Run the command here, where standard output has no descriptor for records."""
    return CliRunner().invoke(main, ["replay", *arguments])


def printed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the command in its own process."""
    command = [sys.executable, "-m", "rowtide", "replay", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def start() -> str:
    offset = Case(CASE).start
    assert offset is not None
    return offset.to_json()


def test_one_table_between_two_points_has_the_same_records(tmp_path: Path) -> None:
    path, binlog = configured(tmp_path), str(Case(CASE).binlog)

    def payloads(said: str) -> list[dict[str, Any]]:
        values = [json.loads(line)["value"] for line in said.splitlines()]
        found = [json.loads(value)["payload"] for value in values if value is not None]
        rows = [row for row in found if row.get("op") in ("c", "u", "d")]
        return [{name: value for name, value in row.items() if not name.startswith("ts_")} for row in rows]

    rows = payloads(printed(path, "--binlog", binlog).stdout)
    source = rows[len(rows) // 2]["source"]
    table, gtid = f"{source['db']}.{source['table']}", source["gtid"]
    wanted = [row for row in rows if row["source"]["gtid"] == gtid and row["source"]["table"] == source["table"]]
    result = printed(path, "--binlog", binlog, "--table", table, "--from", gtid, "--to", gtid)
    assert result.returncode == 0, result.stderr
    assert payloads(result.stdout) == wanted


def test_the_binlog_is_that_of_the_mirror_if_no_other_is_given(tmp_path: Path) -> None:
    given = printed(configured(tmp_path), "--binlog", str(Case(CASE).binlog), "--start", start())
    folder = str(Case(CASE).binlog)
    found = printed(configured(tmp_path, **{"rowtide.mirror.directory": folder}), "--start", start())
    assert found.returncode == 0, found.stderr
    assert len(found.stdout.splitlines()) == len(given.stdout.splitlines()) > 0
    assert "--binlog is missing, and rowtide.mirror.directory is not set" in run(configured(tmp_path)).output
    missing = run(configured(tmp_path, **{"rowtide.mirror.directory": str(tmp_path / "no")}))
    assert f"rowtide.mirror.directory={tmp_path / 'no'} is not a directory" in missing.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--from", "binlog.000001:4"), "--from and --to need --table"),
        (("--table", "a.b", "--start", '{"gtids": ""}'), "--table excludes --start"),
        (("--table", "a.b", "--format", "canal"), "--table excludes --start, --output kafka and --format canal"),
        (("--table", "orders"), "'orders' is not a table: give database.table"),
    ],
)
def test_wrong_options_of_one_table_are_refused(tmp_path: Path, options: tuple[str, ...], message: str) -> None:
    result = run(configured(tmp_path), "--binlog", str(Case(CASE).binlog), *options)
    assert result.exit_code != 0
    assert message in result.output


def test_records_are_lines_of_json_with_the_exact_text_that_kafka_would_get(tmp_path: Path) -> None:
    path = configured(tmp_path, **{"database.password": "${env:PASSWORD_OF_A_SERVER_THAT_IS_NOT_ASKED}"})
    result = printed(path, "--binlog", str(Case(CASE).binlog), "--start", start())
    assert result.returncode == 0, result.stderr
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert all(list(line) == ["topic", "key", "value", "headers"] for line in lines)
    found = [Written(d["topic"], d["key"], d["value"], tuple((k, v) for k, v in d["headers"])) for d in lines]
    assert by_topic(found) == Case(CASE).streamed()
    assert f"{len(lines)} records in " in result.stderr


@pytest.mark.parametrize("form", ["debezium", "canal"])
def test_output_that_is_not_buffered_has_no_part_of_the_last_line_without_an_error(tmp_path: Path, form: str) -> None:
    arguments = [configured(tmp_path), "--binlog", str(Case(CASE).binlog), "--format", form]
    size = len(printed(*arguments).stdout.encode())
    found = tmp_path / "out"
    with found.open("wb") as output:
        done = subprocess.run(
            [sys.executable, "-u", "-m", "rowtide", "replay", *arguments],
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size - 10, size - 10)),
            check=False,
        )
    assert found.stat().st_size == size - 10
    assert done.returncode == 1
    assert "Error: standard output: File too large. The output is incomplete, and may end within a line" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("form", ["debezium", "canal"])
def test_a_reader_that_has_enough_ends_the_command_silently(tmp_path: Path, form: str) -> None:
    arguments = [configured(tmp_path), "--binlog", str(Case(CASE).binlog), "--format", form]
    command = [sys.executable, "-m", "rowtide", "replay", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert json.loads(running.stdout.readline())
        running.stdout.close()
        messages = running.stderr.read().decode()
        assert running.wait() == 1
    assert "Traceback" not in messages
    assert "Error" not in messages


def test_all_errors_of_a_configuration_are_reported(tmp_path: Path) -> None:
    path = configured(tmp_path, **{"table.exclude.lst": "a.b", "decimal.handling.mode": "hex"})
    result = run(path, "--binlog", str(Case(CASE).binlog), "--output", "kafka")
    assert result.exit_code == 1
    assert "bootstrap.servers: is required" in result.output
    assert "table.exclude.lst: is not a known property; did you mean table.exclude.list" in result.output
    assert "decimal.handling.mode: " in result.output


@pytest.mark.parametrize("offset", ["{", "[]", '{"pos": 4}', '{"file": "binlog.000001", "pos": "x"}'])
def test_the_error_for_an_invalid_offset_has_an_example(tmp_path: Path, offset: str) -> None:
    result = run(configured(tmp_path), "--binlog", str(Case(CASE).binlog), "--start", offset)
    assert result.exit_code == 2
    assert 'is not an offset such as \'{"file":"binlog.000003","pos":157}\'' in result.output


def test_a_damaged_file_is_an_error_with_its_position_and_without_a_traceback(tmp_path: Path) -> None:
    import gzip

    data = bytearray(gzip.decompress((Case(CASE).binlog / "binlog.000001.gz").read_bytes()))
    data[len(data) // 2] ^= 1
    folder = tmp_path / "binlog"
    folder.mkdir()
    (folder / "binlog.000001").write_bytes(data)
    result = printed(configured(tmp_path), "--binlog", str(folder))
    assert result.returncode == 1
    assert "(at binlog.000001:" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.servers
def test_records_go_to_kafka_in_their_order(tmp_path: Path, kafka: Kafka) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}"
    path = configured(tmp_path, **{"topic.prefix": prefix, "bootstrap.servers": kafka.bootstrap})
    lines = printed(path, "--binlog", str(Case(CASE).binlog)).stdout.splitlines()
    sent = run(path, "--binlog", str(Case(CASE).binlog), "--output", "kafka")
    assert sent.exit_code == 0, sent.output
    expected: dict[str, list[tuple[str | None, bool]]] = {}
    for line in map(json.loads, lines):
        expected.setdefault(line["topic"], []).append((line["key"], line["value"] is None))
    topics = Topics(kafka.bootstrap)
    for topic, messages in expected.items():
        found = [(seen.key.decode() if seen.key else None, seen.value is None) for seen in topics.read(topic)]
        assert found == messages, topic


def test_entries_of_canal_are_lines_of_json_of_all_tables(tmp_path: Path) -> None:
    path = configured(tmp_path, **{"canal.instance.gtidon": "true", "table.include.list": "no.such"})
    result = run(path, "--binlog", str(Case(CASE).binlog), "--format", "canal")
    assert result.exit_code == 0, result.output
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    wanted = [line for line in recorded(f"{CASE}.gtid") if line.get("type") != "GTIDLOG"]
    assert [(line["entryType"], len(line["flat"])) for line in lines] == [
        (line["type"], len(line.get("flat", []))) for line in wanted
    ]
    assert [line["entry"] for line in lines[-20:]] == [line["entry"] for line in wanted[-20:]]
    assert json.loads(lines[0]["flat"][0])["sql"] == "create database k"
    assert f"{len(lines)} entries in " in result.stderr


def test_entries_of_canal_do_not_go_to_kafka(tmp_path: Path) -> None:
    result = run(configured(tmp_path), "--binlog", str(tmp_path), "--format", "canal", "--output", "kafka")
    assert result.exit_code == 2
    assert "--format canal needs --output -" in result.output
