"""The current structure of a table, returned only if it is certainly the structure of older rows as well.

SHOW CREATE TABLE returns the current structure. It is also that of rows at an earlier binlog position if no statement
between the two could have changed the table; these statements are read over a second connection. Statements that are
not in the binlog (``SET sql_log_bin=0``) are covered by the table's creation time, which ALTER TABLE updates, too: it
must not be later than the rows.
"""

import contextlib
import logging
import time

import pymysql

from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import ConnectorError, StructureUncertain
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import HEADER, ROWS_TYPES, EventType
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source import server_queries
from rowtide.connector.source.binlog_end import bytes_behind
from rowtide.connector.source.binlog_stream import StreamBroken, second_stream
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.connector.source.enum_labels import with_labels
from rowtide.connector.source.files.statements import StatementReader
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import file_number
from rowtide.schema_history.queries.table_changes import may_change
from rowtide.schema_history.server.query_event import Server

log = logging.getLogger(__name__)

_MOST_BYTES = 1 << 30
"""Bytes of binlog that are read at most to prove that nothing has changed; this takes some ten seconds."""
_LONGEST_S = 120.0
_LOCK_WAIT_S = 10
_SKIPPED = ROWS_TYPES | {EventType.TABLE_MAP}


class CurrentStructure:
    """Looks up structures on one server.

    Args:
        config: address, account and time limits.
        mariadb: whether the server is MariaDB.
    """

    def __init__(self, config: DatabaseConfig, *, mariadb: bool) -> None:
        self._config = config
        self._mariadb = mariadb

    def statement(self, table: TableId, since: SourcePosition) -> str:
        """Return the text of SHOW CREATE TABLE, if the table already had that structure at an earlier position.

        Args:
            table: the table.
            since: the position of the rows.

        Raises:
            StructureUncertain: the table may have been changed since, or the server refuses a query; the message says
                why.
            StreamBroken: a connection was lost; a later attempt may succeed.
        """
        try:
            with Session(self._config, mariadb=self._mariadb) as session:
                server = server_queries.server(session)
                session.execute(f"SET SESSION lock_wait_timeout = {_LOCK_WAIT_S}")  # an ALTER TABLE may be running
                text = with_labels(session, table, server_queries.create_statement(session, table), server)
                _refuse_if_altered(session, table, since)
                end = server_queries.current_position(session)
                distance = bytes_behind(server_queries.binlog_files(session.client), since.file, since.pos)
            if distance is None:
                raise StructureUncertain(f"the server no longer has the binlog file {since.file}")
            if distance > _MOST_BYTES:
                raise StructureUncertain(f"the rows are {distance >> 20} MiB before the end of the binlog")
            self._refuse_if_changed(table, since, end, server)
        except StreamBroken:
            raise
        except DatabaseUnreachableError as error:
            kind = StreamBroken if error.retriable else StructureUncertain
            raise kind(f"the structure of {table} cannot be looked up: {error}") from error
        except (ConnectorError, pymysql.MySQLError, OSError) as error:
            raise StructureUncertain(f"the server cannot be queried: {_reason(error)}") from error
        return text

    def is_view(self, name: TableId) -> bool | None:
        """Return whether a name is currently that of a view; ``None`` if the account sees neither a table nor a view.

        Raises:
            StreamBroken: the connection was lost; a later attempt may succeed.
        """
        try:
            with Session(self._config, mariadb=self._mariadb) as session:
                names = (
                    f"TABLE_SCHEMA = {session.literal(name.database)} AND TABLE_NAME = {session.literal(name.table)}"
                )
                found = session.query(f"SELECT TABLE_TYPE = 'VIEW' FROM information_schema.TABLES WHERE {names}")
                return bool(found[0][0]) if found else None
        except DatabaseUnreachableError as error:
            raise StreamBroken(f"cannot determine whether {name} is a view: {error}") from error
        except (ConnectorError, pymysql.MySQLError, OSError) as error:
            log.warning("cannot determine whether %s is a view: %s", name, _reason(error))
            return None

    def _refuse_if_changed(self, table: TableId, since: SourcePosition, end: SourceOffset, server: Server) -> None:
        """Read every statement between the rows and the end of the binlog."""
        stream = second_stream(self._config, SourceOffset(since.file, since.pos), mariadb=self._mariadb)
        reader = StatementReader(EventDecoder(since.file))
        decoder = reader.decoder
        limit = time.monotonic() + _LONGEST_S
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                for packet in packets:
                    if HEADER.unpack_from(packet)[1] in _SKIPPED:
                        continue
                    for statement in reader.statements(decoder.decode(packet)):
                        if may_change(statement.event, table, server):
                            at = statement.event.position
                            raise StructureUncertain(f"a statement after these rows may have changed it (at {at})")
                    if (file_number(decoder.file) or 0) > (file_number(end.file) or 0):
                        return
                    if decoder.file == end.file and decoder.position >= end.pos:
                        return
                if time.monotonic() > limit:
                    raise StructureUncertain("the binlog after these rows takes too long to read")


def _refuse_if_altered(session: Session, table: TableId, since: SourcePosition) -> None:
    names = f"TABLE_SCHEMA = {session.literal(table.database)} AND TABLE_NAME = {session.literal(table.table)}"
    rows = session.query(f"SELECT UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES WHERE {names}")
    if not rows or rows[0][0] is None:
        raise StructureUncertain("the server does not report when it was last altered")
    if int(rows[0][0]) > since.ts_us // 1_000_000:
        raise StructureUncertain(
            "it was altered after these rows were written, by a statement that is not in the binlog"
        )


def _reason(error: Exception) -> str:
    return str(error.args[-1] if isinstance(error, pymysql.MySQLError) and error.args else error)
