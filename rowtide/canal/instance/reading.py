"""Reads one server and passes its entries to an outlet; survives lost connections and errors.

::

    server ──► EntryReader ──► EntryPipeline ──► EntrySink ──► outlet: clients, or Kafka
                                     │
                                     └──► schema history

The structures of all tables are read once, when there is no schema history yet. From then on, the history has them at
every position.
"""

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Protocol

import pymysql

from rowtide.canal.configuration.model import InstanceSettings
from rowtide.canal.entries.entry import EntryHeader
from rowtide.canal.entries.pipeline import EntryBatch, EntryPipeline
from rowtide.canal.entries.sink import EntrySink, PassedEntry
from rowtide.canal.instance.client_positions import Resumption
from rowtide.canal.instance.positions import CanalPosition
from rowtide.canal.instance.snapshot import EntrySnapshot
from rowtide.canal.instance.source import CanalSource, find_start, located
from rowtide.canal.instance.storage import Storage
from rowtide.connector.backoff import Backoff
from rowtide.connector.delivery.event_store import StoreClosed
from rowtide.connector.engine.stream_attempts import ReaderStatus, StreamAttempts
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import HistoryEntry
from rowtide.connector.records.offset import SourceOffset, describe
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.connection.tls import TlsError
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.temporary_file import temporary_file
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.store.history_store import SchemaHistoryStore
from rowtide.topics.errors import TopicError

log = logging.getLogger(__name__)

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_PUT_BYTES = 1 << 20
"""Entries of events of about this many bytes, or those of one read, are handed to the outlet together."""
_EXPECTED = (
    ConnectorError,
    DatabaseUnreachableError,
    TlsError,
    SchemaHistoryError,
    TopicError,
    pymysql.MySQLError,
    OSError,
)
"""Errors whose message says what is wrong."""


class Outlet(Protocol):
    """Receives the entries of an instance. All methods except ``close`` are called from the reading thread.

    Attributes:
        sink: selects the entries.
    """

    sink: EntrySink

    def open(self, failed: Callable[[], None]) -> Resumption | None:
        """Prepare to take entries.

        Args:
            failed: called, from any thread, when no more entries can be taken.

        Returns:
            The position at which reading resumes; ``None`` if nothing was read before.
        """
        ...

    def begins(self, offset: SourceOffset, since_ms: int) -> None:
        """Store the position at which the instance begins.

        Args:
            offset: the resume position.
            since_ms: the time of the first entry that is wanted, in milliseconds since the epoch; 0 for all.
        """
        ...

    def snapshot_begins(self, stop: threading.Event) -> bool:
        """Wait until a client reads the initial snapshot, or ``stop`` is set.

        Returns:
            Whether an earlier snapshot was not read to its end.
        """
        ...

    def put(self, entries: Sequence[PassedEntry], resumption: Resumption | None) -> None:
        """Take entries, and wait for space.

        Args:
            entries: the entries, in order.
            resumption: where reading continues after them; ``None`` within a snapshot.

        Raises:
            StoreClosed: no more entries are taken.
        """
        ...

    def ended(self) -> None:
        """Called when reading has ended; it may begin again with ``open``.

        Raises:
            Exception: the reason why no more entries could be taken, if reading ended for it.
        """
        ...

    def close(self) -> None:
        """Refuse further entries: a waiting ``put`` raises ``StoreClosed``. Called from another thread."""
        ...


class ReadingThread:
    """Reads a server in a thread.

    Args:
        settings: of the instance.
        storage: of the schema history.
        outlet: receives the entries.
    """

    def __init__(self, settings: InstanceSettings, storage: Storage, outlet: Outlet) -> None:
        self._settings = settings
        self._storage = storage
        self._outlet = outlet
        self._error: str | None = None
        self._reader: EntryReader | None = None
        self._stop = threading.Event()
        self._failed = threading.Event()  # the outlet takes no more entries
        self._thread = threading.Thread(target=self._run, name=f"canal-{settings.destination}", daemon=True)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def stop(self, limit_s: float | None) -> bool:
        """Stop, and return whether the thread has ended within the given seconds (``None``: wait without limit)."""
        self._stop.set()
        if self._reader is not None:
            self._reader.stop()
        self._outlet.close()
        if self._thread.ident is not None:
            self._thread.join(limit_s)
        return not self._thread.is_alive()

    @property
    def status(self) -> ReaderStatus | None:
        """The state of the reader; ``None`` before the first one."""
        return None if self._reader is None else self._reader.status

    @property
    def error(self) -> str | None:
        """The reason why it currently does not read; ``None`` if it does."""
        status = self.status
        return None if status is not None and status.connected else self._error

    def _run(self) -> None:
        backoff = Backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S)
        while not self._stop.is_set():
            begin = time.monotonic()
            try:
                self._read()
            except Exception as error:  # whatever it is: otherwise the thread would end unnoticed
                if self._stop.is_set():
                    return
                if time.monotonic() - begin > _LONGEST_WAIT_S:
                    backoff.succeeded()
                self._error, wait = str(error), backoff.failed()
                trace = None if isinstance(error, _EXPECTED) else error
                name = self._settings.destination
                log.error("%s: %s; retrying in %.0f s", name, error, wait, exc_info=trace)  # noqa: TRY400
                self._stop.wait(wait)

    def _read(self) -> None:
        source = CanalSource.connect(self._settings)
        history = self._storage.history()
        try:
            self._failed.clear()
            resumption = self._outlet.open(self._interrupt)
            try:
                if resumption is None:
                    tables, resumption = self._first(source, history)
                else:
                    resumption = located(source, resumption)
                    tables, _ = source.tables(history, resumption.offset, self._stop)
                log.info("destination %s: reading from %s", self._settings.destination, describe(resumption.offset))
                self._reader = EntryReader(self._outlet, source, tables, resumption, history)
                if not self._stop.is_set() and not self._failed.is_set():
                    self._reader.run()
            finally:
                self._outlet.ended()
        finally:
            history.close()

    def _interrupt(self) -> None:
        self._failed.set()
        if self._reader is not None:
            self._reader.stop()

    def _first(self, source: CanalSource, history: SchemaHistoryStore) -> tuple[Tables, Resumption]:
        """Return the start position of an instance whose clients have no positions yet.

        A restart begins there until a client has one.
        """
        if self._settings.snapshot:
            return self._snapshot(source, history)
        wanted = find_start(source)
        tables, offset = source.tables(history, None if wanted is None else wanted.offset, self._stop)
        if self._stop.is_set():  # perhaps long ago: another instance may have the files now
            raise StoreClosed("the instance stops")
        self._outlet.begins(offset, 0 if wanted is None else wanted.since_ms)
        return tables, wanted or Resumption(offset)

    def _snapshot(self, source: CanalSource, history: SchemaHistoryStore) -> tuple[Tables, Resumption]:
        """Put the rows of all tables into the outlet; until all are acknowledged, a restart begins again."""
        name = self._settings.destination
        if self._outlet.snapshot_begins(self._stop):
            log.warning("destination %s: the initial snapshot was not completed; it starts over", name)
        if self._stop.is_set():
            raise StoreClosed("the instance stops")
        snapshot = EntrySnapshot(source, self._outlet.sink)
        with history.buffered():
            for output in snapshot.outputs():
                if self._stop.is_set() or self._failed.is_set():
                    raise StoreClosed("the instance stops")
                if isinstance(output, HistoryEntry):
                    history.append(output.text)
                else:
                    self._outlet.put(output, None)
        # The schema history is complete before anybody can resume after the snapshot.
        resumption = Resumption(snapshot.offset)
        self._outlet.put([snapshot.end()], resumption)
        log.info("destination %s: the initial snapshot is complete: %d rows", name, snapshot.rows)
        return snapshot.tables, resumption


class EntryReader:
    """Reads a server's stream into an outlet.

    Args:
        outlet: receives the entries.
        source: the server.
        tables: the structures at the start.
        resumption: the start.
        history: receives history entries.
    """

    def __init__(
        self, outlet: Outlet, source: CanalSource, tables: Tables, resumption: Resumption, history: SchemaHistoryStore
    ) -> None:
        self._attempts = StreamAttempts(source.config.failure, resumption.offset)
        self._outlet = outlet
        self._source = source
        self._tables = tables
        self._history = history
        self._done = resumption.done
        self._since_ms = resumption.since_ms
        self._after = resumption.offset

    @property
    def status(self) -> ReaderStatus:
        """The state of the reader."""
        return self._attempts.status

    def stop(self) -> None:
        """Stop within a tick of the stream; may be called from any thread."""
        self._attempts.stop()

    def run(self) -> None:
        """Read until :meth:`stop` is called, or the outlet has ended, which then reports the reason.

        Raises:
            ConnectorError: an event cannot be handled, the server refuses the stream, or retries are exhausted.
        """
        attempts = self._attempts
        with contextlib.suppress(StoreClosed):
            for start in attempts:
                pipeline, stream = self._pipeline(start), self._stream(start)
                with attempts.reading(pipeline), contextlib.closing(stream.events()) as pieces:
                    for packets in pieces:
                        attempts.received(packets)
                        self._write(packets, pipeline)
                        attempts.written(pipeline, stream)
                        if attempts.stopped:
                            return

    def _stream(self, start: SourceOffset) -> BinlogStream:
        config, mariadb = self._source.config, self._source.mariadb
        checked = config.capture.gtid_sources if self._done is None else None
        return BinlogStream(config.database, start, mariadb=mariadb, send_annotations=True, checked_sources=checked)

    def _pipeline(self, start: SourceOffset) -> EntryPipeline:
        source = self._source
        return EntryPipeline(
            source.pipeline_settings,
            self._tables,
            start,
            time.time_ns,
            gtids=source.settings.gtids,
            current=CurrentStructure(source.config.database, mariadb=source.mariadb),
            captures=self._captured,
            columns=source.settings.columns,
            executable_ddl=source.settings.executable_ddl,
            temporary_file=temporary_file,
        )

    def _captured(self, database: str, table: str) -> bool:
        return self._outlet.sink.tables.passes(database, table)  # which a subscription may replace

    def _write(self, packets: list[bytes], pipeline: EntryPipeline) -> None:
        """Write the entries of events."""
        found: list[PassedEntry] = []
        size = 0
        try:
            for packet in packets:
                for outputs in pipeline.receive(packet):  # of a compressed transaction, very many
                    for output in outputs:
                        if isinstance(output, EntryBatch):
                            wanted = self._wanted(output)
                            size += sum([entry.header.length for entry, _ in wanted])
                            found += wanted
                        else:
                            self._history.append(output.text)
                    if size >= _PUT_BYTES:
                        self._put(found)
                        found, size = [], 0
                self.status.events += 1
        except StoreClosed:
            raise
        except Exception:
            self._put(found)
            raise
        self._put(found)

    def _wanted(self, batch: EntryBatch) -> list[PassedEntry]:
        """Return the entries of an event that clients receive and have not acknowledged."""
        entries = self._outlet.sink.passed(batch.entries, batch.offset)
        if self._done is not None:
            # Only the first event can be done already, because all events of a compressed transaction have the same
            # position.
            entries = [passed for passed in entries if not _at_or_before(passed.entry.header, self._done)]
            self._done = None
        if self._since_ms and entries:
            entries = [passed for passed in entries if passed.entry.header.execute_time >= self._since_ms]
            self._since_ms = 0 if entries else self._since_ms
        self._after = batch.offset
        return entries

    def _put(self, entries: list[PassedEntry]) -> None:
        self._outlet.put(entries, Resumption(self._after, since_ms=self._since_ms))


def _at_or_before(header: EntryHeader, done: CanalPosition) -> bool:
    return header.file == done.file and header.offset <= done.pos
