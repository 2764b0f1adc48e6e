"""Makes the records of an event that is a dead letter as the stream would have made them."""

import io
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from rowtide.connector.config import Configuration
from rowtide.connector.engine.wiring import history_source
from rowtide.connector.errors import EngineError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.binlog_file import MAGIC, binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events.classes import Event, Gtid, TransactionPayload
from rowtide.connector.protocol.events.log_events import FormatDescription
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables, as_described_by_snapshot
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.store.history_record import HistoryRecord, parse_record

Structures = Callable[[SourceOffset, str], Tables]
"""Returns every table's structure at a position; the text is the version of the server."""


class RecordedStructures:
    """The structures in the schema history of a connector, which is read once.

    Args:
        config: names the schema history.
        given: structures that take the place of those in the schema history.
    """

    def __init__(self, config: Configuration, given: Tables | None = None) -> None:
        self._config, self._given = config, given
        self._records: list[HistoryRecord] | None = None
        self._recovered: tuple[Any, Tables] | None = None

    def __call__(self, offset: SourceOffset, version: str) -> Tables:
        """Return the structures at a position.

        Args:
            offset: the position.
            version: the version of the server.

        Raises:
            EngineError: the connector keeps its schema history in memory only.
            SchemaHistoryError: the schema history cannot be read.
        """
        key = offset.to_json(), version
        if self._recovered is None or self._recovered[0] != key:
            self._recovered = key, self._tables(offset, version)
        return self._recovered[1].copy()

    def _tables(self, offset: SourceOffset, version: str) -> Tables:
        history = self._config.history
        if history.topic is None and history.file is None:
            raise EngineError(
                "the schema history of the connector is in memory only, so it is lost. Give the tables with "
                "--structures, and a schema.history.internal in a topic or a file"
            )
        with history_source(self._config) as source:
            if self._records is None:
                self._records = list(source.store.replay(parse_record))
            server = replace(source.server, version=version)
        counted = self._config.capture.counted_sources
        tables = recover(
            self._records,
            server,
            BinlogPosition.from_map(offset.to_map()),
            prefer_ddl=history.prefer_ddl,
            keep=None if counted is None else counted.selects,
        )
        for table in self._given or ():
            tables.put(as_described_by_snapshot(table, server))
        return tables


def event_batches(value: bytes, before: str, settings: PipelineSettings, structures: Structures) -> list[Batch]:
    """Return the records of the event in a dead letter, before transforms and converters.

    Args:
        value: a binlog file of the event and those that it depends on.
        before: the resume position before the event, as JSON.
        settings: the connector's settings for records.
        structures: every table's structure at a position.

    Raises:
        ValueError: the dead letter is not such a file.
        ConnectorError, SchemaHistoryError: the event still cannot be handled.
    """
    if not value.startswith(MAGIC) or not before:
        raise ValueError(
            "it has only the event, because an earlier version of rowtide wrote it: read the table again by an "
            "incremental snapshot (rowtide signal execute-snapshot)"
        )
    start = SourceOffset.from_json(before)
    packets = list(binlog_packets(io.BytesIO(value), "the dead letter"))
    decoder = EventDecoder(start.file)
    form = decoder.decode(packets[0])
    if not isinstance(form, FormatDescription):
        raise ValueError("it does not begin with a FORMAT_DESCRIPTION")  # noqa: TRY004 - damaged data
    tables = structures(start, form.server_version)
    # A pipeline that starts inside a transaction skips the events before the start; here these are all its events.
    start = replace(start, event=_events_before(decoder, packets[1:]))
    strict = replace(
        settings, processing_failure="fail", inconsistent_schema="fail", dead_letters=None, transforms=None
    )
    pipeline = Pipeline(strict, tables, start, time.time_ns)
    pipeline.enter_file(start.file, decoder)
    found: list[Batch] = []
    for packet in packets[1:]:
        for outputs in pipeline.receive_settled(packet):
            found += [one for one in (*outputs, *pipeline.xa.take()) if isinstance(one, Batch) and one.messages]
    return found


def _events_before(decoder: EventDecoder, packets: list[bytes]) -> int:
    """Return the number of events before the last one in its transaction, as offsets count them."""
    number = 0
    for packet in packets[:-1]:
        number += not isinstance(decoder.decode(packet), Gtid)
    last: Event = decoder.decode(packets[-1])
    if isinstance(last, TransactionPayload):
        number += sum(1 for _ in decoder.packets_in(last)) - 1
    return number
