"""The demo as a user runs it, with few rows: once completely, and interrupted by a signal at several steps."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer

import rowtide
from tests.support.source_tree import ROOT

DEMO = ROOT / "docker/demo"


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A temporary folder with a short name, because the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="demo-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def demo(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """The demo with its temporary files in a folder, and a mark in the environment of all its processes."""
    mark = f"ROWTIDE_DEMO_TEST={secrets.token_hex(8)}"
    name, _, value = mark.partition("=")
    process = subprocess.Popen(
        [DEMO, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, name: value, "TMPDIR": str(folder)},
        start_new_session=True,
    )
    try:
        yield process, mark
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate()


def survivors(mark: str, patience: float = 60) -> list[str]:
    """The commands of the processes with the mark that still run after ``patience`` seconds."""
    end = time.monotonic() + patience
    while (found := list(_marked(mark))) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _marked(mark: str) -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                if mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                    yield (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")


def use_the_running_servers(output: str) -> None:
    """Use the addresses that --keep has printed: MySQL's client, and the worker's health."""
    (client,) = re.findall(r"^  (/\S+/mysql) ", output, re.MULTILINE)
    command = [client, "--batch", "--skip-column-names", "--execute=SELECT COUNT(*) FROM products WHERE sku LIKE 'Q%'"]
    assert int(subprocess.run(command, capture_output=True, text=True, check=True).stdout) > 0
    (health,) = re.findall(r"(http://\S+/health)", output)
    with urllib.request.urlopen(health) as answer:
        assert json.load(answer)["status"] == "UP"


@pytest.mark.servers
@pytest.mark.spark
@pytest.mark.timeout(900)  # a minute on a quiet machine
def test_the_tables_are_equal_and_everything_is_removed(short_path: Path) -> None:
    with demo(short_path, "--rows", "2000", "--keep") as (process, mark):
        assert process.stdout is not None
        output = ""
        while "Ctrl-C here" not in output and (line := process.stdout.readline()):
            output += line
        if process.poll() is None:
            use_the_running_servers(output)
            process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=180)
        output += rest
    assert process.returncode == 0, output
    assert "8/8" in output
    assert re.search(r"\b[\d,]+ rows of 4 tables are equal in MySQL, Kafka and Spark", output)
    equal = re.findall(r"^(\w+) +[\d,]+ +([\d,]+) +([\d,]+) +([\d,]+) +yes$", output, re.MULTILINE)
    assert [name for name, *_ in equal] == ["customers", "products", "orders", "order_lines"]
    assert all(len(set(rows)) == 1 for _, *rows in equal)
    assert "What to try next" in output
    assert survivors(mark) == []
    assert list(short_path.iterdir()) == []


_OTHER_READER = """
const { SchemaRegistry, SchemaType } = require("@kafkajs/confluent-schema-registry");
// JavaScript's numbers have 53 bits, and Debezium's ts_ns has more.
const long = require("avsc").types.LongType.__with({
  fromBuffer: (bytes) => bytes.readBigInt64LE(),
  toBuffer: (number) => { const bytes = Buffer.alloc(8); bytes.writeBigInt64LE(number); return bytes; },
  fromJSON: BigInt,
  toJSON: String,
  isValid: (number) => typeof number === "bigint",
  compare: (one, other) => (one === other ? 0 : one < other ? -1 : 1),
});
const registry = new SchemaRegistry({ host: process.argv[2] }, { [SchemaType.AVRO]: { registry: { long } } });
const lines = require("fs").readFileSync(0, "utf8").trim().split("\\n");
(async () => {
  for (const line of lines) {
    const [key, value] = await Promise.all(line.split(" ").map((one) => registry.decode(Buffer.from(one, "base64"))));
    console.log(JSON.stringify([key.sku, value.op, value.after && value.after.name, value.source.table]));
  }
})();
"""


@pytest.mark.nightly
@pytest.mark.spark
@pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not installed (Debian: npm)")
def test_records_in_avro_are_read_by_a_client_of_another_language(short_path: Path, tmp_path: Path) -> None:
    install = ["npm", "install", "--silent", "--no-audit", "--no-fund", "@kafkajs/confluent-schema-registry@4.1.0"]
    subprocess.run(install, cwd=tmp_path, check=True)
    (tmp_path / "read.js").write_text(_OTHER_READER)
    with demo(short_path, "--rows", "2000", "--avro", "--keep") as (process, _):
        assert process.stdout is not None
        output = ""
        while "Ctrl-C here" not in output and (line := process.stdout.readline()):
            output += line
        assert "are equal in MySQL, Kafka and Spark" in output, output
        (kafka,) = re.findall(r"Kafka     (\S+), topics", output)
        (registry,) = re.findall(r"registry  (\S+)/subjects", output)
        records = products(kafka)
        lines = "\n".join(" ".join(base64.b64encode(side).decode() for side in record) for record in records)
        read = subprocess.run(
            ["node", "read.js", registry], cwd=tmp_path, input=lines, capture_output=True, text=True, check=False
        )
        assert read.returncode == 0, read.stderr
        found = [json.loads(line) for line in read.stdout.splitlines()]
        with rowtide.Decoder(registry) as decoder:
            changes = [decoder.decode("shop.shop.products", *record) for record in records]
        expected = [
            [one.key["sku"], one.op, one.after and one.after["name"], one.table] for one in changes if one and one.key
        ]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=180)
    assert len(found) >= 20
    assert found == expected


def products(kafka: str) -> list[tuple[bytes, bytes]]:
    """Keys and values of the records of the products that have a row."""
    consumer = Consumer({"bootstrap.servers": kafka, "group.id": "reader", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["shop.shop.products"])
        found: list[tuple[bytes, bytes]] = []
        while messages := consumer.consume(1000, timeout=10):
            found += [(one.key(), one.value()) for one in messages if one.error() is None and one.value() is not None]
    finally:
        consumer.close()
    return found


@pytest.mark.servers
@pytest.mark.parametrize(
    ("number", "after"),
    [
        (signal.SIGTERM, 0.4),  # during the setup or at the start
        (signal.SIGINT, "1/8"),  # while the first server starts
        pytest.param(signal.SIGTERM, "2/8", marks=pytest.mark.nightly),  # while rows are loaded
        (signal.SIGINT, "4/8"),  # while the worker starts
    ],
)
def test_a_signal_stops_everything(number: signal.Signals, after: float | str, short_path: Path) -> None:
    with demo(short_path, "--rows", "20000") as (process, mark):
        assert process.stdout is not None
        if isinstance(after, str):
            for line in process.stdout:
                if line.startswith(after):
                    break
        time.sleep(0.4)
        process.send_signal(number)
        output, _ = process.communicate(timeout=180)
    # The signal itself ended the process if it arrived before the handler was installed.
    assert process.returncode in {128 + number, -number}, output
    assert "Traceback" not in output
    assert survivors(mark) == []
    assert list(short_path.iterdir()) == []


@pytest.mark.servers
def test_a_failure_is_reported_with_the_folder_of_the_logs(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWTIDE_DATABASE_SERVER_ID", "1")  # that of MySQL: a replica needs another one
    with demo(short_path, "--rows", "1000") as (process, mark):
        output, _ = process.communicate()
    assert process.returncode == 1, output
    assert "The demo failed: rowtide check exited with code 1" in output
    (folder,) = short_path.iterdir()
    assert str(folder) in output
    assert {"check.log", "mysql.log", "kafka.log"} <= {path.name for path in folder.iterdir()}
    assert survivors(mark) == []


@pytest.mark.servers
def test_the_demo_for_users_of_canal(short_path: Path) -> None:
    with demo(short_path, "--canal", "--rows", "1000") as (process, mark):
        output, _ = process.communicate()
        assert process.returncode == 0, output
        assert "values are those of MySQL" in output
        assert survivors(mark) == []
