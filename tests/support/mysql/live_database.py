"""Snapshots and streams of a database on a real server, and the tables that result from their records."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.xa_reader import xa_reader
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot import decide
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.search.binlog_search import BinlogSearch
from rowtide.schema_history.catalog.tables import Tables
from tests.support.connector_properties import CONNECTORS, JSON_CONVERTER, address
from tests.support.received import received
from tests.support.recordings.golden import Written, written

if TYPE_CHECKING:
    from rowtide_stack import Database, SqlServer

__all__ = ["Rows", "apply", "configured", "markers", "offsets", "purge_binlogs", "snapshot", "streamed", "user"]

Rows = dict[tuple[str, str], Any]
"""Rows by table and key, as JSON."""


def configured(database: Database, properties: Mapping[str, str] | None = None) -> Configuration:
    """A configuration that captures one database."""
    base = {
        "name": "live",
        "connector.class": CONNECTORS[database.server.name],
        "topic.prefix": "live",
        "database.server.id": "184055",
        "bootstrap.servers": "127.0.0.1:1",
        "schema.history.internal.kafka.topic": "history",
        "schema.history.internal.store.only.captured.databases.ddl": "true",
        "database.include.list": database.name,
        "key.converter": JSON_CONVERTER,
        "key.converter.schemas.enable": "false",
        "value.converter": JSON_CONVERTER,
        "value.converter.schemas.enable": "false",
    }
    return from_properties({**base, **address(database.server), **(properties or {})})


def purge_binlogs(server: SqlServer) -> None:
    """Purge all binlog files but a new, empty one.

    A server silently keeps a file that is still in use: MariaDB until its storage engine has recorded, in the
    background, that crash recovery no longer needs the file, and both servers while a replica reads it.
    """
    server.execute("FLUSH BINARY LOGS")
    newest = server.query("SHOW BINARY LOGS")[-1][0]
    for _ in range(100):
        server.execute(f"PURGE BINARY LOGS TO '{newest}'")
        if server.query("SHOW BINARY LOGS")[0][0] == newest:
            return
        time.sleep(0.1)
    raise AssertionError(f"the server keeps {server.query('SHOW BINARY LOGS')!r}")


def snapshot(config: Configuration, offset: SourceOffset | None = None) -> Snapshot:
    """A snapshot that is taken when its outputs are consumed."""
    mode, flags = config.snapshot.mode, config.snapshot.flags
    decision = decide(mode, offset, history_exists=offset is not None, position=None, flags=flags)
    return Snapshot(config.database, pipeline_settings(config, "run"), config.snapshot, decision, time.time_ns)


@dataclass(frozen=True)
class Step:
    """The outputs of an event, and the position after it."""

    outputs: list[Output]
    file: str
    pos: int


def streamed(
    config: Configuration,
    tables: Tables,
    start: SourceOffset,
    end: tuple[str, int],
    current: CurrentStructure | None = None,
) -> Iterator[Step]:
    """Read the binlog from an offset to a position; ``current`` looks up what the binlog does not say."""
    settings, mariadb = pipeline_settings(config, "run"), config.flavor.value == "mariadb"
    read_xa = xa_reader(settings, tables, time.time_ns, BinlogSearch(config.database, mariadb=mariadb).packets)
    captured = CapturedTables(settings, tables, time.time_ns, current)
    pipeline = Pipeline(settings, tables, start, time.time_ns, captured, read_xa=read_xa)
    stream = BinlogStream(config.database, start, mariadb=mariadb)
    with contextlib.closing(stream.events()) as pieces:
        for packets in pieces:
            for packet in packets:
                outputs = received(pipeline, packet)
                yield Step(outputs, pipeline.progress.file, pipeline.progress.end)
            if (pipeline.progress.file, pipeline.progress.end) >= end:
                return


def apply(rows: Rows, outputs: Iterable[Output]) -> None:
    """Apply records to rows."""
    for message in written(outputs):
        if message.value is None or message.key is None or '"op":"' not in message.value:
            continue
        value = json.loads(message.value)
        place = (message.topic, message.key)
        if value["op"] == "d":
            rows.pop(place, None)
        else:
            rows[place] = value["after"]


def markers(outputs: Iterable[Output]) -> list[tuple[str, Any, str]]:
    """Table, key or row, and snapshot marker of each snapshot record."""
    return [_marked(message) for message in written(outputs) if '"op":"r"' in str(message.value)]


def _marked(message: Written) -> tuple[str, Any, str]:
    value = json.loads(message.value or "")
    row = value["after"]
    what = row if message.key is None else next(iter(json.loads(message.key).values()))
    return value["source"]["table"], what, value["source"]["snapshot"]


def offsets(outputs: Iterable[Output]) -> list[SourceOffset]:
    """The offsets of batches."""
    return [output.offset for output in outputs if isinstance(output, Batch)]


@contextlib.contextmanager
def user(database: Database, *grants: str) -> Iterator[dict[str, str]]:
    """Create an account that may read rows and the binlog, with further privileges; returns its properties."""
    server = database.server
    more = ("BINLOG MONITOR",) if server.name == "mariadb" else ("REPLICATION CLIENT", "XA_RECOVER_ADMIN")
    server.execute("CREATE USER limited IDENTIFIED BY 'pw'")
    try:
        server.execute(f"GRANT {', '.join(('SELECT', 'REPLICATION SLAVE', *more, *grants))} ON *.* TO limited")
        yield {"database.user": "limited", "database.password": "pw"}
    finally:
        server.execute("DROP USER limited")
