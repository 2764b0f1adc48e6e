"""Snapshots of the recorded cases on a real server, in a form that can be compared with the recordings."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.snapshot import decide
from rowtide.connector.snapshot.initial import Snapshot
from tests.support.connector_properties import address
from tests.support.recordings.golden import Case, Written, normalised, written

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

__all__ = [
    "SnapshotOutput",
    "address",
    "binlog_end",
    "configuration",
    "prepared",
    "recorded",
    "run",
    "taken",
    "unmarked",
    "wipe",
]

_BUILTIN = {"mysql", "information_schema", "performance_schema", "sys"}
_SOURCE_TIME = re.compile(
    r'"ts_ms":\d+,("snapshot":"[a-z_]+","db":"(?:[^"\\]|\\.)*","sequence":null),"ts_us":\d+,"ts_ns":\d+'
)
_ADDED = re.compile(r'"(__source_(?:ts_ms|pos|file))":(?:\d+|"binlog\.\d+")')
_PLACE = re.compile(r'"file":"binlog\.\d+","pos":\d+,"row":')
_EVENT = re.compile(
    r'(?<=;file:)binlog\.\d+;pos:\d+|(?<="time":)"[^"]*"(?=,"datacontenttype":)'
    r'|(?<="iodebezium)(?:ts[mun]s|file|pos)":"[^"]*"'
)
_POSITION = re.compile(r'"(ts_sec|ts_ms|pos)"( ?: ?)\d+|"(file|gtids)"( ?: ?)"[^"]*"')


@dataclass(frozen=True)
class SnapshotOutput:
    """The output of a snapshot, without values that depend on the server or the time.

    Attributes:
        topics: the messages by topic.
        history: the records of the schema history.
        running: the offset stored during the snapshot, if any.
        completed: the offset stored after the snapshot, if any.
    """

    topics: dict[str, list[Written]]
    history: list[str]
    running: str | None
    completed: str | None


def recorded(case: Case) -> SnapshotOutput:
    """The output of Debezium's initial snapshot."""
    topics: dict[str, list[Written]] = {}
    ended: set[str] = set()
    history, offsets = [], []
    for record in case.records:
        topic, value = record["topic"], record["value"]
        if topic == "history":
            text = _placeless(value)
            if '"snapshot" : "INITIAL"' in value and text not in history:  # a blocking snapshot repeats it
                history.append(text)
        elif topic == "connect-offsets":
            offsets.append(value)
        elif value is not None and not topic.startswith("__debezium"):
            message = Written(topic, record["key"], value, tuple((k, v) for k, v in record["headers"]))
            other = message.streamed or not _stands_at_start(case, value)
            message = _comparable(message)
            if other or ('"ddl":' in value and message in topics.get(topic, ())):
                ended.add(topic)  # by the stream, or by a later snapshot that repeats the structure
            if topic not in ended:
                topics.setdefault(topic, []).append(message)
            if '"aggregate_type":"' in value and '"type":"COMPLETED"' in value:
                ended.add(topic)  # further notifications are those of later snapshots
    running = next((offset for offset in offsets if '"snapshot"' in offset), None)
    completed = None if case.start is None else case.start.to_json()
    return SnapshotOutput(topics, history, running and _placeless(running), completed and _placeless(completed))


def _stands_at_start(case: Case, value: str) -> bool:
    place, start = _PLACE.search(value), case.start
    return place is None or start is None or place[0].startswith(f'"file":"{start.file}","pos":{start.pos},')


def taken(outputs: Iterable[Output]) -> SnapshotOutput:
    """The output of rowtide's snapshot."""
    outputs = list(outputs)
    topics: dict[str, list[Written]] = {}
    for message in written(outputs):
        topics.setdefault(message.topic, []).append(_comparable(message))
    history = [_placeless(output.text) for output in outputs if isinstance(output, HistoryEntry)]
    offsets = [_placeless(output.offset.to_json()) for output in outputs if isinstance(output, Batch)]
    assert len(set(offsets)) <= 2, "one offset until the snapshot is complete"
    assert offsets.count(offsets[-1]) == len(offsets) - offsets.index(offsets[-1]), "and from then on the other one"
    return SnapshotOutput(topics, history, offsets[0] if offsets[1:] else None, offsets[-1])


def unmarked(case: Case, topic: str) -> list[Written]:
    """The recorded messages of a topic, from both snapshot and stream."""
    found = [record for record in case.records if record["topic"] == topic]
    return [_comparable(Written(topic, r["key"], r["value"], tuple((k, v) for k, v in r["headers"]))) for r in found]


def _comparable(message: Written) -> Written:
    message = normalised(message)
    headers = tuple((name, text and _timeless(text)) for name, text in message.headers)
    return Written(message.topic, message.key, message.value and _timeless(message.value), headers)


def _timeless(text: str) -> str:
    """A value or header without the times and positions of its source."""
    text = _SOURCE_TIME.sub(r'"ts_ms":0,\1,"ts_us":0,"ts_ns":0', text)
    text = _PLACE.sub('"file":"binlog","pos":0,"row":', text)
    text = _ADDED.sub(r'"\1":0', text)
    return _EVENT.sub("", text)


def _placeless(text: str) -> str:
    """An offset or schema history record without position and time."""
    return _POSITION.sub(lambda found: f'"{found[1] or found[3]}"{found[2] or found[4]}0', text)


def configuration(properties: dict[str, str], server: SqlServer) -> Configuration:
    """The configuration with the address of another server."""
    return from_properties({**properties, **address(server)})


@contextmanager
def prepared(case: Case, server: SqlServer) -> Iterator[tuple[str, int]]:
    """Prepare a server with only the tables of the case's ``setup.sql``, and with the case's variables.

    Yields the position in the binlog before it.
    """
    from pymysql.constants import CLIENT

    wipe(server)
    back: list[str] = []
    # InnoDB's background thread would change the row estimates, and with them the order of the tables, at any moment.
    variables = {"innodb_stats_auto_recalc": 0, **case.description.get("globals", {})}
    for name, value in variables.items():
        values = value if isinstance(value, list) else [value]
        before = server.query(f"SELECT @@GLOBAL.{name}")[0][0]
        server.execute(*(f"SET GLOBAL {name} = {step!r}" for step in values))
        back = [*(f"SET GLOBAL {name} = {step!r}" for step in [*reversed(values[:-1]), before]), *back]
    begin = binlog_end(server)
    try:
        with server.connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection, connection.cursor() as cursor:
            cursor.execute((case.folder / "setup.sql").read_text())
            while cursor.nextset():
                pass
        yield begin
    finally:
        server.execute(*back)
        wipe(server)


def binlog_end(server: SqlServer) -> tuple[str, int]:
    """File and position at which the binlog ends."""
    row = server.query("SHOW MASTER STATUS" if server.name == "mariadb" else "SHOW BINARY LOG STATUS")[0]
    return str(row[0]), int(row[1])


def wipe(server: SqlServer) -> None:
    """Drop all databases but the system databases."""
    names = [str(row[0]) for row in server.query("SHOW DATABASES")]
    server.execute(*(f"DROP DATABASE `{name.replace('`', '``')}`" for name in names if name not in _BUILTIN))


def run(config: Configuration, clock: Callable[[], int] = time.time_ns) -> tuple[Snapshot, list[Output]]:
    """Take the first snapshot of a configuration."""
    decision = decide(config.snapshot.mode, None, history_exists=False, position=None, flags=config.snapshot.flags)
    snapshot = Snapshot(config.database, pipeline_settings(config, "run"), config.snapshot, decision, clock)
    return snapshot, list(snapshot.outputs())
