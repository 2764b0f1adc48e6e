"""Runs statements on a real server, and reads their events in the binlog and the resulting structure.

The results have the format of the recorded statements, see ``ddl_corpus``.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pymysql

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import Event, Query, Rotate
from rowtide.connector.protocol.statements import is_begin, is_end, is_xa, query_event
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.connector_properties import CONNECTORS, address
from tests.support.received import received

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

SYSTEM = "('mysql', 'sys', 'information_schema', 'performance_schema')"
_COLUMNS = {
    "name": "column_name",
    "ordinal_position": "ordinal_position",
    "column_type": "column_type",
    "data_type": "data_type",
    "is_nullable": "is_nullable",
    "column_default": "column_default",
    "extra": "extra",
    "charset": "character_set_name",
    "collation": "collation_name",
    "comment": "column_comment",
    "generation_expression": "generation_expression",
}
_KINDS = "('BASE TABLE', 'SYSTEM VERSIONED', 'SEQUENCE')"


class DdlRecorder:
    """A session on a server, and a connection that reads its binlog.

    Args:
        server: a running server.
        flavor: the flavor of the server.
    """

    def __init__(self, server: SqlServer, flavor: Flavor) -> None:
        self.flavor = flavor
        self._server = server
        self._admin = server.connect()
        self.session = server.connect()
        file, pos = self._position()
        config = from_properties(
            {
                "connector.class": CONNECTORS[flavor.value],
                "topic.prefix": "p",
                **address(server),
                "database.server.id": "7771",
                "bootstrap.servers": "none:1",
                "schema.history.internal.kafka.topic": "h",
                "include.schema.changes": "false",
            }
        )
        self._config, self._start = config, SourceOffset(file, pos)
        self._stream = BinlogStream(config.database, SourceOffset(file, pos), mariadb=flavor is Flavor.MARIADB)
        self._decoder = EventDecoder(file)
        self._packets = self._read()

    def close(self) -> None:
        """Close the connections."""
        self._stream.close()
        self.session.close()
        self._admin.close()

    def renew(self) -> None:
        """Start a new session with the defaults of the server."""
        self.session.close()
        self.session = self._server.connect()

    def run(self, statement: str) -> str | None:
        """Execute a statement; returns the server's error, if any."""
        try:
            with self.session.cursor() as cursor:
                cursor.execute(statement)
                while cursor.nextset():
                    pass
        except pymysql.MySQLError as error:
            return " ".join(map(str, error.args))
        return None

    def events(self) -> list[QueryEvent]:
        """The statements in the binlog since the last call."""
        file, pos = self._position()
        found = []
        while (self._file_number(self._decoder.file), self._at) < (self._file_number(file), pos):
            event = next(self._packets)
            if isinstance(event, Query):
                word = event.statement[:24].lstrip().upper()
                if not (is_begin(word) or is_end(word) or is_xa(word)):
                    found.append(query_event(event, f"{self._decoder.file}:{event.header.log_pos}"))
        return found

    def outputs(self) -> Iterator[Output]:
        """The outputs of a connector for all events since the recorder was created."""
        file, pos = self._position()
        tables = Tables(Server(self.flavor, self._server.version))
        pipeline = Pipeline(pipeline_settings(self._config, "run"), tables, self._start, time.time_ns)
        for packets in self._stream.events():
            for packet in packets:
                yield from received(pipeline, packet)
            if (pipeline.progress.file, pipeline.progress.pos) >= (file, pos) or not packets:
                return

    _at = 0

    def _read(self) -> Iterator[Event]:
        for packets in self._stream.events():
            for packet in packets:
                event = self._decoder.decode(packet)
                self._at = event.header.log_pos or self._at
                if isinstance(event, Rotate):
                    self._decoder.file, self._at = event.next_file, event.next_position
                yield event

    @staticmethod
    def _file_number(name: str) -> int:
        return int(name.rpartition(".")[2] or 0)

    def _rows(self, statement: str) -> list[tuple[Any, ...]]:
        with self._admin.cursor() as cursor:
            cursor.execute(statement)
            return list(cursor.fetchall())

    def _position(self) -> tuple[str, int]:
        what = "MASTER" if self.flavor is Flavor.MARIADB else "BINARY LOG"
        row = self._rows(f"SHOW {what} STATUS")[0]
        return str(row[0]), int(row[1])

    def databases(self) -> dict[str, dict[str, str]]:
        """All databases with their character sets and collations."""
        found = self._rows(
            "SELECT schema_name, default_character_set_name, default_collation_name FROM information_schema.schemata "
            f"WHERE schema_name NOT IN {SYSTEM}"
        )
        return {name: {"charset": charset, "collation": collation} for name, charset, collation in found}

    def tables(self) -> dict[str, dict[str, Any]]:
        """All tables as in information_schema."""
        found: dict[str, dict[str, Any]] = {}
        for database, table, kind, collation, comment in self._rows(
            "SELECT table_schema, table_name, table_type, table_collation, table_comment "
            f"FROM information_schema.tables WHERE table_schema NOT IN {SYSTEM} AND table_type IN {_KINDS}"
        ):
            found[f"{database}.{table}"] = {
                "columns": [],
                "primary_key": [],
                "unique_keys": {},
                "type": kind,
                "charset": collation and collation.split("_")[0],
                "collation": collation,
                "comment": comment,
            }
        self._add_columns(found)
        self._add_keys(found)
        return found

    def _add_columns(self, found: dict[str, dict[str, Any]]) -> None:
        names = _COLUMNS | ({"srs_id": "srs_id"} if self.flavor is Flavor.MYSQL else {})
        for database, table, *values in self._rows(
            f"SELECT table_schema, table_name, {', '.join(names.values())} FROM information_schema.columns "
            f"WHERE table_schema NOT IN {SYSTEM} ORDER BY table_schema, table_name, ordinal_position"
        ):
            if f"{database}.{table}" in found:
                found[f"{database}.{table}"]["columns"].append(dict(zip(names, values, strict=True)))

    def _add_keys(self, found: dict[str, dict[str, Any]]) -> None:
        expression = "expression" if self.flavor is Flavor.MYSQL else "NULL"
        for database, table, index, column, length, text in self._rows(
            f"SELECT table_schema, table_name, index_name, column_name, sub_part, {expression} "
            f"FROM information_schema.statistics WHERE table_schema NOT IN {SYSTEM} AND non_unique = 0 "
            "ORDER BY table_schema, table_name, index_name, seq_in_index"
        ):
            if f"{database}.{table}" not in found:
                continue
            name = f"({text})" if column is None else f"{column}({length})" if length else column
            place = found[f"{database}.{table}"]
            keys = place["primary_key"] if index == "PRIMARY" else place["unique_keys"].setdefault(index, [])
            keys.append(name)

    def create(self, database: str, table: str) -> str:
        """SHOW CREATE TABLE."""
        name = ".".join("`" + part.replace("`", "``") + "`" for part in (database, table))
        return str(self._rows(f"SHOW CREATE TABLE {name}")[0][1])
