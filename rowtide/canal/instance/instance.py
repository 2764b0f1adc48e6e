"""Edge: an instance: reads one server, and offers its entries to the clients of a destination. Also for use in Python.

::

    server ──► StreamReader ──► EntryPipeline ──► EntrySink ──► event store ◄── Destination ◄── clients
                                     │                                               │
                                     └──► schema history (a file)                    └──► meta.dat

The structures of all tables are read once, when there is no schema history yet. From then on, the history has them at
every position.
"""

import logging
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pymysql

from rowtide.canal.instance.client_positions import ClientPositions, Resumption
from rowtide.canal.instance.configuration import InstanceSettings
from rowtide.canal.instance.filters import EntryFilter, TablePatterns
from rowtide.canal.instance.positions import CanalPosition, Master
from rowtide.canal.instance.sink import EntrySink
from rowtide.canal.instance.source import Source, find_start
from rowtide.canal.pipeline import EntryBatch, EntryPipeline
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.stored_entry import LogPosition, StoredEntry
from rowtide.connector.delivery.event_store import Store, StoreClosed
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.connection.tls import TlsError
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.stream_reader import StreamReader, describe
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.store.history_store import SchemaHistoryStore
from rowtide.topics.java_regex import InvalidPatternError

log = logging.getLogger(__name__)

_FIRST_WAIT_S = 1.0
_LONGEST_WAIT_S = 60.0
_ITEMSIZE_BYTES = 1 << 28
_JOIN_S = 10.0
_FULL_S = 60.0
"""How often the log has that the store is full."""
_EXPECTED = (ConnectorError, DatabaseUnreachableError, TlsError, SchemaHistoryError, pymysql.MySQLError, OSError)
"""Errors whose message says what is wrong."""


class Instance:
    """One source and its clients.

    Args:
        settings: of the instance.
        folder: of its files: ``meta.dat`` and the schema history.
        flush_s: how often positions of clients are written, in seconds.

    Attributes:
        destination: what clients can do with it.
        error: why it does not read at present; ``None`` if it does.
    """

    def __init__(self, settings: InstanceSettings, folder: Path, flush_s: float = 1.0) -> None:
        self._settings = settings
        self._folder = folder
        self._flush_s = flush_s
        master = Master(settings.host, settings.port, settings.slave_id)
        self._positions = ClientPositions(folder, settings.destination, master)
        mode = settings.mode
        self._store: Store[StoredEntry] = Store(
            settings.buffer_size, _ITEMSIZE_BYTES if mode.counts_entries else settings.buffer_size * mode.unit
        )
        self._sink = EntrySink(settings.filter, settings.kinds)
        self._filter_by(self._positions.filter)
        self.destination = Destination(
            settings.destination,
            self._store,
            mode,
            isolate_ddl=settings.isolate_ddl,
            filtered=self._filter_by,
            acknowledged=self._positions.acknowledged,
            subscribed=self._subscribed,
            unsubscribed=self._unsubscribed,
        )
        self.error: str | None = None
        self._resumption: Resumption | None = None  # behind what is in the store
        self._reader: EntryReader | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"canal-{settings.destination}", daemon=True)
        self._flusher = threading.Thread(target=self._flush, name=f"canal-meta-{settings.destination}", daemon=True)

    def start(self) -> None:
        """Begin to read, in a thread."""
        self._thread.start()
        self._flusher.start()

    def stop(self) -> None:
        """End: nothing more is read, and the positions of the clients are written."""
        self._stop.set()
        if self._reader is not None:
            self._reader.stop()
        self._store.close()
        for thread in (self._thread, self._flusher):
            if thread.ident is not None:
                thread.join(_JOIN_S)
        self._write_positions()

    @property
    def reading(self) -> bool:
        """Whether it is connected to the server and reads."""
        return self._reader is not None and self._reader.status.connected

    def _run(self) -> None:
        wait = _FIRST_WAIT_S
        while not self._stop.is_set():
            begin = time.monotonic()
            try:
                self._read()
            except StoreClosed:
                return
            except Exception as error:  # whatever it is: nobody would notice that the thread has ended
                if self._stop.is_set():
                    return
                wait = _FIRST_WAIT_S if time.monotonic() - begin > _LONGEST_WAIT_S else wait
                self.error = str(error)
                trace = None if isinstance(error, _EXPECTED) else error
                log.error("%s: %s; retry in %.0f s", self.destination.name, error, wait, exc_info=trace)  # noqa: TRY400
                self._stop.wait(wait)
                wait = min(2 * wait, _LONGEST_WAIT_S)

    def _read(self) -> None:
        source = Source.connect(self._settings, self._folder)
        history = source.history()
        try:
            resumption = self._resumption or self._positions.resumption()
            if resumption is None:
                tables, resumption = self._first(source, history)
            else:
                tables, _ = source.tables(history, resumption.offset)
            log.info("destination %s: reading from %s", self.destination.name, describe(resumption.offset))
            self._reader = EntryReader(self, source, tables, resumption, history)
            if not self._stop.is_set():
                self._reader.run()
        finally:
            history.close()

    def _first(self, source: Source, history: SchemaHistoryStore) -> tuple[Tables, Resumption]:
        """Where an instance begins whose clients have no positions yet; until they have any, a restart begins there."""
        wanted = find_start(source)
        tables, offset = source.tables(history, None if wanted is None else wanted.offset)
        if self._stop.is_set():  # perhaps long ago: another instance may have the files now
            raise StoreClosed("the instance stops")
        self._positions.begins(offset, 0 if wanted is None else wanted.since_ms)
        return tables, wanted or Resumption(offset)

    def put(self, entries: list[StoredEntry], resumption: Resumption) -> None:
        """Give entries to the clients; waits for room.

        Args:
            entries: the entries.
            resumption: where reading goes on behind them.

        Raises:
            StoreClosed: the instance stops.
        """
        while entries and (count := self._store.put(entries, _FULL_S)) < len(entries):
            entries = entries[count:]
            log.warning(
                "destination %s: reading waits: the store is full, and clients have not acknowledged %d entries",
                self.destination.name,
                self._store.use().held_events,
            )
        self._resumption = resumption
        self.error = None

    @property
    def sink(self) -> EntrySink:
        """What selects the entries."""
        return self._sink

    def _subscribed(self, client_id: int, text: str) -> None:
        """Keep the client; of a filter that is invalid, nothing is kept, as it has no effect."""
        self._positions.subscribed(client_id, text if self._filtered(text) else "")

    def _unsubscribed(self, client_id: int) -> None:
        self._positions.unsubscribed(client_id)
        self.destination.take_back()

    def _filter_by(self, text: str) -> None:
        self._sink.tables = self._filtered(text) or self._sink.tables

    def _filtered(self, text: str) -> EntryFilter | None:
        """The filter of a subscription; ``None`` if it has none, or an invalid one, which Canal accepts, too."""
        try:
            return EntryFilter(TablePatterns.parse(text), self._settings.filter.black) if text else None
        except InvalidPatternError as error:
            log.warning("destination %s: the filter of a client is ignored: %s", self._settings.destination, error)
            return None

    def _flush(self) -> None:
        while not self._stop.wait(self._flush_s):
            self._write_positions()

    def _write_positions(self) -> None:
        try:
            self._positions.flush()
        except OSError as error:
            log.error("%s: the positions of clients cannot be written: %s", self.destination.name, error)  # noqa: TRY400


class EntryReader(StreamReader[EntryPipeline]):
    """Reads a server's stream into the event store of an instance.

    Args:
        instance: receives the entries.
        source: the server.
        tables: the structures at the start.
        resumption: the start.
        history: receives history entries.
    """

    def __init__(
        self, instance: Instance, source: Source, tables: Tables, resumption: Resumption, history: SchemaHistoryStore
    ) -> None:
        super().__init__(source.config.failure, resumption.offset, self._stream)
        self._instance = instance
        self._source = source
        self._tables = tables
        self._history = history
        self._done = resumption.done
        self._since_ms = resumption.since_ms

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
        )

    def _captured(self, database: str, table: str) -> bool:
        return self._instance.sink.tables.passes(database, table)  # which a subscription may replace

    def _written(self, packets: list[bytes], pipeline: EntryPipeline) -> Iterator[None]:
        for packet in packets:
            for outputs in pipeline.receive(packet):
                for output in outputs:
                    if isinstance(output, EntryBatch):
                        self._put(output)
                    else:
                        self._history.append(output.text)
            self.status.events += 1
        yield

    def _put(self, batch: EntryBatch) -> None:
        entries = self._instance.sink.passed(batch.entries, batch.offset)
        if self._done is not None:
            # Only the first event can be done: those of a compressed transaction all have its position.
            entries = [entry for entry in entries if not _at_or_before(entry.position, self._done)]
            self._done = None
        if self._since_ms and entries:
            entries = [entry for entry in entries if entry.ts_ms >= self._since_ms]
            self._since_ms = 0 if entries else self._since_ms
        self._instance.put(entries, Resumption(batch.offset, since_ms=self._since_ms))


def _at_or_before(position: LogPosition, done: CanalPosition) -> bool:
    return position.file == done.file and position.pos <= done.pos
