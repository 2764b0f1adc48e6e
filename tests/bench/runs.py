"""The two kinds of runs: streaming a backlog, and a snapshot."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench.connectors import Connector
from tests.bench.load import AnyLoad
from tests.bench.measure import Figures, TopicWatch, Usage, cpu_seconds, peak_bytes, thread_seconds
from tests.support.mysql.binlog_readers import binlog_readers, end_binlog_readers

if TYPE_CHECKING:
    from rowtide_stack import MySQL

__all__ = ["prepare", "snapshot_run", "stream_run", "topics_of"]

_PATIENCE_S = 240.0


def topics_of(connector: Connector, schema: str, numbers: Mapping[str, int]) -> dict[str, int]:
    """Convert counts by table to counts by topic."""
    return {f"{connector.name}.{schema}.{table}": number for table, number in numbers.items()}


def prepare(connector: Connector, database: MySQL, folder: Path) -> None:
    """Run a connector until it has stored the table structures and an offset. All later changes are its backlog."""
    connector.start(folder)
    end = time.monotonic() + _PATIENCE_S
    while not binlog_readers(database):
        if not connector.alive() or time.monotonic() > end:
            raise RuntimeError(f"{connector.kind} does not stream; see {folder}")
        time.sleep(0.3)
    connector.pause()
    end_binlog_readers(database)


def stream_run(
    connector: Connector, schema: str, load: AnyLoad, watch: TopicWatch, servers: tuple[int, ...], folder: Path
) -> Figures:
    """Measure a prepared connector while it reads its backlog."""
    return _timed(connector, topics_of(connector, schema, load.messages), watch, servers, folder, "stream")


def snapshot_run(
    connector: Connector, schema: str, load: AnyLoad, watch: TopicWatch, servers: tuple[int, ...], folder: Path
) -> Figures:
    """Measure a new connector while it reads all tables."""
    return _timed(connector, topics_of(connector, schema, load.snapshot_rows), watch, servers, folder, "snapshot")


def _timed(
    connector: Connector,
    topics: dict[str, int],
    watch: TopicWatch,
    servers: tuple[int, ...],
    folder: Path,
    mode: str,
) -> Figures:
    begin = watch.counts(topics)
    end = {topic: begin[topic] + number for topic, number in topics.items()}
    usage = Usage(*servers)
    own = Usage(connector.pid) if connector.alive() else None
    connector.start(folder)
    if connector.exactly_once:
        end = watch.settled(end, connector.alive)
    else:
        watch.wait(end, connector.alive)
    threads = {} if own else thread_seconds(connector.pid)
    cpu = own.seconds if own else cpu_seconds(connector.pid)
    figures = Figures(
        f"{connector.kind} {mode}",
        sum(topics.values()),
        watch.seconds(begin, end),
        cpu,
        usage.seconds,
        peak_bytes(connector.pid),
        threads,
    )
    connector.pause()
    if connector.exactly_once and (found := watch.committed(begin, end)) != topics:
        raise RuntimeError(f"not as many records as changes: {found} instead of {topics}")
    return figures
