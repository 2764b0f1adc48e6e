"""A round: creates tables and rows, runs both connectors, executes statements, and collects the messages of both."""

from __future__ import annotations

import contextlib
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pymysql

from tests.parity.changes import Changes
from tests.parity.compare import Message
from tests.parity.options import choose
from tests.parity.sides import Debezium, Records, Rowtide
from tests.parity.values import Column
from tests.support.connector_properties import connector_properties, history_topic
from tests.support.kafka.connect import KafkaConnect
from tests.support.mysql.binlog_readers import binlog_readers, end_binlog_readers

if TYPE_CHECKING:
    from rowtide_stack import Kafka, SqlServer

__all__ = ["RoundResult", "Script", "Statement", "run_round"]

_PATIENCE_S = 60.0
_END = "parity-end"
_LAST = (f"INSERT INTO zz_end VALUES (1, '{_END}')", f"UPDATE zz_end SET v = '{_END}!'", "DELETE FROM zz_end")
_QUIET_S = 0.6


@dataclass(frozen=True, slots=True)
class Statement:
    """An executed statement.

    Attributes:
        text: its text.
        file: the binlog file after it.
        pos: the position after it.
        error: the error of the server, if it rejected the statement.
    """

    text: str
    file: str = ""
    pos: int = 0
    error: str = ""


@dataclass(slots=True)
class RoundResult:
    """The result of a round.

    Attributes:
        seed: the seed that reproduces it.
        options: the configuration.
        setup: the statements before the snapshot.
        stream: the statements after the snapshot.
        records: the messages of Debezium and of rowtide, by topic.
        seconds: the duration of each part.
        stopped: the errors with which Debezium and rowtide stopped, if they did.
        types: the last known type of each column.
        hashed: tables of MariaDB that have had a unique key of long columns.
    """

    seed: int
    options: dict[str, str]
    setup: list[Statement] = field(default_factory=list)
    stream: list[Statement] = field(default_factory=list)
    records: tuple[dict[str, list[Message]], dict[str, list[Message]]] = ({}, {})
    seconds: dict[str, float] = field(default_factory=dict)
    stopped: tuple[str | None, str | None] = (None, None)
    types: dict[tuple[str, str], str] = field(default_factory=dict)
    hashed: set[str] = field(default_factory=set)


class Script:
    """Executes statements one by one, and records their results."""

    def __init__(self, server: SqlServer, database: str) -> None:
        self._server = server
        self._database = database
        self._place = "SHOW MASTER STATUS" if server.name == "mariadb" else "SHOW BINARY LOG STATUS"
        self.types: dict[tuple[str, str], str] = {}
        self.hashed: set[str] = set()
        self._watch = server.connect()
        self._connection = self._connect()
        self._known: dict[str, list[Column]] | None = None

    def _connect(self) -> Any:
        connection = self._server.connect(self._database)
        with connection.cursor() as cursor:
            cursor.execute("SET innodb_lock_wait_timeout = 2, lock_wait_timeout = 3")
        return connection

    def close(self) -> None:
        """Close the connection."""
        self._watch.close()
        self._connection.close()

    def run(self, text: str) -> Statement:
        """Execute a statement; an error is recorded."""
        error = ""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(text)
        except pymysql.err.MySQLError as refused:
            error = str(refused)
            if text.startswith("XA") or not self._connection.open:
                self._connection.close()
                self._connection = self._connect()
                self._end_prepared()
        if re.match(r"\W*(CREATE|ALTER|DROP|RENAME)", text, re.IGNORECASE):
            self._known = None
        file, pos = self._query(self._place)[0][:2]
        return Statement(text, str(file), int(pos), error)

    def tables(self) -> Mapping[str, list[Column]]:
        """The current tables."""
        if self._known is None:
            self._known = self._structure()
        return self._known

    def _structure(self) -> dict[str, list[Column]]:
        srid = "srs_id" if self._server.name == "mysql" else "NULL"
        rows = self._query(
            "SELECT c.table_name, c.column_name, c.column_type, c.is_nullable, c.character_set_name, c.extra, "
            f"c.column_default, {srid} FROM information_schema.columns c JOIN information_schema.tables t "
            "USING (table_schema, table_name) WHERE table_schema = %s AND table_type = 'BASE TABLE' "
            "ORDER BY c.table_name, c.ordinal_position",
            (self._database,),
        )
        hashed = "SELECT table_name FROM information_schema.statistics WHERE table_schema = %s AND index_type = 'HASH'"
        self.hashed.update(str(table) for (table,) in self._query(hashed, (self._database,)))
        found: dict[str, list[Column]] = {}
        for table, name, kind, nullable, charset, extra, default, place in rows:
            text = kind.decode() if isinstance(kind, bytes) else str(kind)
            self.types[str(table), str(name)] = f"{text} {'NULL' if nullable == 'YES' else 'NOT NULL'} {charset or ''}"
            if table != "zz_end":
                column = Column(
                    name=str(name),
                    type=text,
                    nullable=nullable == "YES",
                    charset=charset,
                    generated="GENERATED" in extra and "DEFAULT_GENERATED" not in extra,
                    counts="auto_increment" in extra,
                    default=nullable == "YES" or default is not None or "auto_increment" in extra,
                    srid=place,
                )
                found.setdefault(str(table), []).append(column)
        return found

    def _end_prepared(self) -> None:
        for row in self._query("XA RECOVER"):
            with contextlib.suppress(pymysql.err.MySQLError):
                self._query(f"XA COMMIT '{row[3][: row[1]]}','{row[3][row[1] :]}',{row[0]}")

    def _query(self, text: str, values: object = None) -> Any:
        with self._watch.cursor() as cursor:
            cursor.execute(text, values)
            return cursor.fetchall()


def run_round(
    seed: int,
    server: SqlServer,
    kafka: Kafka,
    worker: KafkaConnect,
    folder: Path,
    options: Mapping[str, str] | None = None,
    statements: int = 120,
) -> RoundResult:
    """Run a round.

    Args:
        seed: determines all random choices.
        server: the server of both connectors; nothing else may read its binlog.
        kafka: the broker of both connectors.
        worker: the worker that runs Debezium.
        folder: the folder of rowtide's files.
        options: the configuration; random by default.
        statements: the number of statements, or of groups of statements.
    """
    began = [time.monotonic()]

    def done(part: str) -> None:
        began.append(time.monotonic())
        result.seconds[part] = round(began[-1] - began[-2], 1)

    rng = random.Random(seed)
    mariadb = server.name == "mariadb"
    chosen = choose(random.Random(rng.getrandbits(32)), mariadb=mariadb)
    result = RoundResult(seed, dict(options) if options is not None else chosen)
    number = f"{seed % 10**8:08}"
    database, names = f"par{number}", (f"deb{number}", f"row{number}")
    _globals(server, rng, mariadb=mariadb)
    server.execute(f"CREATE DATABASE {database}", f"CREATE DATABASE {database}x")
    server.execute(f"CREATE TABLE {database}x.o1 (id INT AUTO_INCREMENT PRIMARY KEY, v VARCHAR(10))")
    script, records = Script(server, database), Records(kafka.bootstrap, names)
    # Of a table that comes from outside then only rowtide finds out the structure.
    outside = "schema.history.internal.store.only.captured.tables.ddl" not in result.options
    changes = Changes(rng, database, mariadb=mariadb, outside=outside)
    try:
        _set_up(result, script, changes, rng)
        done("set up")
        own = [
            connector_properties(name, server, database, history_topic(kafka.bootstrap, f"{name}-history"))
            | result.options
            for name in names
        ]
        sides = Debezium(worker, names[0], own[0]), Rowtide(names[1], own[1], kafka.bootstrap)
        sides[1].start(folder)
        try:
            result.stopped = _until_streaming(server, sides)
            done("start")
            if result.stopped == (None, None):
                for _ in range(statements):
                    result.stream += [script.run(text) for text in changes.next(script.tables())]
                result.stream.append(script.run("ROLLBACK"))
            result.stream += [script.run(text) for text in _LAST]  # one of them is not skipped
            done("statements")
            result.stopped = _until_end(records, sides)
            done("end")
        finally:
            for side in sides:
                side.stop()
            records.read(0.3)
            done("stop")
    finally:
        script.close()
        records.close()
        _forget(server, database)
    done("forget")
    result.records, result.types, result.hashed = records.of, script.types, script.hashed
    return result


def _globals(server: SqlServer, rng: random.Random, *, mariadb: bool) -> None:
    server.execute(f"SET GLOBAL binlog_row_metadata = {rng.choice(('MINIMAL', 'FULL'))!r}")
    if not mariadb:
        server.execute(f"SET GLOBAL binlog_rows_query_log_events = {rng.choice((0, 1, 1))}")


def _set_up(result: RoundResult, script: Script, changes: Changes, rng: random.Random) -> None:
    result.setup.append(script.run("CREATE TABLE zz_end (id INT PRIMARY KEY, v VARCHAR(20))"))
    result.setup += [script.run(text) for text in changes.setup(rng.choice((1, 3, 5, 7)))]
    result.setup += [script.run(text) for text in changes.filling(script.tables())]


def _states(sides: tuple[Debezium, Rowtide]) -> tuple[str | None, str | None]:
    return sides[0].failed(), sides[1].failed()


def _until_streaming(server: SqlServer, sides: tuple[Debezium, Rowtide]) -> tuple[str | None, str | None]:
    end = time.monotonic() + _PATIENCE_S
    stopped = _states(sides)
    while len(binlog_readers(server)) < stopped.count(None):
        if time.monotonic() > end:
            return "not streaming in time", "not streaming in time"
        time.sleep(0.2)
        stopped = _states(sides)
    return stopped


def _until_end(records: Records, sides: tuple[Debezium, Rowtide]) -> tuple[str | None, str | None]:
    end = time.monotonic() + _PATIENCE_S
    stopped = _states(sides)
    while True:
        records.read(_QUIET_S / 2)
        seen = records.count(_END)
        missing = [side for side in (0, 1) if not seen[side] and not stopped[side]]
        if not missing:
            break
        if time.monotonic() > end:
            late = "the last row does not come"
            return (stopped[0] or (late if 0 in missing else None), stopped[1] or (late if 1 in missing else None))
        stopped = _states(sides)
    while records.read(_QUIET_S):
        pass
    return stopped


def _forget(server: SqlServer, database: str) -> None:
    end_binlog_readers(server)
    server.execute(f"DROP DATABASE IF EXISTS {database}", f"DROP DATABASE IF EXISTS {database}x")
