"""A worker that is killed during its initial snapshot reads the missing rows, while rows change all the time."""

from __future__ import annotations

import itertools
import json
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import pymysql
import pytest
from confluent_kafka import Consumer, TopicPartition

from tests.support.processes.worker_process import SOON, STREAMING, Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.timeout(3600)]

ROWS, KILLS = 60_000, 3
MANY_ROWS, MANY_KILLS = 5_000_000, 20
TAKING = "the position of the snapshot is"
CONTINUES, COMPLETE = "continues after its last chunk", "the initial snapshot is complete"
EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


class Reader:
    """Reads a topic, a piece at each call.

    Attributes:
        next: the offset of the next record.
    """

    def __init__(self, kafka: Kafka, topic: str, begin: int = 0) -> None:
        self.next = begin
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": "tests",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
                "isolation.level": "read_committed",
                "allow.auto.create.topics": False,
            }
        )
        self._topic = topic
        self._ended = False

    def __enter__(self) -> Self:
        eventually(lambda: self._consumer.list_topics(self._topic, 10).topics[self._topic].partitions, self._topic)
        self._consumer.assign([TopicPartition(self._topic, 0, self.next)])
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def new(self) -> Iterator[tuple[bytes | None, bytes | None]]:
        """Key and value of the records after those of the last call."""
        while (messages := self._consumer.consume(5_000, 0.1)) or not self._ended:
            for message in messages:
                self._ended = message.error() is not None
                if not self._ended:
                    self.next = message.offset() + 1
                    yield message.key(), message.value()


class Tables:
    """Tables that are read while their rows change: two with keys, and a small one without."""

    KEYS: ClassVar = {"t": "id", "names": "a, b"}

    def __init__(self, database: Database, rows: int) -> None:
        self.database = database
        self.rows = rows
        database.execute(
            "CREATE TABLE t (id INT PRIMARY KEY, ver BIGINT, pad VARCHAR(60))",
            "CREATE TABLE names (a VARCHAR(20), b INT, ver BIGINT, PRIMARY KEY (a, b DESC))",
            "CREATE TABLE keyless (v INT)",
            "INSERT INTO keyless VALUES (1), (1), (2)",
            "INSERT INTO t VALUES (0, 0, REPEAT('x', 50))",
        )
        count = 1
        while count < rows:
            more = min(count, rows - count)
            database.execute(f"INSERT INTO t SELECT id + {count}, id + {count}, pad FROM t WHERE id < {more}")
            count += more
        database.execute(f"INSERT INTO names SELECT CONCAT('n', id % 100), id, id FROM t WHERE id < {rows // 10}")

    @contextmanager
    def load(self, pause_s: float) -> Iterator[None]:
        """Change rows while the block runs; each change of a row has a larger ``ver``."""
        stop = threading.Event()
        threads = [threading.Thread(target=self._change, args=(stop, name, pause_s)) for name in self.KEYS]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            stop.set()
            for thread in threads:
                thread.join()

    def _change(self, stop: threading.Event, table: str, pause_s: float) -> None:
        chance, vers = random.Random(table), itertools.count(self.rows)
        with self.database.server.connect(self.database.name) as connection, connection.cursor() as cursor:
            while not stop.wait(pause_s):
                ver, where, other = next(vers), self._key(table, chance), self._key(table, chance)
                changes = (
                    f"UPDATE {table} SET ver = {ver} WHERE ({self.KEYS[table]}) = ({where})",
                    f"DELETE FROM {table} WHERE ({self.KEYS[table]}) = ({where})",
                    f"REPLACE INTO {table} ({self.KEYS[table]}, ver) VALUES ({where}, {ver})",
                    self._moved(table, where, other, ver),
                )
                with suppress(pymysql.err.IntegrityError):  # the new key exists
                    cursor.execute(chance.choice(changes))
                connection.commit()

    def _key(self, table: str, chance: random.Random) -> str:
        number = chance.randrange(self.rows + 1000)
        return str(number) if table == "t" else f"'n{number % 100}', {number // 10}"

    def _moved(self, table: str, where: str, other: str, ver: int) -> str:
        names, values = self.KEYS[table].split(", "), other.split(", ")
        changed = ", ".join(f"{name} = {value}" for name, value in zip(names, values, strict=True))
        return f"UPDATE {table} SET {changed}, ver = {ver} WHERE ({self.KEYS[table]}) = ({where})"

    def check(self, kafka: Kafka, config: WorkerConfig, kills: int) -> int:
        """A consumer has the rows of the tables, and no row ever went back; returns how often rows were read."""
        total = 0
        for table, names in self.KEYS.items():
            rows: dict[bytes, int] = {}
            newest: dict[bytes, int] = {}
            reads: Counter[bytes] = Counter()
            with Reader(kafka, config.topic(f"{self.database.name}.{table}")) as topic:
                for key, value in topic.new():
                    if value is None or key is None:
                        continue
                    found = json.loads(value)
                    ver = (found["after"] or found["before"])["ver"]
                    assert ver >= newest.get(key, -1), (table, key, value)
                    newest[key] = ver
                    reads[key] += found["op"] == "r"
                    if found["after"] is None:
                        rows.pop(key, None)  # the stream also has rows that were never read
                    else:
                        rows[key] = ver
            wanted = self.database.query(f"SELECT {names}, ver FROM {table}")
            assert len(rows) == len(wanted)
            parts = names.split(", ")
            for *values, ver in wanted:
                key = json.dumps(dict(zip(parts, values, strict=True)), separators=(",", ":")).encode()
                assert rows[key] == ver, (table, key)
            assert max(reads.values()) <= 1 + kills
            total += reads.total()
        return total


class Killed:
    """Runs a worker again and again until its snapshot is complete."""

    def __init__(self, tables: Tables, kafka: Kafka, folder: Path, more: dict[str, str]) -> None:
        name = tables.database.name
        properties = {
            "table.include.list": ", ".join(f"{name}.{table}" for table in (*tables.KEYS, "keyless")),
            "rowtide.snapshot.resumable": "true",
            "offset.flush.interval.ms": "100",
            **more,
        }
        self.config = WorkerConfig(folder, tables.database.server, kafka.bootstrap, properties)
        self.stored: dict[str, Any] = {}
        self.states: list[str | None] = []
        self._kafka = kafka
        self._next = 0

    def run_until(
        self, worker: Worker, until: Callable[[], bool], *, seconds: float = SOON, slices: bool = True
    ) -> None:
        """Let the worker run until the stored position is as it should be.

        Args:
            worker: the worker.
            until: whether the stored position is as it should be.
            seconds: how long to wait for it.
            slices: stop it in between, so that it does not get far.
        """
        end = time.monotonic() + seconds
        if slices:
            worker.signal(signal.SIGSTOP)
        with self.offsets(self._next) as offsets:
            while not self.is_stored(offsets, until):
                assert time.monotonic() < end, worker.log
                worker.signal(signal.SIGCONT)
                time.sleep(0.05)
                if slices:
                    worker.signal(signal.SIGSTOP)
            self._next = offsets.next

    def is_stored(self, offsets: Reader, until: Callable[[], bool] = lambda: False) -> bool:
        """Read the latest stored positions, up to one that is as it should be."""
        for _, value in offsets.new():
            self.stored = json.loads(value or b"{}")
            self.states.append(self.stored.get("snapshot"))
            if until():
                return True
        return False

    def offsets(self, begin: int = 0) -> Reader:
        """The stored positions."""
        return Reader(self._kafka, self.config.properties["offset.storage.topic"], begin)

    @property
    def rows(self) -> int:
        """The rows of table ``t`` that are read, by the stored position."""
        return sum(table.get("rows", 0) for table in self.left if table["name"].endswith(".t"))

    @property
    def left(self) -> list[dict[str, Any]]:
        """What is left, by the stored position."""
        return json.loads(self.stored.get("rowtide_snapshot_state", '{"tables": []}'))["tables"]  # type: ignore[no-any-return]


WAYS = [
    ("mysql", {}, True),
    ("mysql", {"snapshot.max.threads": "3"}, False),
    ("mariadb", {}, False),
    ("mariadb", {"snapshot.max.threads": "3"}, True),
]


@pytest.fixture
def database(request: pytest.FixtureRequest, flavor: str) -> Database:
    """A database of the server."""
    return request.getfixturevalue(f"{flavor}_db")  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("flavor", "more", "exactly_once"), [WAYS[0], pytest.param(*WAYS[2], marks=pytest.mark.nightly)]
)  # several connections are too fast for so few rows
def test_a_killed_worker_reads_the_missing_rows(
    database: Database, kafka: Kafka, tmp_path: Path, more: dict[str, str], *, exactly_once: bool
) -> None:
    tables = Tables(database, ROWS)
    more = {**more, **(EXACTLY_ONCE if exactly_once else {}), "incremental.snapshot.chunk.size": "1000"}
    killed = Killed(tables, kafka, tmp_path, more)
    with tables.load(0.005):
        with Worker(killed.config, "--no-web").wait_for_log(TAKING) as worker:
            killed.run_until(worker, lambda: any("lower" in table for table in killed.left))
            assert STREAMING not in worker.log
        assert killed.stored["snapshot"] == "INITIAL"
        for _ in range(KILLS - 1):
            before = killed.left
            with Worker(killed.config, "--no-web").wait_for_log(CONTINUES) as worker:
                killed.run_until(worker, lambda before=before: killed.left != before)  # type: ignore[misc]
            assert killed.left, "it is killed before all is read"
        finish(killed)
    drain(killed)
    reads = tables.check(kafka, killed.config, KILLS)
    assert reads < 1.7 * ROWS, "most rows are read once"
    with killed.offsets() as offsets:
        killed.states.clear()
        killed.is_stored(offsets)
    last = max(place for place, state in enumerate(killed.states) if state)
    assert set(killed.states[: last + 1]) == {"INITIAL"}, "Debezium takes the snapshot again until it is complete"
    assert len(killed.states) > last + 1


@pytest.mark.nightly
@pytest.mark.parametrize(("flavor", "more", "exactly_once"), WAYS)
def test_a_worker_is_killed_many_times_during_one_large_snapshot(
    database: Database, kafka: Kafka, tmp_path: Path, more: dict[str, str], *, exactly_once: bool
) -> None:
    tables = Tables(database, MANY_ROWS)
    killed = Killed(tables, kafka, tmp_path, {**more, **(EXACTLY_ONCE if exactly_once else {})})
    chance = random.Random(20)
    with tables.load(0.002):
        for number in range(1, MANY_KILLS + 1):
            least = MANY_ROWS * number // (MANY_KILLS + 2)
            with Worker(killed.config, "--no-web").wait_for_log(TAKING if number == 1 else CONTINUES) as worker:
                killed.run_until(worker, lambda least=least: killed.rows >= least, seconds=600, slices=False)  # type: ignore[misc]
                time.sleep(chance.random() / 2)
            assert killed.left, "it is killed before all is read"
        finish(killed, 1800)
    drain(killed)
    reads = tables.check(kafka, killed.config, MANY_KILLS)
    print(f"{reads} rows read of {MANY_ROWS + MANY_ROWS // 10}, killed {MANY_KILLS} times")
    assert reads < 1.5 * MANY_ROWS, "most rows are read once"


def finish(killed: Killed, seconds: float = SOON) -> None:
    """Let a worker read what is left."""
    with Worker(killed.config, "--no-web").wait_for_log(CONTINUES) as worker:
        eventually(lambda: COMPLETE in worker.log or not worker.running, "the snapshot is complete", seconds)
        worker.stop()


def drain(killed: Killed) -> None:
    """Let a worker deliver all changes."""
    with Worker(killed.config).streaming() as worker:
        eventually(lambda: worker.health()["lag"] == {"seconds": 0.0, "bytes": 0}, "everything is read", 600)
        assert CONTINUES not in worker.stop()
