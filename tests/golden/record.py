"""Records what Debezium makes of cases: ``python -m tests.golden.record --help``, from the checkout's root."""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import sys
import tempfile
import time
import urllib.error
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docker"))

from confluent_kafka import Producer  # noqa: E402
from confluent_kafka.admin import AdminClient  # noqa: E402
from rowtide_stack import Kafka, MariaDB, MySQL, SqlServer  # noqa: E402

from rowtide.cli.sql_script import statements  # noqa: E402
from tests.support.connector_properties import CONNECTORS  # noqa: E402 - not installed as a package
from tests.support.kafka.connect import KafkaConnect  # noqa: E402
from tests.support.kafka.topic_tools import Topics  # noqa: E402

_SERVERS = {"mysql": MySQL, "mariadb": MariaDB}
_QUIET_S = 4.0
"""How long nothing may come before a stage is complete."""
_OFFSET_S = 2.0
"""In which an offset is flushed."""
_USER = ("CREATE USER dbz@'%' IDENTIFIED BY 'dbz'", "GRANT ALL PRIVILEGES ON *.* TO dbz@'%'")
_TABLES = (
    "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type IN ('BASE TABLE', "
    "'SYSTEM VERSIONED') AND table_schema NOT IN ('mysql', 'sys', 'information_schema', 'performance_schema')"
)


class Recording:
    """One case with servers of its own: see ``tests/golden/README.md`` for the files.

    Args:
        folder: of the case.
        server: its server.
        kafka: the broker.
        worker: a worker with Debezium's plugins.
        files: for files of signals.
    """

    def __init__(self, folder: Path, server: SqlServer, kafka: Kafka, worker: KafkaConnect, files: Path) -> None:
        self.name = folder.name
        self._folder = folder
        self._case = json.loads((folder / "case.json").read_text())
        self._server = server
        self._worker = worker
        self._topics = Topics(kafka.bootstrap)
        self._own = self._topics.client
        self._places = {"$RUN": str(files), "$KAFKA": kafka.bootstrap}
        self._config = self._properties(self._case.get("config", {}))
        self._refused: Any = None

    def run(self) -> str:
        """Run all stages, and write ``golden/``; returns the connector's last state."""
        self._server.execute("SET sql_log_bin = 0", *_USER)
        for variable, values in self._case.get("globals", {}).items():
            for value in values if isinstance(values, list) else [values]:
                self._server.query(f"SET GLOBAL {variable} = %s", [value])
        self._execute(self._folder / "setup.sql")
        if (signals := self._config.get("signal.kafka.topic")) is not None:
            self._topics.admin.ensure(signals)
        if (file := self._config.get("signal.file")) is not None:
            Path(file).write_text("")
        try:
            self._worker.create(self.name, self._config)
        except urllib.error.HTTPError as error:
            self._refused = json.loads(error.read())
        self._settle()
        for stage in sorted([*self._folder.glob("stream*.sql"), *self._folder.glob("stream*.signals.json")]):
            if stage.suffix == ".json":
                self._send(json.loads(stage.read_text()))
            elif stage.name.endswith(".stopped.sql"):
                self._execute_stopped(stage)
            else:
                self._execute(stage)
            self._settle()
        return self._write()

    def _properties(self, given: Mapping[str, Any]) -> dict[str, str]:
        config = {name: str(value) for name, value in given.items()}
        for place, value in self._places.items():
            config = {name: text.replace(place, value) for name, text in config.items()}
        return {
            "connector.class": CONNECTORS[self._server.name],
            "tasks.max": "1",
            "database.hostname": self._server.host,
            "database.port": str(self._server.port),
            "database.user": "dbz",
            "database.password": "dbz",
            "database.server.id": "184054",
            "driver.allowPublicKeyRetrieval": "true",
            "topic.prefix": self.name,
            "topic.creation.default.replication.factor": "1",
            "topic.creation.default.partitions": "1",
            "schema.history.internal.kafka.bootstrap.servers": self._places["$KAFKA"],
            "schema.history.internal.kafka.topic": f"history-{self.name}",
            **config,
        }

    def _execute(self, file: Path) -> None:
        with self._server.connect() as connection, connection.cursor() as cursor:
            for line, statement in statements(file.read_text()):
                try:
                    cursor.execute(statement)
                except Exception as error:
                    raise click.ClickException(f"{file}:{line}: {error}") from error

    def _execute_stopped(self, stage: Path) -> None:
        """Execute statements while the connector is stopped, and resume it, with other properties if there are any."""
        self._worker.halt(self.name)
        self._execute(stage)
        change = stage.with_suffix(".config.json")
        if change.exists():
            self._config |= {name: str(value) for name, value in json.loads(change.read_text()).items()}
            self._worker.ask("PUT", f"/connectors/{self.name}/config", self._config)
        self._worker.resume(self.name)
        self._worker.wait(lambda: self._worker.states(self.name))

    def _send(self, signals: Iterable[Mapping[str, Any]]) -> None:
        for signal in signals:
            if "sleep" in signal:
                time.sleep(signal["sleep"])
            elif "sql" in signal:
                self._server.execute(signal["sql"])
            elif signal["channel"] == "file":
                with Path(self._config["signal.file"]).open("a") as file:
                    file.write(signal["value"] + "\n")
            else:
                producer = Producer(self._own)
                topic = signal.get("topic", self._config["signal.kafka.topic"])
                producer.produce(topic, signal["value"], signal["key"])
                producer.flush()

    def _settle(self) -> None:
        """Wait until the connector has read everything or has failed, and no topic gets more records."""
        if self._refused is None:
            self._worker.wait(self._has_read)
        before: object = None
        while before != (before := self._sizes()):
            time.sleep(_QUIET_S)

    def _has_read(self) -> bool:
        state = self._task()["state"]
        if state == "FAILED" or self._config.get("snapshot.mode") == "initial_only":
            return state in {"RUNNING", "FAILED"}
        sent = [str(row[6]) for row in self._server.query("SHOW PROCESSLIST") if str(row[4]).startswith("Binlog Dump")]
        return bool(sent) and all("has sent all binlog" in text for text in sent)

    def _task(self) -> dict[str, Any]:
        if self._refused is not None:
            return {"state": None}
        tasks = self._worker.status(self.name)["tasks"]
        return tasks[0] if tasks else {"state": None}

    def _written(self) -> list[str]:
        """The topics of the connector, and that of the offsets."""
        others = {self._config.get("signal.kafka.topic"), *(f"connect-{part}" for part in ("config", "status"))}
        found = AdminClient(self._own).list_topics(timeout=20).topics
        return sorted(name for name in found if name not in others and not name.startswith("__consumer"))

    def _sizes(self) -> dict[str, int]:
        """The number of records by topic, without those that come in any case."""
        names = [name for name in self._written() if not name.startswith(("connect-", "__debezium-heartbeat"))]
        return {name: len(self._topics.read(name)) for name in names}

    def _write(self) -> str:
        time.sleep(_OFFSET_S)
        task, golden = self._task(), self._folder / "golden"
        shutil.rmtree(golden, ignore_errors=True)
        (golden / "binlog").mkdir(parents=True)
        shown = {f"history-{self.name}": "history", "connect-offset": "connect-offsets"}
        lines: list[bytes] = []
        for topic in self._written():
            for one in self._topics.read(topic):
                fields = {
                    "topic": shown.get(topic, topic),
                    "partition": one.partition,
                    "offset": one.offset,
                    "key": None if one.key is None else one.key.decode(),
                    "value": None if one.value is None else one.value.decode(),
                    "headers": [[name, None if text is None else text.decode()] for name, text in one.headers],
                }
                lines.append(json.dumps(fields, ensure_ascii=False).encode() + b"\n")
        _write_compressed(golden / "records.jsonl.gz", b"".join(lines))
        facts = {
            "connector_state": task["state"],
            "trace": task.get("trace"),
            "refused": self._refused,
            "globals": self._case.get("globals", {}),
            "tables": self._tables(),
            **self._identity(),
        }
        (golden / "server.json").write_text(json.dumps(facts, indent=1, default=str, ensure_ascii=False) + "\n")
        source = Path(self._server.query("SELECT @@log_bin_basename")[0][0]).parent
        names = [name for name, *_rest in self._server.query("SHOW BINARY LOGS")]
        self._server.execute("FLUSH BINARY LOGS")
        for name in names:
            _write_compressed(golden / "binlog" / f"{name}.gz", (source / name).read_bytes())
        return f"{len(lines)} records, connector {'refused' if self._refused else task['state']}"

    def _identity(self) -> dict[str, Any]:
        name = "server_uuid" if self._server.name == "mysql" else "gtid_domain_id"
        ((version, server_id, own),) = self._server.query(f"SELECT VERSION(), @@server_id, @@{name}")
        return {"version": version, "server_id": server_id, name: own}

    def _tables(self) -> dict[str, Any]:
        found = {}
        for schema, table in self._server.query(_TABLES):
            quoted = ".".join("`{}`".format(name.replace("`", "``")) for name in (schema, table))
            with self._server.connect() as connection, connection.cursor() as cursor:
                cursor.execute(f"SHOW CREATE TABLE {quoted}")
                create = cursor.fetchall()[0][1]
                cursor.execute(
                    "SELECT * FROM information_schema.columns WHERE table_schema = %s AND table_name = %s "
                    "ORDER BY ordinal_position", (schema, table),
                )  # fmt: skip
                names = [described[0].lower() for described in cursor.description]
                columns = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            found[f"{schema}.{table}"] = {"create": create, "columns": columns}
        return found


def _write_compressed(path: Path, content: bytes) -> None:
    """Write a file whose bytes do not depend on the time."""
    with path.open("wb") as file, gzip.GzipFile(fileobj=file, mode="wb", mtime=0) as out:
        out.write(content)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("cases", nargs=-1, required=True, type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--debezium", required=True, envvar="ROWTIDE_BENCH_DEBEZIUM",
              type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="Folder with kafka/*.jar, debezium-mysql/*.jar and debezium-mariadb/*.jar.")  # fmt: skip
def main(cases: tuple[Path, ...], debezium: Path) -> None:
    """Record Debezium's answer to each case, a folder with case.json, setup.sql and stream*.sql, into its golden/.

    Each case gets a new server and broker of the local stack. A folder golden/ that exists is replaced.
    """
    plugins = [name for name in ("debezium-mysql", "debezium-mariadb") if (debezium / name).is_dir()]
    for folder in cases:
        kind = json.loads((folder / "case.json").read_text()).get("server", "mysql")
        with contextlib.ExitStack() as stack:
            files = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-recording-")))
            server, kafka = stack.enter_context(_SERVERS[kind]()), stack.enter_context(Kafka())
            worker = KafkaConnect("connect", debezium.absolute(), plugins, kafka.bootstrap)
            stack.callback(worker.stop)
            worker.start(files)
            click.echo(f"{folder.name}: {Recording(folder.absolute(), server, kafka, worker, files).run()}")


if __name__ == "__main__":
    main()
