"""``BinLogStreamReader`` of mysql-replication, which reads the stream with rowtide."""

import logging
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pymysqlreplication import event as lib_events
from pymysqlreplication import row_event as lib_row_events
from pymysqlreplication.binlogstream import ReportSlave

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.wiring import history_store
from rowtide.connector.errors import EngineTypeError, ProtocolError
from rowtide.connector.pipeline.executed_gtids import ExecutedGtids
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import Event
from rowtide.connector.protocol.events.rows import table_map_of
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import HEADER_LENGTH, HEARTBEATS
from rowtide.connector.protocol.replication.commands import NON_BLOCK
from rowtide.connector.protocol.statements import is_begin, is_end, is_xa
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken
from rowtide.connector.source.current_structure import CurrentStructure
from rowtide.connector.source.session import Session
from rowtide.mysql_replication.events import ConnectionProperties, EventFactory, EventPacket
from rowtide.mysql_replication.settings import configuration
from rowtide.mysql_replication.structures import TableStructures
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Database
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.history_source import HistorySource
from rowtide.schema_history.queries.point_in_time import PointInTime
from rowtide.schema_history.server.query_event import Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_store import SchemaHistoryStore

log = logging.getLogger(__name__)

_FIRST_POSITION = 4
_MOST_FAILURES = 3
"""Attempts in succession to open a lost stream again."""
_STABLE_S = 10.0
"""A stream that lasted this long is not a failure, although it may have been idle."""
_WAIT_S = 0.5
_LONGEST_HEARTBEAT_S = 4294967

_DEFAULT_EVENTS = (
    lib_events.QueryEvent,
    lib_events.RotateEvent,
    lib_events.StopEvent,
    lib_events.FormatDescriptionEvent,
    lib_events.XAPrepareEvent,
    lib_events.XidEvent,
    lib_events.GtidEvent,
    lib_events.BeginLoadQueryEvent,
    lib_events.ExecuteLoadQueryEvent,
    lib_row_events.UpdateRowsEvent,
    lib_row_events.WriteRowsEvent,
    lib_row_events.DeleteRowsEvent,
    lib_row_events.TableMapEvent,
    lib_events.HeartbeatLogEvent,
    lib_events.NotImplementedEvent,
    lib_events.MariadbGtidEvent,
    lib_events.RowsQueryLogEvent,
    lib_events.MariadbAnnotateRowsEvent,
    lib_events.RandEvent,
    lib_events.MariadbStartEncryptionEvent,
    lib_events.MariadbGtidListEvent,
    lib_events.MariadbBinLogCheckPointEvent,
    lib_events.UserVarEvent,
    lib_events.PreviousGtidsEvent,
    lib_row_events.PartialUpdateRowsEvent,
)


class BinLogStreamReader:
    """Reads a binlog as mysql-replication's ``BinLogStreamReader`` does; iterate over it, or call :meth:`fetchone`.

    Connections are opened by the first :meth:`fetchone`. A lost connection is opened again, and the stream continues
    after the last event.

    Args:
        connection_settings: the arguments of ``pymysql.connect`` for the server.
        server_id: the server id, which no other replica may have.
        ctl_connection_settings: the same for looking up structures, with another account of the same server.
        resume_stream: begin at ``log_pos`` (without it, at the end of the binlog), not at the file's first event.
        blocking: wait for events at the end of the binlog, instead of ending the iteration.
        only_events: the classes of events to yield.
        log_file: the binlog file to begin with.
        log_pos: the position in that file.
        end_log_pos: end the iteration after the event that reaches this position.
        filter_non_implemented_events: omit events for which mysql-replication has no class.
        ignored_events: classes of events not to yield.
        auto_position: start after these GTIDs (MySQL: a set; MariaDB, with ``is_mariadb``: a position).
        only_tables: the names of tables whose events to yield.
        ignored_tables: names of tables whose events to omit.
        only_schemas: the names of databases whose events to yield.
        ignored_schemas: names of databases whose events to omit.
        freeze_schema: yield one TABLE_MAP of each table id only.
        skip_to_timestamp: omit events before this time, in seconds since the epoch.
        report_slave: the entry in SHOW REPLICAS: a host, a tuple (host, user, password, port) or a dictionary.
        slave_uuid: the UUID of the replica.
        pymysql_wrapper: is refused; rowtide opens its own connections.
        slave_heartbeat: the interval, in seconds, of the server's heartbeats, which are then yielded.
        is_mariadb: the server is MariaDB; begin with its oldest file unless a position is given.
        annotate_rows_event: yield the statements of rows (MariaDB, with ``is_mariadb``).
        ignore_decode_errors: without effect: bytes that are invalid in their character set become U+FFFD.
        verify_checksum: without effect on what is verified: a wrong checksum is always an error.
        enable_logging: log the arguments.
        use_column_name_cache: without effect: the names of columns are always known.
        schema_history: the schema history of a connector: a file, or the connector's properties. It has the structure
            of tables at positions in the past.

    Attributes:
        log_file: the binlog file of the last event.
        log_pos: the position after the last event.
        mysql_version: the version of the server that wrote the file.
        dbms: ``mysql`` or ``mariadb``; ``None`` before the first connection.
        table_map: mysql-replication's tables, by table id.

    Raises:
        EngineTypeError: an argument cannot be used; the message names it.
        ConfigurationError: a setting of a connection is invalid.
    """

    def __init__(
        self,
        connection_settings: Mapping[str, Any],
        server_id: int,
        ctl_connection_settings: Mapping[str, Any] | None = None,
        resume_stream: bool = False,
        blocking: bool = False,
        only_events: Collection[type] | None = None,
        log_file: str | None = None,
        log_pos: int | None = None,
        end_log_pos: int | None = None,
        filter_non_implemented_events: bool = True,
        ignored_events: Collection[type] | None = None,
        auto_position: str | None = None,
        only_tables: Collection[str] | None = None,
        ignored_tables: Collection[str] | None = None,
        only_schemas: Collection[str] | None = None,
        ignored_schemas: Collection[str] | None = None,
        freeze_schema: bool = False,
        skip_to_timestamp: float | None = None,
        report_slave: str | tuple[Any, ...] | dict[str, Any] | None = None,
        slave_uuid: str | None = None,
        pymysql_wrapper: Callable[..., Any] | None = None,
        slave_heartbeat: float | None = None,
        is_mariadb: bool = False,
        annotate_rows_event: bool = False,
        ignore_decode_errors: bool = False,
        verify_checksum: bool = False,
        enable_logging: bool = True,
        use_column_name_cache: bool = False,
        *,
        schema_history: str | Path | Mapping[str, str] | None = None,
    ) -> None:
        if pymysql_wrapper is not None:
            raise EngineTypeError(
                "pymysql_wrapper cannot be used: rowtide opens its own connections. Put its settings into "
                "connection_settings"
            )
        self.log_file, self.log_pos, self.end_log_pos = log_file, log_pos, end_log_pos
        self.auto_position, self.skip_to_timestamp = auto_position, skip_to_timestamp
        self.is_mariadb, self.is_past_end_log_pos = is_mariadb, False
        self.report_slave = ReportSlave(report_slave) if report_slave else None
        self.slave_uuid, self.slave_heartbeat = slave_uuid, slave_heartbeat
        self.dbms: str | None = None
        self._settings, self._server_id = dict(connection_settings), server_id
        self._ctl_settings = dict(ctl_connection_settings or connection_settings)
        self._resume, self._blocking, self._annotate = resume_stream, blocking, annotate_rows_event
        self._history = schema_history
        self._only_tables, self._ignored_tables = only_tables, ignored_tables
        self._only_schemas, self._ignored_schemas = only_schemas, ignored_schemas
        self._options: dict[str, Any] = {
            "only_tables": only_tables,
            "ignored_tables": ignored_tables,
            "only_schemas": only_schemas,
            "ignored_schemas": ignored_schemas,
            "freeze_schema": freeze_schema,
            "ignore_decode_errors": ignore_decode_errors,
            "verify_checksum": verify_checksum,
            "enable_logging": enable_logging,
            "use_column_name_cache": use_column_name_cache,
        }
        allowed = self._allowed_event_list(only_events, ignored_events, filter_non_implemented_events)
        self._allowed = allowed if slave_heartbeat else allowed - {lib_events.HeartbeatLogEvent}
        self._factory: EventFactory | None = None
        self._structures: TableStructures | None = None
        self._stream: BinlogStream | None = None
        self._events: Generator[Any, None, None] | None = None
        for settings in (self._settings, self._ctl_settings):
            configuration(settings, server_id, mariadb=False)  # reports what is wrong before a connection is needed
        if enable_logging:
            log.info("reading a binlog with %s", {name: value for name, value in self._options.items() if value})

    @property
    def table_map(self) -> dict[int, Any]:
        """mysql-replication's tables, by table id."""
        return {} if self._factory is None else self._factory.table_map

    @property
    def mysql_version(self) -> tuple[int, ...]:
        """The version of the server that wrote the file; zeros before the first event."""
        return (0, 0, 0) if self._factory is None else self._factory.mysql_version

    def __iter__(self) -> Iterator[Any]:
        return iter(self.fetchone, None)

    def fetchone(self) -> Any:
        """Return the next event; ``None`` at the end of the binlog, unless ``blocking`` is set.

        Raises:
            DatabaseUnreachableError: the server cannot be reached, or refuses the log-in.
            PositionPurged: the server no longer has the events after the position.
            StreamRefused: the server refuses to send its binlog.
            StreamBroken: the stream cannot be opened.
            SchemaError: the structure of a table is not known; the message says what to do.
            ProtocolError: an event is damaged or unknown.
        """
        if self.end_log_pos and self.is_past_end_log_pos:
            return None
        try:
            if self._events is None:
                if self._factory is None:
                    self._connect()
                self._events = self._read()
            found = next(self._events, None)
        except BaseException:
            self.close()
            raise
        if found is None:
            self.close()
        return found

    def close(self) -> None:
        """Close the connection. A later :meth:`fetchone` continues after the last event. Any thread may call this."""
        stream, self._stream, self._events = self._stream, None, None
        if stream is not None:
            stream.close()

    def _allowed_event_list(
        self,
        only_events: Collection[type] | None,
        ignored_events: Collection[type] | None,
        filter_non_implemented_events: bool,
    ) -> frozenset[type]:
        """Return the classes of events to yield. The name is that of mysql-replication.

        Raises:
            KeyError: an ignored event is not one of them.
        """
        found = set(_DEFAULT_EVENTS if only_events is None else only_events)
        for kind in ignored_events or ():
            found.remove(kind)
        if filter_non_implemented_events:
            found.discard(lib_events.NotImplementedEvent)
        return frozenset(found)

    # --- the server --------------------------------------------------------------------------------------------------

    def _connect(self) -> None:
        """Determine the server's flavor, the start position, and the structures of the tables there."""
        config = configuration(self._settings, self._server_id, mariadb=False)
        with Session(config.database, mariadb=False) as session:
            mariadb = "mariadb" in str(session.query("SELECT VERSION()")[0][0]).lower()
        self._config = self._replica(configuration(self._settings, self._server_id, mariadb=mariadb))
        self.dbms = "mariadb" if mariadb else "mysql"
        with Session(self._config.database, mariadb=mariadb) as session:
            self._start = self._start_position(session)
            identity = server_queries.server_identity(session.client, mariadb=mariadb)
        self.log_file, self.log_pos = self._start.file or None, self._start.pos
        control = configuration(self._ctl_settings, self._server_id, mariadb=mariadb)
        with Session(control.database, mariadb=mariadb) as session:
            if server_queries.server_identity(session.client, mariadb=mariadb) != identity:
                raise EngineTypeError(
                    "ctl_connection_settings lead to a different server from connection_settings, whose binlog does "
                    "not show whether a structure is that of the rows. Give another account or address of the same "
                    "server"
                )
            server = server_queries.server(session)
            databases = [
                Database(name, found.charset, found.collation)
                for name, found in server_queries.databases(session).items()
            ]
        tables = self._tables(server)
        if not tables.names():
            tables.put_databases(databases)
        current = CurrentStructure(control.database, mariadb=mariadb)
        self._structures = TableStructures(pipeline_settings(control, self.dbms), tables, current)
        self._factory = EventFactory(
            self._allowed,
            ConnectionProperties(str(self._ctl_settings.get("charset", "utf8")), self.dbms),
            self._options,
        )
        self._begin_at(self._start)

    def _replica(self, config: Configuration) -> Configuration:
        """Return the configuration with the data about the replica that the server receives."""
        report, database = self.report_slave, config.database
        replica = replace(
            database.replica,
            host=report.hostname if report else database.replica.host,
            user=report.username if report else database.replica.user,
            port=report.port if report else database.replica.port,
            uuid=self.slave_uuid,
            dump_flags=0 if self._blocking else NON_BLOCK,
        )
        interval_ms = database.keep_alive_interval_ms
        if self.slave_heartbeat:
            limit = float(self._settings.get("read_timeout") or _LONGEST_HEARTBEAT_S) / 2
            interval_ms = max(1, int(min(limit, self.slave_heartbeat) * 1000 / 0.8))  # see BinlogStream
        return replace(config, database=replace(database, replica=replica, keep_alive_interval_ms=interval_ms))

    def _start_position(self, session: Session) -> SourceOffset:
        if self.auto_position:
            return SourceOffset("", _FIRST_POSITION, self.auto_position)
        if self.log_file is None:
            if self.is_mariadb:
                return SourceOffset("", _FIRST_POSITION)
            now = server_queries.current_position(session)
            return SourceOffset(now.file, now.pos if self._resume else _FIRST_POSITION)
        pos = self.log_pos if self._resume and self.log_pos else _FIRST_POSITION
        return SourceOffset(self.log_file, pos)

    def _tables(self, server: Server) -> Tables:
        """Return the structures of all tables at the start, as far as a schema history has them."""
        history = self._history
        if history is None:
            return Tables(server)
        store: SchemaHistoryStore = (
            history_store(from_properties({**history, "rowtide.sink": "python"}))
            if isinstance(history, Mapping)
            else FileSchemaHistory(Path(history))
        )
        start = self._start
        if start.gtids is None and not start.file:
            return Tables(server)  # nothing is before the oldest file
        gtids, place = start.gtids, f"{start.file}:{start.pos}"
        position = BinlogPosition(start.file, start.pos) if gtids is None else BinlogPosition("", 0, gtids)
        with HistorySource(server, store) as source:
            return source.tables(PointInTime(gtids or place, position))

    # --- the stream --------------------------------------------------------------------------------------------------

    def _begin_at(self, start: SourceOffset) -> None:
        self._progress = Progress(start)
        self._gtids = ExecutedGtids(start, self.dbms or "mysql", all_domains=False)
        self._decoder = EventDecoder(start.file)
        self._maps: dict[int, TableStructure] = {}

    def _read(self) -> Generator[Any, None, None]:
        """Yield the events that are wanted."""
        assert self.dbms is not None
        failures = 0
        while True:
            time.sleep(_WAIT_S if failures else 0)
            opened, start = time.monotonic(), self._progress.offset(None)
            self._begin_at(start)
            annotate = self.is_mariadb and self._annotate
            mariadb = self.dbms == "mariadb"
            stream = BinlogStream(self._config.database, start, mariadb=mariadb, send_annotations=annotate)
            self._stream = stream
            try:
                for packets in stream.events():
                    for packet in packets:
                        yield from self._packet(packet)
                        if self.is_past_end_log_pos:
                            return
            except StreamBroken as error:
                progressed = self._progress.offset(None) != start or time.monotonic() - opened > _STABLE_S
                failures = 0 if progressed else failures + 1
                if failures == _MOST_FAILURES:
                    raise
                log.warning("%s; resuming after %s:%s", error, self.log_file, self.log_pos)
            else:
                return

    def _packet(self, data: bytes) -> Iterator[Any]:
        """Yield the wanted events among those in one event of the stream."""
        decoder, progress = self._decoder, self._progress
        event = decoder.decode(data)
        header = event.header
        if isinstance(event, events.Rotate):  # the first one comes before the format
            checksum = header.size > HEADER_LENGTH + 8 + len(event.next_file.encode())
        else:
            checksum = isinstance(event, events.FormatDescription) or self._has_checksum()
        end = header.log_pos
        if not isinstance(event, events.TransactionPayload):
            if header.type_code not in HEARTBEATS:
                progress.advance(header)
            # MariaDB's events inside a transaction have no position; resume at that of the transaction.
            return self._one(event, EventPacket(data, checksum, 0 if header.artificial else end or progress.end))
        progress.at_payload(end - header.size, end, header.server_id, header.timestamp)
        return self._payload(event, end)

    def _has_checksum(self) -> bool:
        found = self._decoder.format
        return found is not None and found.checksum == "CRC32"

    def _payload(self, payload: events.TransactionPayload, end: int) -> Iterator[Any]:
        for data, event in self._decoder.unpack_packets(payload):
            done = isinstance(event, events.Xid)
            place = end if done else payload.header.start
            yield from self._one(event, EventPacket(data, checksum=False, log_pos=place))
        self._progress.completed()

    def _one(self, event: Event, packet: EventPacket) -> Iterator[Any]:
        """Process an event, and yield it if it is wanted."""
        progress, factory = self._progress, self._factory
        assert factory is not None
        skipped = bool(progress.events_to_skip) and (not progress.in_transaction or progress.skipping)
        self._follow(event, skipped=skipped)
        if isinstance(event, events.Rotate):
            factory.forget_tables()
            self.log_file, self.log_pos = event.next_file, event.next_position
        elif packet.log_pos or event.header.log_pos:
            self.log_pos = packet.log_pos or event.header.log_pos
        if self.end_log_pos and (self.log_pos or 0) >= self.end_log_pos:
            self.is_past_end_log_pos = True
        made = None
        if not skipped and not (self.skip_to_timestamp and event.header.timestamp < self.skip_to_timestamp):
            made = self._made(event, packet, factory)
        elif isinstance(event, events.FormatDescription):
            factory.mysql_version = _version(event.server_version)
        progress.completed()
        if made is not None:
            yield made

    def _made(self, event: Event, packet: EventPacket, factory: EventFactory) -> Any:
        """Return the event of mysql-replication; ``None`` if it is not wanted."""
        if isinstance(event, events.Rows):
            if not factory.wants_rows(event):
                return None
            structure = self._structure_of(event)
            if not self._selects(structure):
                return None
            table, rows = self._known(structure)
            return factory.rows(packet, event, structure, table, rows, self._progress.place)
        if isinstance(event, events.TableMap):
            if lib_row_events.TableMapEvent not in factory.allowed or not self._selects(event.structure):
                return None
            table, _ = self._known(event.structure)
            return factory.table(packet, event, table)
        if isinstance(event, events.Query):
            return factory.query(packet, event)
        if isinstance(event, events.RowsQuery):
            return factory.rows_query(packet, event)
        if isinstance(event, events.PreviousGtids):
            return factory.previous_gtids(packet, event)
        if isinstance(event, events.FormatDescription):
            factory.mysql_version = _version(event.server_version)
        return factory.other(packet)

    def _structure_of(self, event: events.Rows) -> TableStructure:
        """Return the TABLE_MAP of a row event.

        Raises:
            ProtocolError: the stream began after it.
        """
        try:
            return table_map_of(event, self._maps)
        except ProtocolError as error:
            if event.table_id in self._maps:
                raise
            raise ProtocolError(
                f"{error}: the stream began inside a statement. Begin at the position of the GTID or BEGIN event of "
                "the transaction",
                self._progress.place,
            ) from error

    def _known(self, structure: TableStructure) -> tuple[Any, Any]:
        assert self._structures is not None
        return self._structures.rows(structure, self._progress.source_position())

    def _selects(self, structure: TableStructure) -> bool:
        """Return whether the events of a table are wanted.

        As in mysql-replication, a selected table is never ignored.
        """
        database, table = structure.database, structure.table
        if self._only_tables is not None:
            wanted = table in self._only_tables
        else:
            wanted = self._ignored_tables is None or table not in self._ignored_tables
        if not wanted:
            return False
        if self._only_schemas is not None:
            return database in self._only_schemas
        return self._ignored_schemas is None or database not in self._ignored_schemas

    def _follow(self, event: Event, *, skipped: bool) -> None:
        """Follow positions, transactions and structures."""
        progress = self._progress
        match event:
            case events.TableMap():
                self._maps[event.table_id] = event.structure
            case events.Query():
                self._statement(event, skipped=skipped)
            case events.Xid() | events.XaPrepare():
                self._ended()
            case events.Gtid():
                executed = self._gtids.add(event)
                if executed is None:
                    progress.anonymous_started(None)
                else:
                    progress.gtid_started(event.text, *executed, None)
            case events.MariadbGtidEvent():
                executed = self._gtids.add(event)
                if executed is not None:
                    progress.gtid_started(event.text, *executed, None)
                if not event.standalone:
                    progress.began(None)
            case events.PreviousGtids() | events.MariadbGtidList() if not event.header.artificial:
                self._gtids.start_of_file(event)
            case events.Incident():
                raise ProtocolError(
                    f"the server reports that changes are missing from its binlog (INCIDENT {event.number}: "
                    f"{event.message}). Copy the tables again, and begin after this event",
                    progress.place,
                )
            case events.Rotate():
                progress.rotated(event.next_file, event.next_position)
                self._maps.clear()

    def _statement(self, event: events.Query, *, skipped: bool) -> None:
        progress, word = self._progress, event.statement[:24].lstrip().upper()
        if is_begin(word) or word.startswith((b"XA START", b"XA BEGIN")):
            progress.began(event.thread_id)
        elif is_end(word):
            self._ended()
        elif word.startswith(b"XA END"):
            return
        elif is_xa(word):
            progress.executed()
        else:
            assert self._structures is not None
            if not skipped:
                self._structures.apply(event, progress.place)
            progress.executed()

    def _ended(self) -> None:
        self._progress.committed(self._progress.end)
        self._maps.clear()


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split("-", maxsplit=1)[0].split("."))
