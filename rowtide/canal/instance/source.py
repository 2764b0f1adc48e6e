"""The server of an instance: its flavor, its structures, and the start position."""

import logging
import re
import threading
import time
from dataclasses import dataclass, replace

from rowtide.canal.configuration.model import InstanceSettings
from rowtide.canal.instance.client_positions import Resumption
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.delivery.event_store import StoreClosed
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import OffsetError
from rowtide.connector.protocol.header import HEADER, EventType
from rowtide.connector.records.batch import HistoryEntry
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.snapshot import Decision
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_stream import second_stream
from rowtide.connector.source.position.check import check_position, event_at
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.compaction.history_reader import StoredHistory, read_history
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.store.history_store import SchemaHistoryStore
from rowtide.topics.naming import OneTopic

log = logging.getLogger(__name__)

_MARIADB_SSL = {
    "disabled": "disable",
    "preferred": "trust",
    "required": "trust",
    "verify_ca": "verify-ca",
    "verify_identity": "verify-full",
}
_NEVER_ACKNOWLEDGED = re.compile(r"Table_map|(Write|Update|Delete|Partial)_|Rows_query|Annotate_rows")
"""Events whose positions Canal never stores, as SHOW BINLOG EVENTS names them."""


@dataclass(frozen=True, slots=True)
class CanalSource:
    """The server that an instance reads.

    Attributes:
        settings: of the instance.
        config: the same as the configuration of a connector.
        pipeline_settings: made from the configuration.
        mariadb: whether the server is MariaDB.
    """

    settings: InstanceSettings
    config: Configuration
    pipeline_settings: PipelineSettings
    mariadb: bool

    @classmethod
    def connect(cls, settings: InstanceSettings) -> "CanalSource":
        """Query the flavor and version of the server.

        Raises:
            DatabaseUnreachableError: it cannot be reached, or refuses the log-in.
        """
        config = _configuration(settings, mariadb=False)
        with Session(config.database, mariadb=False) as session:
            mariadb = "mariadb" in str(session.query("SELECT VERSION()")[0][0]).lower()
        if mariadb:
            config = _configuration(settings, mariadb=True)
        return cls(settings, config, pipeline_settings(config, "canal"), mariadb)

    def session(self) -> Session:
        """Return a connection for queries."""
        return Session(self.config.database, mariadb=self.mariadb)

    def tables(
        self, history: SchemaHistoryStore, start: SourceOffset | None, stop: threading.Event
    ) -> tuple[Tables, SourceOffset]:
        """Return the structures of all tables, and the start position: the end of the binlog without ``start``.

        Without a schema history, the structures are the current ones, with which the history then begins.

        Raises:
            StoreClosed: ``stop`` was set while waiting.
            SnapshotError, SchemaHistoryError: they cannot be read.
        """
        if start is not None and history.exists():
            with self.session() as session:
                server = server_queries.server(session)
            kept = StoredHistory(history, self.config.topics.prefix, None)
            position = BinlogPosition.from_map(replace(start, prepared=()).to_map())
            return read_history(kept, server, position).tables(prefer_ddl=False), start
        decision = Decision(structure=True, rows=False, position=start, stream=True)
        snapshot = Snapshot(self.config.database, self.pipeline_settings, self.config.snapshot, decision, time.time_ns)
        with history.buffered():
            for output in snapshot.outputs():
                if stop.is_set():
                    raise StoreClosed("the instance stops")
                if isinstance(output, HistoryEntry):
                    history.append(output.text)
        return snapshot.tables, start or self.present(snapshot.offset)

    def present(self, offset: SourceOffset) -> SourceOffset:
        """Return the start position of a stream that begins at the offset of a snapshot.

        A MariaDB server without GTIDs has an empty set, not an unknown one.
        """
        return replace(offset, snapshot=None, gtids=offset.gtids or ("" if self.mariadb else None))


def find_start(source: CanalSource) -> Resumption | None:
    """Return the start position of an instance without positions of clients; ``None`` for the end of the binlog.

    Raises:
        OffsetError: the server cannot stream from ``canal.instance.master.position``, or
            ``canal.instance.master.timestamp`` is before its first binlog file.
        DatabaseUnreachableError: the server cannot be reached.
    """
    start = source.settings.start
    if start.gtid:
        with source.session() as session:
            return Resumption(replace(server_queries.current_position(session), gtids=start.gtid))
    if start.file:
        offset = SourceOffset(start.file, start.pos)
        with source.session() as session:
            found = check_position(session.client, offset, mariadb=source.mariadb)
        if not found.available:
            raise OffsetError(
                f"reading cannot begin at canal.instance.master.journal.name={start.file} and position={start.pos}: "
                f"{found.reason}. Set a file that the server has, and the position of an event in it; 4 is the first"
            )
        return Resumption(offset)
    if start.ts_ms:
        return Resumption(SourceOffset(_file_at(source, start.ts_ms), 4), since_ms=start.ts_ms)
    return None


def located(source: CanalSource, resumption: Resumption) -> Resumption:
    """Return a resumption after an event that Canal has stored, with the binlog file of that event.

    Canal (1.1.8, ``LogDecoder``) takes the name of the file from MariaDB's BINLOG_CHECKPOINT events, too. They name the
    oldest file that a crash recovery needs, and the first one in a file names the file before. So the event is in the
    file that Canal has stored, or in a later one. The first of these files with an event at the position is the right
    one or one before it: changes can be repeated, and none is lost.

    Raises:
        OffsetError: no such event exists.
        DatabaseUnreachableError: the server cannot be reached.
    """
    done = resumption.done
    if done is None:
        return resumption
    with source.session() as session:
        sizes = dict(server_queries.binlog_files(session.client))
        if done.file not in sizes:
            return resumption  # the stream reports it
        later = list(sizes)[list(sizes).index(done.file) :]
        for file in later if source.mariadb else later[:1]:
            offset = replace(resumption.offset, file=file)
            if done.pos >= sizes[file]:
                continue
            kind = event_at(session.client, offset, sizes[file], mariadb=source.mariadb)
            if kind is None or _NEVER_ACKNOWLEDGED.match(kind):
                continue
            if file != done.file:
                log.warning("Canal has stored %s:%d, which is a position in %s", done.file, done.pos, file)
            return replace(resumption, offset=offset, done=replace(done, file=file))
    raise OffsetError(
        f"the stored position {done.file}:{done.pos} (meta.dat, or the cursor in ZooKeeper) is not the "
        "position of an event there: it is from another server, or damaged. Set it to an earlier event, such as "
        "position 4, "
        "the first one of the file; changes are then repeated"
    )


def _file_at(source: CanalSource, ts_ms: int) -> str:
    """Return the last binlog file that begins before a time."""
    with source.session() as session:
        files = server_queries.binlog_files(session.client)
    for file, _ in reversed(files):
        if _begin_ms(source, file) <= ts_ms:
            return file
    raise OffsetError(
        f"canal.instance.master.timestamp={ts_ms} is before the first binlog file of the server, {files[0][0]}: "
        "changes are missing. Set a later time, or journal.name to begin there"
    )


def _begin_ms(source: CanalSource, file: str) -> int:
    """Return when a binlog file begins: the time of its FORMAT_DESCRIPTION, in milliseconds since the epoch."""
    stream = second_stream(source.config.database, SourceOffset(file, 4), mariadb=source.mariadb)
    try:
        for packets in stream.events():
            for packet in packets:
                seconds, kind, *_ = HEADER.unpack_from(packet)
                if kind == EventType.FORMAT_DESCRIPTION:
                    return int(seconds) * 1000
    finally:
        stream.close()
    raise OffsetError(f"binlog file {file} has no FORMAT_DESCRIPTION")


def _configuration(settings: InstanceSettings, *, mariadb: bool) -> Configuration:
    ssl_mode = _MARIADB_SSL[settings.ssl_mode] if mariadb else settings.ssl_mode
    config = from_properties(
        {
            "name": settings.destination,
            "database.flavor": "mariadb" if mariadb else "mysql",
            "topic.prefix": "canal",
            "database.hostname": settings.host,
            "database.port": str(settings.port),
            "database.user": settings.user,
            "database.password": settings.password.reveal(),
            "database.server.id": str(settings.server_id),
            "database.ssl.mode": ssl_mode,
            "inconsistent.schema.handling.mode": "warn" if settings.skip_broken_tables else "fail",
            "rowtide.sink": "python",
            "snapshot.mode": "no_data",
            "snapshot.locking.mode": "none",  # Canal's accounts have no RELOAD
            "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",  # the storage has it
            "schema.history.internal.skip.unparseable.ddl": "true",
            "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
            "include.query": "true",
        }
    )
    naming = OneTopic(config.topics.prefix, config.topics.naming)  # entries have no topics, so no two tables clash
    return replace(config, topics=replace(config.topics, naming=naming))
