"""The connector for Python programs: changes by iteration, without Kafka unless configured.

The engine runs the same task as the worker (check, snapshot, schema history, stream, reconnects). The program takes
changes from the event store in its own thread, and acknowledges them.
"""

import asyncio
import datetime as dt
import logging
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from rowtide.connector.config import Configuration, ConfigurationError, from_properties
from rowtide.connector.config.arguments import PropertyValue, property_texts
from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.catalogue.connect import SINK
from rowtide.connector.config.files.files import read_files
from rowtide.connector.delivery.batch_ring import INIT_SEQUENCE
from rowtide.connector.delivery.event_store import EventStore, Taken
from rowtide.connector.delivery.sinks import RecordSink
from rowtide.connector.engine.changes import calls
from rowtide.connector.engine.changes.batch import ChangeBatch
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.engine.time_travel import table_changes
from rowtide.connector.errors import EngineError
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Change
from rowtide.connector.signals.signal import Signal
from rowtide.connector.signals.signalling import Signalling
from rowtide.schema_history.model import Table

log = logging.getLogger(__name__)

_WARN_S = 30.0
_TICK_S = 0.1
"""How often a waiting ``get`` looks whether the connector has ended or started again."""


class Engine:
    """Runs a connector in this process and yields its changes.

    ::

        with Engine.from_config("library.properties") as engine:
            for batch in engine:
                for change in batch:
                    print(change)
                batch.ack()

    Positions and the schema history are kept in files (``offset.storage.file.filename``,
    ``schema.history.internal.file.filename``) or in Kafka. Delivery is at least once: changes that were not
    acknowledged are delivered again, after :meth:`rollback` and at the next start.

    All methods may be called from any thread; the batches of one engine are intended for one consumer.

    Args:
        properties: Debezium's properties and rowtide's, by name: strings, numbers, booleans, paths, and lists.
        environ: for ``${env:…}`` and variables such as ``ROWTIDE_DATABASE_PASSWORD``; by default empty.
        more: further properties by keyword: ``_`` stands for a dot, ``__`` for an underscore, ``___`` for a dash.

    Raises:
        ConfigurationError: with every problem of the configuration.
    """

    def __init__(
        self,
        properties: Mapping[str, PropertyValue] | None = None,
        *,
        environ: Mapping[str, str] | None = None,
        **more: PropertyValue,
    ) -> None:
        calls.require_mapping(properties)
        given = property_texts(properties or {}, more)
        self.config: Configuration = from_properties({**given, SINK.name: "python"}, environ)
        self._task: ConnectorTask | None = None
        self._signalling = Signalling()
        self._lock = threading.Lock()
        self._store: EventStore | None = None
        self._generation = 0
        self._acknowledged = self._taken = INIT_SEQUENCE
        self._warned_at = 0.0
        self._closed = False

    @classmethod
    def from_config(cls, *paths: str | os.PathLike[str], **more: PropertyValue) -> Self:
        """Return an engine from configuration files, as ``rowtide run`` reads them.

        ``ROWTIDE_…`` variables override them.

        Args:
            paths: ``.properties``, ``.json``, ``.yaml``, ``.yml`` or ``.env``; each overrides those before it.
            more: properties by keyword, which override those of the files.

        Raises:
            ConfigurationError: with every problem of the configuration.
        """
        calls.require_paths(paths)
        files = read_files(map(Path, paths), PROPERTIES)
        if files.problems:
            raise ConfigurationError(files.problems)
        return cls(files.properties, environ=os.environ, **more)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await asyncio.to_thread(self.close)

    def start(self) -> None:
        """Start the connector in its own thread.

        Raises:
            EngineError: it was already started, or was closed.
        """
        for kind, plugins in (("post.processors", self.config.post_processors), ("transforms", self.config.transforms)):
            if plugins:
                names = ", ".join(plugin.name for plugin in plugins)
                log.warning(
                    "%s (%s) apply to records, which only sinks receive; changes are returned without them", kind, names
                )
        self._start(ConnectorTask(self.config, changes=True, signalling=self._signalling))

    def _require_open(self) -> None:
        if self._closed:
            raise EngineError("the engine was closed, and an engine runs only once; create another engine")

    def _start(self, task: ConnectorTask) -> None:
        self._require_open()
        if self._task is not None:
            raise EngineError(
                "the engine was already started: an engine runs once, and run() starts it itself, without with"
            )
        self._task = task
        task.start()

    def close(self) -> None:
        """Stop the connector and wait for its end. The next start delivers unacknowledged changes again."""
        self._closed = True
        if self._task is not None:
            self._task.stop()

    @property
    def state(self) -> str:
        """STARTING, SNAPSHOT, RECOVERING, RUNNING, RESTARTING, STOPPING, STOPPED or FAILED."""
        return "STARTING" if self._task is None else self._task.state

    @property
    def ended(self) -> bool:
        """Whether the connector has ended and all changes that it read were returned."""
        task = self._task
        return task is not None and task.ended and (self._store is None or not self._store.unread)

    # --- changes --------------------------------------------------------------------------------------------------

    def get(self, size: int = 1024, timeout: float | None = None) -> ChangeBatch | None:
        """Return the next changes.

        Args:
            size: the maximum number of changes; a batch has at least those of one row event.
            timeout: seconds to wait for the first one; ``None`` to wait without limit, 0 not to wait.

        Returns:
            A batch of at least one change; ``None`` after the timeout, or if the connector has ended.

        Raises:
            EngineError: the engine was not started, or was closed, or an argument is wrong.
            ConnectorError: the connector has failed; raised when all changes before the failure were returned.
        """
        self._require_open()
        calls.require_number("size", size, int, 1)
        calls.require_number("timeout", 0 if timeout is None else timeout, int | float, 0)
        task = self._task
        if task is None:
            raise EngineError("the engine was not started: use it in a with statement, or call start()")
        deadline = None if timeout is None else time.monotonic() + timeout
        while True:
            ended = task.ended  # first: the changes read until then are in the store already
            left = _TICK_S if deadline is None else min(_TICK_S, max(0.0, deadline - time.monotonic()))
            self._wait(0.0 if ended else left)
            try:
                batch = self._take(size)
                if batch is not None:
                    return batch
            except KeyboardInterrupt:  # no caller has the taken changes, so a later batch must not acknowledge them
                self.rollback()
                raise
            if ended and (self._store is None or not self._store.unread):
                if task.failure is not None:
                    raise task.failure
                return None
            if deadline is not None and time.monotonic() >= deadline:
                return None

    def _wait(self, seconds: float) -> None:
        """Wait for changes for a limited time, and take none, because the caller may be cancelled."""
        store = self._current_store()
        if store is None or (store.closed and not store.unread):  # the connector starts, or starts again
            time.sleep(seconds)
        else:
            store.wait(seconds)

    def _take(self, size: int) -> ChangeBatch | None:
        store = self._current_store()
        if store is None:
            return None
        with self._lock:  # no rollback between the taking and its generation
            generation = self._generation
            taken = store.get(size, timeout=0)
            changes = [change for batch in taken.batches for change in batch.changes]
            if changes:
                self._taken = taken.sequence
                return ChangeBatch(changes, lambda: self._ack(store, generation, taken))
            behind_acknowledged = self._taken <= self._acknowledged
        if taken.batches and behind_acknowledged:
            self._ack(store, generation, taken)  # a position without changes
        elif store.starved:
            self._warn_of_full_store()
        return None

    def _warn_of_full_store(self) -> None:
        now = time.monotonic()
        if now - self._warned_at > _WARN_S:
            self._warned_at = now
            log.warning(
                "batches that are not acknowledged fill the event store (max.queue.size.in.bytes): no more changes "
                "are returned until ack() is called on them"
            )

    def _current_store(self) -> EventStore | None:
        """Return the event store of the current run; after a restart of the connector, it is a new one."""
        components = None if self._task is None else self._task.current.components
        store = None if components is None else components.store
        if store is not self._store and store is not None:
            with self._lock:
                self._store = store
                self._acknowledged = self._taken = INIT_SEQUENCE
                self._generation += 1
        return self._store

    def _ack(self, store: EventStore, generation: int, taken: Taken[Batch]) -> bool:
        task = self._task
        with self._lock:
            if task is None or store is not self._store or generation != self._generation:
                return False
            components = task.current.components
            if components is None or components.store is not store:
                return False
            if taken.sequence > self._acknowledged:
                components.offsets.save(taken.batches[-1].offset)
                task.current.stored = taken.batches[-1].offset
                store.ack(taken.sequence)
                self._acknowledged = taken.sequence
            return True

    def ack(self, batch: ChangeBatch) -> bool:
        """Store the position after a batch; see :meth:`ChangeBatch.ack`."""
        return batch.ack()

    def rollback(self) -> int:
        """Deliver all unacknowledged changes again, starting with the next ``get``.

        Returns:
            The number of their row events.
        """
        with self._lock:
            self._generation += 1
            self._taken = self._acknowledged
            return 0 if self._store is None else self._store.rollback()

    def _next(self, timeout: float | None = None) -> ChangeBatch | None:
        """Return the next batch; ``None`` at the end, which another thread may cause by closing the engine."""
        try:
            return self.get(timeout=timeout)
        except EngineError:
            if self._closed:
                return None
            raise

    def __iter__(self) -> Iterator[ChangeBatch]:
        self._require_open()
        while (batch := self._next()) is not None:
            yield batch

    async def __aiter__(self) -> AsyncIterator[ChangeBatch]:
        self._require_open()
        while True:
            await asyncio.to_thread(self._wait, _TICK_S)
            ended = self.ended
            batch = self._next(timeout=0)  # not in the thread: after a cancellation, its batch would be lost
            if batch is not None:
                yield batch
            elif ended:
                return

    # --- structures -------------------------------------------------------------------------------------------------

    def table_at(self, name: str, at: str | int | dt.datetime = "end") -> Table:
        """Return the structure of a table at a point in time, from the schema history.

        Args:
            name: ``database.table``.
            at: a position (``binlog.000042:1234``), a GTID set, a time (ISO 8601, or a number since the epoch; UTC
                without a zone), or ``end``.

        Raises:
            UnknownTable: the table did not exist.
            InvalidPointInTime: ``at`` cannot be read.
            SchemaHistoryError: the history cannot be read, or the connector keeps it in memory.
        """
        return calls.structure_at(self.config, name, at)

    def replay(
        self, name: str, binlog: str | os.PathLike[str], *, start: str | None = None, end: str | None = None
    ) -> Iterator[Change]:
        """Return the changes of a table between two points of archived binlog files, with the structures of that time.

        This needs no server, and the engine need not be started. Structures come from the schema history, or from the
        statements in the files if the connector has none.

        Args:
            name: ``database.table``.
            binlog: the folder of the files, such as a mirror.
            start: a GTID (this transaction and later ones), a GTID set (from the first transaction that is not in it),
                or a position (``binlog.000042:1234``); by default the first event.
            end: a GTID (this transaction is the last one), a GTID set (up to the first transaction that is not in it),
                or a position (transactions that begin before it); by default the end of the files.

        Raises:
            OffsetError: the files do not have a point, or the end is before the start.
            UnknownTable: the table did not exist between the two points.
            ConnectorError: an event cannot be handled.
            SchemaHistoryError: the history cannot be read.
        """
        return table_changes(self.config, name, Path(binlog), start, end)

    # --- signals ----------------------------------------------------------------------------------------------------

    def signal(self, kind: str, data: Mapping[str, Any] | None = None, *, signal_id: str | None = None) -> str:
        """Send a signal to the connector, which carries it out between two transactions of the stream.

        Args:
            kind: the type, such as ``execute-snapshot``.
            data: the parameters.
            signal_id: identifies the signal in notifications; by default a new id.

        Returns:
            The id.

        Raises:
            EngineError: the engine was closed.
            SignalError: it is not a signal. A refusal by its action is logged, and is in :attr:`notifications`.
        """
        self._require_open()
        plain = dict(data) if isinstance(data, Mapping) else data
        return self._signalling.send({"id": signal_id, "type": kind, "data": plain}, "in-process")

    def on_signal(self, kind: str, action: "Callable[[Signal], None]") -> None:
        """Call a function for each signal of a type, through any channel.

        Args:
            kind: the type; a built-in action of that type is replaced.
            action: called in the reader's thread, between two transactions or at the signal's row. It refuses a
                signal by raising ``SignalError``.
        """
        calls.require_function("on_signal()", action)
        self._signalling.hooks[kind] = action

    @property
    def notifications(self) -> list[Mapping[str, Any]]:
        """The last notifications about snapshots and signals, oldest first; at most a thousand."""
        return self._signalling.notifications.all()

    def run(self, target: "Callable[[ChangeBatch], Any] | RecordSink") -> None:
        """Start, pass everything to a function or a sink until the connector ends, and close.

        Args:
            target: a function, which is called with each batch of changes; a batch is acknowledged when it returns.
                Or a sink, which receives Debezium's records.

        Raises:
            EngineError: the engine was already started, or was closed, or the target is neither.
            ConnectorError: the connector or the sink has failed.
            Exception: whatever the function raises; its batch is not acknowledged.
        """
        calls.require_target(target)
        if isinstance(target, RecordSink):
            self._start(ConnectorTask(self.config, sink=target, signalling=self._signalling))
            assert self._task is not None
            try:
                self._task.wait()
            finally:
                self.close()
                target.close()
            if self._task.failure is not None:
                raise self._task.failure
            return
        with self:
            for batch in self:
                target(batch)
                batch.ack()


def capture(path: str | os.PathLike[str], handler: Callable[[Change], Any], **more: PropertyValue) -> None:
    """Call a function with every change of a configured connector, until the process ends.

    Args:
        path: the configuration file.
        handler: called with each change; a batch is acknowledged when all its changes are handled.
        more: properties by keyword, which override those of the file.
    """
    calls.require_function("capture()", handler)
    Engine.from_config(path, **more).run(lambda batch: [handler(change) for change in batch])
