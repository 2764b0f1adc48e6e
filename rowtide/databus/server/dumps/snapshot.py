"""Makes dumps from the connector's snapshots. Their rows have the same texts as in the stream."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from itertools import chain, islice
from typing import Any, cast

from rowtide.connector.config import Configuration
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.wiring import TopicAdmins, missing_topics
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.rows.text_protocol_rows import ResultColumn, ResultReader, Rows, result_value_reader
from rowtide.connector.snapshot import Decision
from rowtide.connector.snapshot.initial import Snapshot
from rowtide.connector.snapshot.records import ReadTime, SnapshotTable, groups_by_size
from rowtide.connector.snapshot.structure.plan import StructureStatement
from rowtide.connector.source import server_queries
from rowtide.connector.source.server_queries import ListedTable
from rowtide.connector.source.session import Session
from rowtide.databus.errors import DumpDiscarded, TopicError
from rowtide.databus.events import INSERT, Position
from rowtide.databus.server.cells import cell_output
from rowtide.databus.server.dumps.source import Dump, DumpPart
from rowtide.databus.server.record_form import RowsEventEncoder, published
from rowtide.envelope import source
from rowtide.schema_history.model import Table
from rowtide.schema_history.store.topic_reader import TopicReader, TopicReadError
from rowtide.topics import errors as topics

_PART_BYTES = 1 << 16
"""Bytes of the values in a part, in base64."""


class SnapshotSource:
    """Takes dumps of the captured tables.

    Args:
        config: of the connector that publishes the changes.
        topic: the topic that it publishes to.
    """

    def __init__(self, config: Configuration, topic: str) -> None:
        self._config = config
        self._topic = topic
        self.connector = config.flavor.value

    @contextmanager
    def dump(self) -> Iterator[Dump]:
        """Take a snapshot.

        The offset is read first: the events before it are from transactions that the snapshot contains.

        Raises:
            SnapshotError, DatabaseUnreachableError: the server cannot be read.
            TopicError: the topic cannot be read.
            DumpDiscarded: connections lead to different servers.
        """
        offset = self._end()
        config = self._config
        settings = pipeline_settings(config, "dump", changes=True)
        snapshot = DumpSnapshot(
            config.database,
            replace(settings, exact_values=True),  # as in the stream
            replace(config.snapshot, resumable=False),
            Decision(structure=True, rows=True, position=None, stream=True),
            time.time_ns,
            form=DumpTable,
        )
        with closing(snapshot.outputs()) as outputs:
            first = [*islice(outputs, 1)]  # after the position
            position = Position(snapshot.offset.file, snapshot.offset.pos)
            yield Dump(position, offset, _parts(chain(first, outputs)), snapshot.taken(), self._end)

    def _end(self) -> int:
        """Return the offset after the last message. The topic is created if it is missing: clients begin in it."""
        kafka = self._config.kafka
        try:
            missing_topics(self._config, TopicAdmins(self._config))([self._topic])
            found = TopicReader(kafka.consumer, kafka.admin).extents(self._topic)
        except (topics.TopicError, TopicReadError) as error:
            raise TopicError(str(error)) from error
        return 0 if found is None else found[0].high  # a broker may create it with the first message


def _parts(outputs: Iterator[Output]) -> Iterator[DumpPart]:
    for output in outputs:
        if isinstance(output, Batch):
            yield from cast("Sequence[DumpPart]", output.changes)


class DumpSnapshot(Snapshot):
    """A snapshot with the ``server_id`` of its server, which is also in the header of the stream's binlog files."""

    _server: tuple[str, str] | None = None  # what identifies the server, and its ``server_id``

    def statements(self, session: Session, listed: Sequence[ListedTable]) -> list[StructureStatement]:
        """Yield the statements of any snapshot, and note the server."""
        identity = server_queries.server_identity(session.client, mariadb=session.mariadb)
        self._server = identity, server_queries.server_id(session)
        return super().statements(session, listed)

    def taken(self) -> SourceOffset:
        """Return the position with the ``server_id`` as its server, after the first output.

        Raises:
            DumpDiscarded: the structures were read on a server other than that of the position.
        """
        assert self._server is not None, "the structures are read before the first output"
        identity, server_id = self._server
        if identity != self.offset.server:
            raise DumpDiscarded(
                f"the dump is discarded: its connections lead to different servers ({self.offset.server}, {identity}). "
                "Set database.hostname to one of them"
            )
        return replace(self.offset, server=server_id)


class DumpTable(SnapshotTable):
    """A table whose rows become parts of a dump."""

    def __init__(self, table: Table, settings: PipelineSettings, *, custom_query: bool = False) -> None:
        super().__init__(table, settings, custom_query=custom_query)
        self._published = published(self._records)
        self._encode = RowsEventEncoder(self._records)
        self.columns = [record.column for record in self._published]

    def reader(self, names: Sequence[str]) -> ResultReader:
        """Compile a reader of cells."""
        columns = [ResultColumn(record.column, cell_output(record), "") for record in self._published]
        return result_value_reader(columns, (), names)

    def messages(self, rows: Rows, marker: source.Snapshot, read_time: ReadTime) -> Sequence[Any]:
        """Return the cells of rows, without keys."""
        return [row for _, row in rows]

    def batch(self, messages: Sequence[Any], ts_ms: int, offset: SourceOffset) -> Batch:
        """Return the parts instead of Python values."""
        parts = [DumpPart(self._encode(INSERT, rows), len(rows)) for rows in groups_by_size(messages, _PART_BYTES)]
        size = sum([len(part.event) for part in parts])
        return Batch(self.topic, 0, (), offset, size, ts_ms, changes=cast("Sequence[Change]", parts))
