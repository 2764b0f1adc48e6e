"""The recorded inputs: events and transactions of the golden binlogs, and the statements of the DDL corpora."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice

from rowtide.connector.config import from_properties
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import ConnectorError
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ROWS_TYPES, EventType
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source.files.statements import StatementReader
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.queries.apply import event_of, tables_of_header
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.ddl.corpus import events as corpus_events
from tests.support.ddl.corpus import name_of, recordings
from tests.support.mysql.packets import captured, golden_files, golden_packets
from tests.support.recordings.golden import Case, cases

_EVENTS_PER_TYPE = 12
_TRANSACTIONS_PER_CASE = 12
_LONGEST = 8192
_STATEMENTS, _STATEMENTS_PER_FILE = 4000, 150
_EVERY, _HISTORY_PER_CASE, _OFFSETS = 4, 40, 300


@dataclass(frozen=True, slots=True)
class Transaction:
    """The table maps and rows events of a transaction, and what is needed to decode them.

    Attributes:
        settings: of the records.
        tables: the structures before it.
        format: the FORMAT_DESCRIPTION of its file.
        events: in order.
    """

    settings: PipelineSettings
    tables: Tables
    format: bytes
    events: tuple[bytes, ...]


@cache
def single_events(server: str) -> tuple[bytes, ...]:
    """Short events of every type that a server wrote, in the recorded files and in the captured streams."""
    found: dict[int, dict[bytes, None]] = {}
    packets = list(captured(server))
    for file in golden_files():
        if file.parts[-4].startswith("mariadb") == (server == "mariadb"):
            packets += golden_packets(file)
    for packet in packets:
        kept = found.setdefault(packet[4], {})
        if len(packet) < _LONGEST and len(kept) < _EVENTS_PER_TYPE:
            kept[packet[:-4]] = None
    return tuple(event for kept in found.values() for event in kept)


@cache
def transactions(case: str) -> tuple[Transaction, ...]:
    """The first transactions of a case that change rows; none of a case with properties that are not supported."""
    with suppress(ConfigurationError):
        return tuple(_transactions(Case(case)))
    return ()


@cache
def row_cases() -> tuple[str, ...]:
    """The cases whose transactions are used."""
    return tuple(name for name in cases() if not name.startswith(("incremental", "signal-kafka")))


def _transactions(case: Case) -> Iterator[Transaction]:
    settings = replace(
        pipeline_settings(from_properties(case.properties()), "run"), transforms=None, processing_failure="fail"
    )
    reader = StatementReader(EventDecoder())
    tables = Tables(Server(Flavor(settings.connector)))
    waiting: list[bytes] = []
    count, head = 0, b""
    for file in sorted(case.binlog.glob("*.gz")):
        for packet in golden_packets(file):
            if packet[4] == EventType.FORMAT_DESCRIPTION:
                head = packet
            if packet[4] in ROWS_TYPES or packet[4] in (EventType.TABLE_MAP, EventType.TRANSACTION_PAYLOAD):
                waiting.append(packet)
            elif waiting:
                if sum(map(len, waiting)) < _LONGEST and count < _TRANSACTIONS_PER_CASE:
                    count += 1
                    yield Transaction(settings, tables.copy(), head, tuple(waiting))
                waiting = []
            try:
                for statement in reader.statements(reader.decoder.decode(packet)):
                    tables.apply(statement.event)
            except (ConnectorError, SchemaHistoryError):
                continue


@cache
def recorded_statements(flavor: Flavor, files: int | None = None) -> tuple[tuple[Tables, QueryEvent], ...]:
    """Statements of the recordings of a server, each with the tables before it; of all files or of the first ones."""
    return tuple(islice(_statements(flavor, files), _STATEMENTS))


def _statements(flavor: Flavor, files: int | None) -> Iterator[tuple[Tables, QueryEvent]]:
    for path in [path for path in recordings() if name_of(path).endswith(flavor.value)][:files]:
        lines = corpus_events(path)
        tables = tables_of_header(json.loads(next(lines)), flavor)
        for number, line in enumerate(lines):
            event = event_of(json.loads(line))
            if number < _STATEMENTS_PER_FILE and len(event.sql) < _LONGEST:
                yield tables.copy(), event
            with suppress(SchemaHistoryError):
                tables.apply(event)


@cache
def history_texts(flavor: Flavor) -> tuple[str, ...]:
    """Records of schema histories that Debezium wrote."""
    found = []
    for case in map(Case, cases()[::_EVERY]):
        if case.description.get("server", "mysql") == flavor.value:
            texts = [record["value"] for record in case.records if record["topic"] == "history" and record["value"]]
            found += texts[-_HISTORY_PER_CASE:]
    return tuple(found)


@cache
def offset_texts() -> tuple[str, ...]:
    """Offsets that Debezium stored."""
    found = {
        record["value"]: None
        for name in cases()[::_EVERY]
        for record in Case(name).records
        if record["topic"] == "connect-offsets" and record["value"]
    }
    return tuple(found)[:: max(1, len(found) // _OFFSETS)]
