"""One round: servers, writers and a worker under faults, and the account of every change at the end."""

from __future__ import annotations

import random
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rowtide_stack import Kafka, MariaDB, MySQL
from rowtide_stack.servers.tls import TlsFiles

from tests.chaos.accounts import account, made_problems, sent_problems
from tests.chaos.clock import Clock
from tests.chaos.disk import Disk, can_mount
from tests.chaos.encrypted_kafka import EncryptedKafka
from tests.chaos.faults import (
    Fault,
    RunningWorker,
    clock_faults,
    disk_faults,
    fail_over,
    link_faults,
    server_faults,
    worker_faults,
)
from tests.chaos.network import Link
from tests.chaos.primary import Primary
from tests.chaos.records import Records, read_records
from tests.chaos.workload import TABLES, Reshaper, Writer
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

    from tests.chaos.scenario import Scenario

__all__ = ["Outcome", "Round"]

SERVERS: dict[str, type[MySQL | MariaDB]] = {"mysql": MySQL, "mariadb": MariaDB}
_DATABASE = "shop"
_WRITERS = 4
_DISKS_MB = {"database": 800, "kafka": 400, "worker": 1}
_OFTEN = {"database failed over": 6, "disk": 3, "worker killed": 2}
"""How much more often the faults with these names are chosen than others."""
_SECOND_FAULT = 0.25
"""The share of faults during which the worker is killed or started anew."""
_STREAMING = 0.75
"""The share of faults that wait until the worker reads the binlog; the others come during its start or snapshot."""
_START_S = 30
_CATCH_UP_S = 600
"""A time in which the last worker reads the rest of the binlog even on a machine that is busy with other work."""


@dataclass
class Outcome:
    """What has happened in a round.

    Attributes:
        faults: the number of times each fault happened.
        records: the number of records.
        repeated: the number of repeated records.
        ends: why workers have ended by themselves.
        problems: descriptions of lost, repeated and disordered records, and of errors of the worker.
    """

    faults: Counter[str] = field(default_factory=Counter)
    records: int = 0
    repeated: int = 0
    ends: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


class Round:
    """A round of the campaign.

    Args:
        scenario: what it is made of.
        faults: the number of faults.
        keep: a folder for what explains a problem.
    """

    def __init__(self, scenario: Scenario, faults: int, keep: Path | None) -> None:
        self._scenario = scenario
        self._count = faults
        self._evidence = keep
        self._decide = random.Random(scenario.seed)

    def run(self) -> Outcome:
        """Run it; a problem is reported in the outcome."""
        with ExitStack() as stack:
            return self._run(stack)

    def _run(self, stack: ExitStack) -> Outcome:
        scenario = self._scenario
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rowtide-chaos-")))
        disks: dict[str, Disk] = {}
        if scenario.small_disks and can_mount():
            disks = {name: stack.enter_context(Disk(size)) for name, size in _DISKS_MB.items()}
        server = self._server(stack, disks, 1)
        replica = self._server(stack, {}, 2) if scenario.replica else None
        primary = Primary(server, replica)
        database_link = stack.enter_context(Link(server.host, server.port))
        files = TlsFiles.make(folder / "certificates") if scenario.encrypted else None
        kafka, kafka_link = self._kafka(stack, disks, files)
        server.execute(f"CREATE DATABASE {_DATABASE}")
        server.execute(*TABLES, *self._rows_before(), database=_DATABASE)

        config = self._config(folder, server, f"{kafka.host}:{kafka_link.port}", database_link, disks)
        if files is not None:
            config.properties |= {"security.protocol": "SSL", "ssl.truststore.location": str(files.ca)}
        clock = Clock(folder)
        command = clock.command("run", str(config.path), "--web-port", "{port}")
        worker = RunningWorker(lambda: Worker(config, command=command))
        faults = [
            *worker_faults(worker),
            *server_faults(primary, kafka),
            *link_faults("database", database_link, self._decide),
            *link_faults("kafka", kafka_link, self._decide),
            *clock_faults(clock, self._decide),
        ]
        if disks:
            at_worker = None if scenario.exactly_once else disks["worker"]
            faults += disk_faults(disks["database"], disks["kafka"], at_worker, primary, kafka)
        if replica:
            faults.append(fail_over(primary, database_link))

        seed = scenario.seed
        writers = [Writer(primary, _DATABASE, number, seed + number, xa=number == 0) for number in range(_WRITERS)]
        clients = [*writers, Reshaper(primary, _DATABASE, seed)]
        for client in clients:
            client.start()
        outcome = Outcome()
        try:
            self._disturb(worker, faults, outcome)
        finally:
            for client in clients:
                client.end()
        writers[0].finish()
        outcome.ends, outcome.problems = worker.ends, worker.problems
        try:
            _catch_up(config)
        except AssertionError as error:
            outcome.problems.append(f"the last worker does not read everything: {str(error)[-3000:]}")
        self._account(Topics(kafka.bootstrap), config, primary.server, outcome)
        if outcome.problems and self._evidence:
            self._keep_evidence(folder, primary.server, Topics(kafka.bootstrap), config)
        return outcome

    def _server(self, stack: ExitStack, disks: dict[str, Disk], number: int) -> SqlServer:
        options = {**self._scenario.server_options(), "server_id": number}
        if self._scenario.replica and self._scenario.flavor == "mariadb":
            options["log_slave_updates"] = "ON"
        made = SERVERS[self._scenario.flavor](options)
        if "database" not in disks:
            return stack.enter_context(made)
        with disks["database"].holds_temporary_files():
            return stack.enter_context(made)

    @staticmethod
    def _kafka(stack: ExitStack, disks: dict[str, Disk], files: TlsFiles | None) -> tuple[Kafka, Link]:
        """A broker, and the way to it: with TLS if there are certificates."""
        kafka = Kafka() if files is None else EncryptedKafka(files)
        port = kafka.tls_port if isinstance(kafka, EncryptedKafka) else kafka.port
        link = stack.enter_context(Link(kafka.host, port))
        kafka.advertise(link.port)
        if "kafka" not in disks:
            return stack.enter_context(kafka), link
        with disks["kafka"].holds_temporary_files():
            return stack.enter_context(kafka), link

    def _rows_before(self) -> list[str]:
        count = self._scenario.rows_before // _WRITERS
        if not count:
            return []
        numbers = f"WITH RECURSIVE s (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM s WHERE i < {count})"
        variable = "cte_max_recursion_depth" if self._scenario.flavor == "mysql" else "max_recursive_iterations"
        rows = "INSERT INTO entries (writer, n, note)"
        return [
            f"SET SESSION {variable} = {count + 1}",
            *(f"{rows} {numbers} SELECT {writer}, i, REPEAT('z', 50) FROM s" for writer in range(_WRITERS)),
        ]

    def _config(
        self, folder: Path, server: SqlServer, bootstrap: str, link: Link, disks: dict[str, Disk]
    ) -> WorkerConfig:
        properties = {"database.include.list": _DATABASE, **self._scenario.properties()}
        if disks and not self._scenario.exactly_once:
            properties["offset.storage.file.filename"] = str(disks["worker"].folder / "offsets")
        config = WorkerConfig(folder, server, bootstrap, properties)
        config.properties["database.port"] = str(link.port)
        return config

    def _disturb(self, worker: RunningWorker, faults: Sequence[Fault], outcome: Outcome) -> None:
        """Cause faults one after the other, with a running worker after each."""
        decide = self._decide
        weights = [next((often for name, often in _OFTEN.items() if name in fault.name), 1) for fault in faults]
        worker.ensure()
        try:
            for fault in decide.choices(faults, weights, k=self._count):
                if decide.random() < _STREAMING:
                    _wait_for(worker.streams)
                time.sleep(decide.uniform(0, 2))
                outcome.faults[fault.name] += 1
                fault.begin()
                time.sleep(decide.uniform(0, fault.longest_s))
                if decide.random() < _SECOND_FAULT:
                    worker.kill()
                    worker.ensure()
                    outcome.faults["worker killed during a fault"] += 1
                    time.sleep(decide.uniform(0, fault.longest_s))
                fault.end()
                worker.ensure()
        finally:
            worker.kill()

    def _account(self, topics: Topics, config: WorkerConfig, server: SqlServer, outcome: Outcome) -> None:
        def rows(statement: str) -> dict[Any, int]:
            return dict(server.query(statement, database=_DATABASE))

        records, made = self._records(topics, config, server)
        exactly_once = self._scenario.exactly_once
        found, repeated = account(
            records.accounts,
            records.entries,
            rows("SELECT id, v FROM accounts"),
            rows("SELECT writer, COUNT(*) FROM entries GROUP BY writer"),
            exactly_once=exactly_once,
        )
        sent = rows("SELECT aggregatetype, COUNT(*) FROM outbox GROUP BY aggregatetype")
        lost, again = sent_problems(records.sent, sent, exactly_once=exactly_once)
        outcome.problems += [*found, *lost, *made_problems(records.made, made, exactly_once=exactly_once)]
        outcome.records, outcome.repeated = records.count(), repeated + again

    def _records(self, topics: Topics, config: WorkerConfig, server: SqlServer) -> tuple[Records, dict[str, set[int]]]:
        names = [name for (name,) in server.query("SHOW TABLES LIKE 'made%%'", database=_DATABASE)]
        made = {name: {key for (key,) in server.query(f"SELECT id FROM {_DATABASE}.{name}")} for name in names}

        def read(topic: str) -> list[bytes | None]:
            name = topic if topic.startswith("outbox.event.") else config.topic(topic)
            return [seen.value for seen in topics.read(name)]

        kinds = [f"{writer}{kind}" for writer in range(_WRITERS) for kind in "ab"]
        return read_records(read, _DATABASE, self._scenario.transform, kinds, names), made

    def _keep_evidence(self, logs: Path, server: SqlServer, topics: Topics, config: WorkerConfig) -> None:
        """Keep the logs of the workers, the records, and the events of the binlog."""
        assert self._evidence is not None
        folder = self._evidence / f"{self._scenario.flavor}-{self._scenario.seed}"
        shutil.copytree(logs, folder, dirs_exist_ok=True)
        records, _ = self._records(topics, config, server)
        for table in ("accounts", "entries"):
            values = getattr(records, table)
            (folder / f"{table}.jsonl").write_bytes(b"\n".join(value or b"null" for value in values))
        with (folder / "binlog.txt").open("w") as text, server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SHOW BINARY LOGS")
            for file, *_ in cursor.fetchall():
                cursor.execute(f"SHOW BINLOG EVENTS IN '{file}'")
                text.writelines("\t".join(map(str, event)) + "\n" for event in cursor.fetchall())


def _wait_for(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds, or for `_START_S`: a worker need not start within that time."""
    end = time.monotonic() + _START_S
    while not condition() and time.monotonic() < end:
        time.sleep(0.1)


def _catch_up(config: WorkerConfig) -> None:
    """Run a last worker until it has read the whole binlog."""
    with Worker(config).streaming() as worker:
        idle = {"seconds": 0.0, "bytes": 0}
        eventually(lambda: worker.health()["lag"] == idle, f"the lag is zero; {worker.log}", _CATCH_UP_S)
        worker.stop()
