"""Damages of a source and its topics, which ``rowtide verify`` must find and mend while other rows change."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from click.testing import CliRunner, Result
from confluent_kafka import Producer

from rowtide.cli import main
from tests.support.processes.worker_process import Worker, WorkerConfig, eventually

if TYPE_CHECKING:
    from rowtide_stack import Database

    from tests.support.kafka.topic_tools import Seen, Topics

ROWS = 40
"""Rows that damages choose from; the load changes others."""
MORE = {"offset.flush.interval.ms": "200"}
KINDS = (
    "lost", "extra", "stale", "bit", "typed", "moved", "deleted", "unsent", "doubled", "missing", "truncated",
)  # fmt: skip
"""The damages: methods of :class:`Damages`."""
KEYED = tuple(name for name in KINDS if name not in ("doubled", "missing"))
"""Those of tables with a key, which can be repaired."""
TABLES = (
    "CREATE TABLE orders (id BIGINT UNSIGNED PRIMARY KEY, n INT, price DECIMAL(10,2), note VARCHAR(40), doc JSON)",
    """CREATE TABLE parts (
        code VARCHAR(20) COLLATE utf8mb4_general_ci, made DATE, n INT, note VARBINARY(20), PRIMARY KEY (code, made)
    )""",
    "CREATE TABLE visits (at DATETIME(3), n INT, note TEXT)",
    "CREATE TABLE flags (id INT PRIMARY KEY)",
)


def fill(database: Database) -> None:
    """Create tables: with a key of a number, of a text and a date, without a key, and with a single row."""
    database.execute(*TABLES, "INSERT INTO flags VALUES (1)")
    for i in range(ROWS):
        database.execute(*inserts(i))


def inserts(i: int) -> list[str]:
    return [
        f"INSERT INTO orders VALUES ({i}, {i * 7}, {i}.50, 'order {i}', '{{\"n\": {i}, \"x\": 1.0}}')",
        f"INSERT INTO parts VALUES ('part {i}', '2024-01-{i % 28 + 1:02}', {i * 7}, x'{i:06x}00')",
        f"INSERT INTO visits VALUES ('2024-01-01 00:00:00.{i:03}', {i}, 'visit {i}')",
    ]


@contextlib.contextmanager
def load(database: Database) -> Iterator[None]:
    """Change other rows of all tables without a pause."""
    ended = threading.Event()

    def work() -> None:
        for i in itertools.count(1000):
            if ended.is_set():
                return
            database.execute(
                *inserts(i % 20 + 1000 + i // 20 * 20),
                f"UPDATE orders SET n = n + 1, note = 'load {i}' WHERE id >= 1000 ORDER BY id DESC LIMIT 3",
                f"UPDATE parts SET code = 'PART X{i}' WHERE code = 'part {i}'",
                f"DELETE FROM orders WHERE id = {i - 5}",
                f"DELETE FROM visits WHERE n = {i - 3}",
            )

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def run(config: WorkerConfig, *options: str) -> Result:
    return CliRunner().invoke(main, ["verify", "--config", str(config.path), "--topics", "--timeout", "60", *options])


def report(config: WorkerConfig, *options: str) -> tuple[int, dict[str, Any]]:
    result = run(config, "--json", *options)
    assert result.exit_code in (0, 1, 2), result.output
    return result.exit_code, json.loads(result.output)


def found(document: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    """The table, the kind, the first value of the key and the columns of all differences."""
    return {
        (table["table"].partition(".")[2], one["kind"], next(iter(one["key"].values())), ",".join(one["columns"]))
        for table in document["tables"]
        for one in table["differences"]
    }


class Damages:
    """Damages of the source, which the binlog does not have, and of topics.

    Args:
        database: the source.
        topics: the topics.
        config: the configuration of the connector.
        chance: chooses.
    """

    def __init__(self, database: Database, topics: Topics, config: WorkerConfig, chance: random.Random) -> None:
        self.database, self.topics, self.config, self.chance = database, topics, config, chance
        self.doubles: list[str] = []
        self.undamaged = self._rows()
        self.kinds: dict[str, Callable[[], tuple[str, str, str, str]]] = {name: getattr(self, name) for name in KINDS}

    def _rows(self) -> list[int]:
        return self.chance.sample(range(ROWS), ROWS)

    def row(self) -> int:
        """A row that is not damaged."""
        return self.undamaged.pop()

    def unlogged(self, *statements: str) -> None:
        """Change the source without the binlog."""
        self.database.execute("SET SESSION sql_log_bin = 0", *statements, "SET SESSION sql_log_bin = 1")

    def records(self, table: str, i: int) -> list[Seen]:
        key = {"orders": f'{{"id":{i}}}', "parts": f'{{"code":"part {i}"'}[table].encode()
        topic = self.config.topic(f"{self.database.name}.{table}")
        return [one for one in self.topics.read(topic) if one.key and (one.key + b"}").startswith(key)]

    def send(self, table: str, key: bytes | None, value: bytes | None) -> None:
        producer = Producer({"bootstrap.servers": self.topics.client["bootstrap.servers"]})
        producer.produce(self.config.topic(f"{self.database.name}.{table}"), value, key)
        assert producer.flush(30) == 0

    def changed(self, table: str, i: int, change: Callable[[dict[str, Any]], None]) -> None:
        """Send the last record of a row again, with a change."""
        last = [one for one in self.records(table, i) if one.value is not None][-1]
        assert last.value is not None
        document = json.loads(last.value)
        change(document)
        self.send(table, last.key, json.dumps(document).encode())

    def lost(self) -> tuple[str, str, str, str]:
        i = 500 + self.row()
        self.unlogged(*inserts(i)[:1])
        return "orders", "lost", str(i), ""

    def extra(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.unlogged(f"DELETE FROM parts WHERE code = 'part {i}'")
        return "parts", "extra", f"part {i}", ""

    def unsent(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.unlogged(f"UPDATE parts SET n = -1, note = x'ff' WHERE code = 'part {i}'")
        return "parts", "stale", f"part {i}", "n,note"

    def stale(self) -> tuple[str, str, str, str]:
        i = self.row()
        old = self.records("orders", i)[-1]
        self.database.execute(f"UPDATE orders SET note = CONCAT(note, '!') WHERE id = {i}")
        eventually(lambda: self.records("orders", i)[-1].offset > old.offset, "the update")
        self.send("orders", old.key, old.value)
        return "orders", "stale", str(i), "note"

    def bit(self) -> tuple[str, str, str, str]:
        i, bit = self.row(), self.chance.randrange(31)

        def change(document: dict[str, Any]) -> None:
            document["after"]["n"] ^= 1 << bit

        self.changed("orders", i, change)
        return "orders", "stale", str(i), "n"

    def typed(self) -> tuple[str, str, str, str]:
        i = self.row()

        def change(document: dict[str, Any]) -> None:
            document["after"]["n"] = str(document["after"]["n"])

        self.changed("orders", i, change)
        return "orders", "stale", str(i), "n"

    def moved(self) -> tuple[str, str, str, str]:
        i, j = self.row(), self.row()
        last, other = self.records("orders", i)[-1], self.records("orders", j)[-1]
        self.send("orders", last.key, other.value)
        return "orders", "stale", str(i), "id,n,price,note,doc"

    def deleted(self) -> tuple[str, str, str, str]:
        i = self.row()
        self.send("orders", self.records("orders", i)[-1].key, None)
        return "orders", "lost", str(i), ""

    def doubled(self) -> tuple[str, str, str, str]:
        topic = self.config.topic(f"{self.database.name}.visits")
        i = self.row()
        record = next(one for one in self.topics.read(topic) if one.value and f'"visit {i}"'.encode() in one.value)
        self.send("visits", None, record.value)
        assert record.value is not None
        document = json.loads(record.value)
        self.doubles.append(json.dumps({**document, "op": "d", "before": document["after"], "after": None}))
        return "visits", "extra", self.visit(record), ""

    def missing(self) -> tuple[str, str, str, str]:
        i = 600 + self.row()
        topic = self.config.topic(f"{self.database.name}.visits")
        record = next(one for one in self.topics.read(topic) if one.value)
        assert record.value is not None
        at = json.loads(record.value)["after"]["at"]
        self.unlogged(f"INSERT INTO visits VALUES ('2024-01-01', {i}, 'x')")
        return "visits", "lost", str(at - at % 86_400_000), ""

    def truncated(self) -> tuple[str, str, str, str]:
        self.unlogged("TRUNCATE flags")
        return "flags", "extra", "1", ""

    @staticmethod
    def visit(record: Seen) -> str:
        assert record.value is not None
        return str(json.loads(record.value)["after"]["at"])

    def mend(self) -> None:
        """Write all rows again, so that both sides are the same."""
        self.database.execute("DELETE FROM orders WHERE id < 1000", "DELETE FROM parts WHERE code LIKE 'part %'")
        self.database.execute(*(one for i in range(ROWS) for one in inserts(i)[:2]))
        self.database.execute("INSERT IGNORE INTO flags VALUES (1)")
        self.unlogged("DELETE FROM visits WHERE n BETWEEN 600 AND 700")
        self.undamaged = self._rows()
        while self.doubles:
            self.send("visits", None, self.doubles.pop().encode())


def repaired(document: dict[str, Any]) -> set[tuple[str, str, str, str]]:
    """As :func:`found`, of what was repaired."""
    return found({"tables": [{**table, "differences": table["repaired"]} for table in document["tables"]]})


def campaign(
    database: Database, topics: Topics, folder: Path, rounds: int, chance: random.Random, tell: Callable[[str], None]
) -> tuple[int, list[str]]:
    """Damage rows at random under load, and repair them.

    Args:
        database: an empty database.
        topics: of the broker.
        folder: the folder of the worker's files.
        rounds: each has one to twelve damages.
        chance: chooses them.
        tell: called with a line for each damage.

    Returns:
        The number of damages, and the problems: damages that were not found or not mended, and what else was reported.
    """
    config = WorkerConfig(
        folder, database.server, topics.client["bootstrap.servers"], MORE | {"database.include.list": database.name}
    )
    fill(database)
    damages, number, problems = Damages(database, topics, config, chance), 0, list[str]()
    with Worker(config).streaming() as worker, load(database):
        repair = "--repair", "--channel", "http", "--web", f"http://127.0.0.1:{worker.port}"
        status, document = report(config)  # damages need the records of the snapshot
        if status:
            problems.append(f"not equal in the beginning: {json.dumps(document)}")
        for _ in range(rounds):
            names = chance.choices(KINDS, k=chance.randint(1, 12))
            if names.count("truncated") > 1:
                names = ["truncated", *(name for name in names if name != "truncated")]
            made = [(name, damages.kinds[name]()) for name in names]
            number += len(made)
            expected = {one for _, one in made}
            without_key = {one for one in expected if one[0] == "visits"}
            _, document = report(config, *repair)
            if found(document) | repaired(document) != expected or found(document) != without_key:
                problems.append(f"not as damaged: {sorted(expected)}, but {json.dumps(document)}")
            reported = found(document) | repaired(document)
            for name, one in sorted(made):
                tell(f"{name}: {', '.join(filter(None, one))}: {'found' if one in reported else 'NOT FOUND'}")
            _, document = report(config)
            if found(document) != without_key:
                problems.append(f"not repaired: {sorted(expected)}, but {json.dumps(document)}")
            damages.mend()
        status, document = report(config)
        if status:
            problems.append(f"not equal in the end: {json.dumps(document)}")
        worker.stop()
    return number, problems
