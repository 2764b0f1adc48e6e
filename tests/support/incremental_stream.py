"""A stream with incremental snapshots next to it, as the engine's reader runs them, and with crashes."""

from __future__ import annotations

import contextlib
import json
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rowtide.connector.config import Configuration
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.xa_reader import xa_reader
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.snapshot_requests import rows_request, snapshot_request, stop_request
from rowtide.connector.snapshot.incremental.reading.chunk_reader import ChunkReader, ReaderSettings
from rowtide.connector.snapshot.incremental.reading.watermarks import SignalRows
from rowtide.connector.snapshot.incremental.snapshots import IncrementalSnapshots
from rowtide.connector.snapshot.view.stream_order import has_passed, stream_position
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken
from rowtide.connector.source.search.binlog_search import BinlogSearch
from rowtide.connector.source.server_queries import end_of_binlog
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.history_reader import StoredHistory, read_history
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.support.mysql.live_database import configured, snapshot
from tests.support.received import received

if TYPE_CHECKING:
    from rowtide_stack import Database

__all__ = ["BesideStream"]


class BesideStream:
    """Runs a stream and incremental snapshots in this thread.

    Args:
        database: the database that is captured.
        properties: of the connector.
        chunk_size: rows of a chunk.
        threads: how many chunks are read at a time.
        target_s: how long a chunk should take.
        lag_s: how far the stream is behind the server.
        signal_rows: where windows are written.
        settings: of the pipeline.

    Attributes:
        config: the configuration.
        outputs: what a consumer has received.
        offset: the stored offset.
        snapshots: the incremental snapshots.
        broken: the number of times the stream broke.
    """

    def __init__(
        self,
        database: Database,
        properties: Mapping[str, str] | None = None,
        *,
        chunk_size: int = 10,
        threads: int = 1,
        target_s: float = 0.0,
        lag_s: float = 0.0,
        signal_rows: SignalRows | None = None,
        **settings: Any,
    ) -> None:
        self.config: Configuration = configured(database, {"snapshot.mode": "no_data", **(properties or {})})
        self.outputs: list[Output] = []
        self.broken = 0
        self._mariadb = self.config.flavor.value == "mariadb"
        self._settings = replace(pipeline_settings(self.config, "run"), **settings)
        self._reader_settings = ReaderSettings(threads, target_s, signal_rows, chunk_size)
        self._chunk_size = chunk_size
        self._lag_s = lag_s
        self._history = InMemorySchemaHistory()
        taken = snapshot(self.config)
        for output in taken.outputs():
            if isinstance(output, HistoryEntry):
                self._history.append(output.text)
        self.offset = taken.offset
        self.restart(taken.tables)

    def restart(self, tables: Tables | None = None) -> None:
        """Begin at the stored offset, as a new process does."""
        tables = self._recovered() if tables is None else tables
        self._tables = tables
        self._captured = CapturedTables(self._settings, tables, time.time_ns)
        database: DatabaseConfig = self.config.database
        self.snapshots = IncrementalSnapshots(
            self._settings,
            tables,
            ChunkReader(lambda: Session(database, mariadb=self._mariadb), self._reader_settings),
            self._chunk_size,
            time.time_ns,
        )
        self._captured.observer = self.snapshots
        self._attach(self.offset)

    def _recovered(self) -> Tables:
        kept = StoredHistory(self._history, self._settings.topic_prefix, None)
        position = BinlogPosition.from_map(replace(self.offset, prepared=()).to_map())
        return read_history(kept, self._tables.server, position).tables()

    def _attach(self, start: SourceOffset) -> None:
        search = BinlogSearch(self.config.database, mariadb=self._mariadb)
        read_xa = xa_reader(self._settings, self._tables, time.time_ns, search.packets)
        self.pipeline = Pipeline(self._settings, self._tables, start, time.time_ns, self._captured, read_xa)
        self.snapshots.attach(self.pipeline)

    def execute(self, *tables: str, signal_id: str = "s1", **data: Any) -> None:
        """Start an incremental snapshot of tables, named by regular expressions."""
        signal = Signal(signal_id, "execute-snapshot", {"data-collections": list(tables), **data}, "in-process")
        self._signalled(self.snapshots.execute(snapshot_request(signal), self.pipeline.offset()))

    def reread(self, table: str, columns: Sequence[str], keys: Sequence[Sequence[str]]) -> None:
        """Read rows of a table again, named by their keys."""
        data = {"data-collection": table, "key-columns": [*columns], "keys": [[*key] for key in keys]}
        signal = Signal("reread", "rowtide-reread-rows", data, "in-process")
        self._signalled(self.snapshots.reread(rows_request(signal), self.pipeline.offset()))

    def stop(self, *tables: str) -> None:
        """Stop the snapshot of tables, or of all."""
        signal = Signal("stop", "stop-snapshot", {"data-collections": list(tables)} if tables else {}, "in-process")
        self._signalled(self.snapshots.stop(stop_request(signal), self.pipeline.offset()))

    def pause(self) -> None:
        """Pause the snapshot."""
        signal = Signal("pause", "pause-snapshot", {}, "in-process")
        self._signalled(self.snapshots.pause(signal, self.pipeline.offset()))

    def resume(self) -> None:
        """Resume the snapshot."""
        signal = Signal("resume", "resume-snapshot", {}, "in-process")
        self._signalled(self.snapshots.resume(signal, self.pipeline.offset()))

    def _signalled(self, outputs: Any) -> None:
        """Write the outputs of a signal, and store the position with what it has changed."""
        self._write(outputs)
        self._write([Batch("", -1, (), self.pipeline.offset(), 0, 0)])

    def run(self, until: Callable[[], bool], *, timeout_s: float = 300.0) -> None:
        """Stream until something is true. A broken connection is opened again."""
        limit = time.monotonic() + timeout_s
        while not until() or self.pipeline.progress.in_transaction:
            try:
                self._stream(until, limit)
            except StreamBroken:
                self.broken += 1
                self._attach(self.pipeline.offset())
            else:
                return

    def run_to_end(self) -> None:
        """Stream until no snapshot is left, and the stream has all changes."""
        self.run(lambda: not self.snapshots.active)
        with Session(self.config.database, mariadb=self._mariadb) as session:
            end = end_of_binlog(session)
        connector = self._settings.connector
        self.run(lambda: has_passed(stream_position(self.pipeline), end, connector))

    def crash(self, keep: int) -> None:
        """Lose what was emitted behind so many outputs, and go on from the last offset before."""
        self.snapshots.close()
        del self.outputs[keep:]
        self.offset = next((one.offset for one in reversed(self.outputs) if isinstance(one, Batch)), self.offset)
        self.restart()

    def close(self) -> None:
        """End the threads."""
        self.snapshots.close()

    def _stream(self, until: Callable[[], bool], limit: float) -> None:
        stream = BinlogStream(self.config.database, self.pipeline.offset(), mariadb=self._mariadb)
        if self.pipeline.decoder.format is not None:
            self._attach(self.pipeline.offset())
        with contextlib.closing(stream.events()) as pieces:
            for packets in self._delayed(pieces):
                for packet in packets:
                    self._write(received(self.pipeline, packet))
                    self._between(until)
                self._between(until)
                if until() and not self.pipeline.progress.in_transaction:
                    return
                assert time.monotonic() < limit, "the snapshot does not end"

    def _delayed(self, pieces: Iterable[list[bytes]]) -> Iterator[list[bytes]]:
        """What the server sends, later. The server is read without a pause: a slow reader would be behind ever more."""
        waiting: deque[tuple[float, list[bytes]]] = deque()
        for packets in pieces:
            now = time.monotonic()
            waiting.append((now + self._lag_s, packets))
            while waiting and waiting[0][0] <= now:
                yield waiting.popleft()[1]

    def _between(self, _until: Callable[[], bool]) -> None:
        if not self.pipeline.progress.in_transaction and self.snapshots.due:
            self._write(self.snapshots.run(self.pipeline))

    def _write(self, outputs: Any) -> None:
        for output in outputs:
            if isinstance(output, HistoryEntry):
                self._history.append(output.text)
            else:
                self.outputs.append(output)

    def notifications(self) -> list[dict[str, Any]]:
        """The notifications in the topic."""
        found = []
        for output in self.outputs:
            if isinstance(output, Batch) and output.topic == self._settings.notification_topic:
                found += [json.loads(value or b"{}") for _, value, _ in output.messages]
        return found
