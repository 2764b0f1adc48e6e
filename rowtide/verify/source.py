"""Reads captured tables in chunks of their keys, and makes the records that the connector would send."""

import random
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple

from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.records.change import Change
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.connector.records.lossy_conversions import may_name_another_row
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.snapshot.chunks.key_condition import key_condition
from rowtide.connector.snapshot.chunks.key_ranges import Bound, KeyRanges, row_key
from rowtide.connector.snapshot.incremental.reading.table_view import TableView, open_table_view
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.connector.snapshot.structure import plan
from rowtide.connector.snapshot.structure.current_table import current_table
from rowtide.connector.snapshot.view.committed_position import committed_position
from rowtide.connector.source import server_queries
from rowtide.connector.source.session import Session
from rowtide.decoder.decoder import Decoder
from rowtide.schema_history.model import Column, Table, TableId
from rowtide.verify.errors import Undecided
from rowtide.verify.pace import Pace
from rowtide.verify.positions import ServerIdentity
from rowtide.verify.routing import Routing, routing

_CHUNK_ROWS = 5_000
_COMMITS_S = 60
_ENGINE = re.compile(r"\n\).*?\bENGINE=(\w+)")
_TRANSACTIONAL = frozenset({"innodb", "rocksdb"})


class SentRecord(NamedTuple):
    """A record as the connector would send it for a row of the source."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


class RowChunk(NamedTuple):
    """A part of a table.

    Attributes:
        rows: its rows.
        upper: its last key; ``None`` for the last chunk.
    """

    rows: Iterator[Rows]
    upper: Bound | None


@dataclass(frozen=True, slots=True)
class SourceTable:
    """A captured table.

    Attributes:
        structure: its structure.
        created: its SHOW CREATE TABLE.
        form: makes records of its rows.
        routing: the topics of its records.
        key: the columns that identify a row, if the key of its records has all of them.
        key_columns: the columns of the key of its records, in the key's order.
        ranges: the ranges of its key; ``None`` if it is read in one part.
        hidden_key: whether the key of the records differs from that of the row, because a column converter changes it.
        transactional: whether its storage engine supports consistent views; otherwise, rows are read as they are then.
    """

    structure: Table
    created: str
    form: SnapshotTable
    routing: Routing
    key: tuple[Column, ...]
    key_columns: tuple[Column, ...]
    ranges: KeyRanges | None
    hidden_key: bool = False
    transactional: bool = True

    @property
    def id(self) -> TableId:
        """Its name."""
        return self.structure.id


def keys_condition(table: SourceTable, keys: Sequence[Sequence[str]]) -> str | None:
    """Return the condition for the rows of some keys, as SQL; ``None`` if the server may miss one of them.

    Args:
        table: the table.
        keys: texts of the columns of the key of its records.
    """
    if table.hidden_key:
        return None
    places = {column.name: place for place, column in enumerate(table.key_columns)}
    parts = [[key[places[column.name]] for column in table.key] for key in keys]
    columns = {one.column.name: one for one in table.form.records.columns}
    records = [columns[column.name] for column in table.key]
    for part in parts:
        pairs = zip(records, part, strict=True)
        if any(may_name_another_row(record, text[1:], table.form.settings) is not None for record, text in pairs):
            return None
    return key_condition(table.key, parts, table.form.settings.rules.values)


class TableSource:
    """The server of a connector.

    Args:
        config: the configuration of the connector.
        settings: its settings for records.
        pace: limits the reading of chunks.

    Raises:
        DatabaseUnreachableError: the server cannot be reached.
    """

    def __init__(self, config: Configuration, settings: PipelineSettings, pace: Pace) -> None:
        self._pace = pace
        self._config, self._settings = config, settings
        self._transformer = None if settings.transforms is None else Transformer(settings.transforms)
        self.session = Session(config.database, mariadb=config.flavor is Flavor.MARIADB)

    def close(self) -> None:
        """Close the connection."""
        self.session.close()

    def captured(self) -> list[TableId]:
        """Return the captured tables, without those of signals."""
        listed = server_queries.tables(self.session, list(server_queries.databases(self.session)))
        return plan.captured_tables(listed, self._settings)

    def table(self, name: TableId) -> SourceTable:
        """Read the structure of a table.

        Raises:
            SnapshotError: it does not exist, may not be read, or cannot be parsed.
        """
        settings = self._settings
        structure, text = current_table(self.session, name)
        if structure is None:
            raise Undecided("the structure of the table cannot be parsed")
        topic, augment = (
            settings.naming.data_change(name.database, name.table),
            settings.naming.key_augment(name.database, name.table),
        )
        records = table_schema(structure, topic, settings.rules, "snapshot", augment=augment)
        key_columns = tuple(structure.columns[index] for index in records.key_columns)
        key, ranges = row_key(structure), None
        if key is not None:
            try:
                ranges = key.ranges(name)
            except ValueError:  # a type that cannot be compared exactly
                ranges = None
        identifies = key is not None and {one.name for one in key.columns} <= {one.name for one in key_columns}
        columns = key.columns if key is not None and identifies else ()
        form = SnapshotTable(structure, settings)
        changed = {one.index for one in records.columns if one.type.is_custom}
        hidden = not changed.isdisjoint(records.key_columns)
        engine = _ENGINE.search(text)
        transactional = engine is None or engine[1].lower() in _TRANSACTIONAL
        found = routing(form, self._config.transforms)
        return SourceTable(structure, text, form, found, columns, key_columns, ranges, hidden, transactional)

    def refuse_changed(self, table: SourceTable) -> None:
        """Raise ``Undecided`` if the table was altered or dropped since its structure was read."""
        try:
            text = server_queries.create_statement(self.session, table.id)
        except server_queries.TableGone as error:
            raise Undecided("the table was dropped or renamed during the run") from error
        if without_counter(text) != without_counter(table.created):
            raise Undecided("the table was altered during the run: run the command again")

    def position(self) -> SourceOffset:
        """Return a binlog position; later queries see all changes before it."""
        position = committed_position(self.session, _COMMITS_S, "run the command when none is long")
        return replace(position, server=server_queries.server_id(self.session))

    def server(self) -> ServerIdentity:
        """Return the server that answers the queries."""
        identity = server_queries.server_identity(self.session.client, mariadb=self.session.mariadb)
        return ServerIdentity(identity, server_queries.server_id(self.session))

    @contextmanager
    def view(self, table: SourceTable) -> Iterator[TableView]:
        """Open a view of a table. Its positions have GTIDs if the server has them."""
        position = replace(server_queries.end_of_binlog(self.session), server=None)
        try:
            yield open_table_view(self.session, table.id, position, _COMMITS_S)
        finally:
            self.session.execute("ROLLBACK")

    def after_reading(self, table: SourceTable, view: TableView) -> TableView:
        """Return where the rows are that were read in a view.

        Engines without transactions, such as MyISAM, have no views: their rows are as of the moment of reading.
        """
        if table.transactional:
            return view
        with self.view(table) as later:
            return replace(view, end=later.end)

    def chunks(
        self, table: SourceTable, where: str = "", sample: float = 1.0, lower: Bound | None = None
    ) -> Iterator[RowChunk]:
        """Read the table, chunk by chunk.

        Args:
            table: the table.
            where: a condition for rows, as SQL.
            sample: the part of the chunks to read, chosen at random.
            lower: the key after which to begin; ``None`` for the beginning.
        """
        if table.ranges is None:
            yield RowChunk(self.rows(table, "TRUE", where), None)
            return
        while True:
            with self._pace.chunk():
                found = self.session.query(table.ranges.bound_query(lower, _CHUNK_ROWS))
                upper = table.ranges.bound(found[0]) if found else None
                if sample == 1 or random.random() < sample:
                    yield RowChunk(self.rows(table, table.ranges.where(lower, upper), where), upper)
            if upper is None:
                return
            lower = upper

    def rows(self, table: SourceTable, where: str, more: str = "") -> Iterator[Rows]:
        """Read the rows that match two conditions."""
        condition = f"({where})" + (f" AND ({more})" if more else "")
        return self.session.rows(table.id, table.form.query(condition), table.form.reader)

    def records(self, table: SourceTable, rows: Rows) -> Iterator[SentRecord]:
        """Yield the records that the connector would send for rows."""
        batch = table.form.unplaced(rows, time.time_ns)
        if self._transformer is not None:
            batch = self._transformer.batch(batch)
        for piece in batch.destinations():
            for key, value, headers in piece.messages:
                yield SentRecord(piece.topic, key, value, headers)

    def changes(self, table: SourceTable, blocks: Iterable[Rows], decoder: Decoder) -> Iterator[tuple[str, Change]]:
        """Yield the changes of the records that the connector would send for rows, each with its topic."""
        for rows in blocks:
            for topic, key, value, headers in self.records(table, rows):
                change = decoder.decode(topic, key, value, headers)
                if change is not None:
                    yield topic, change


def without_counter(statement: str) -> str:
    """Return SHOW CREATE TABLE without the next number of AUTO_INCREMENT, which changes with each row."""
    head, separator, options = statement.rpartition("\n)")
    return head + separator + " ".join(one for one in options.split(" ") if not one.startswith("AUTO_INCREMENT="))
