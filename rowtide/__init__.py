"""Change data capture for MySQL and MariaDB, compatible with Debezium.

The names below are the public Python interface; each is imported when it is first used, so that ``import rowtide``
needs nothing but Python.

The packages ``connector``, ``envelope``, ``schema_history``, ``spark_consumers`` and ``topics`` are folders at the root
of the checkout. Symbolic links in this folder make them ``rowtide.connector`` and so on, in the checkout as in the
wheel.
"""

from typing import TYPE_CHECKING, Any

from rowtide._version import __version__

if TYPE_CHECKING:
    from rowtide.connector.check.findings import CheckFailedError
    from rowtide.connector.config import Configuration, ConfigurationError
    from rowtide.connector.delivery.errors import DeliveryError, DeliveryInterrupted, OffsetStoreError
    from rowtide.connector.delivery.sinks import FileSink, HttpSink, Record, RecordSink, StreamSink
    from rowtide.connector.engine.changes.batch import ChangeBatch
    from rowtide.connector.engine.engine import Engine, capture
    from rowtide.connector.engine.models import models
    from rowtide.connector.errors import (
        ConnectorError,
        EngineError,
        EngineTypeError,
        HistoryMissing,
        OffsetError,
        PositionPurged,
        ProtocolError,
        RowTypeError,
        SchemaError,
        SignalError,
        SnapshotError,
        UnknownTable,
        UnparsedDdl,
    )
    from rowtide.connector.records.change import Change, Geometry, Row, SourcePosition, TransactionOrder
    from rowtide.connector.records.unavailable import UNAVAILABLE, Unavailable
    from rowtide.connector.signals.signal import Signal
    from rowtide.connector.source.binlog_stream import StreamBroken, StreamRefused
    from rowtide.connector.source.connection import DatabaseUnreachableError
    from rowtide.decoder.decoder import Decoder
    from rowtide.decoder.errors import ClaimCheckUnavailable, DecodeError, RegistryUnavailable
    from rowtide.decoder.topics import TopicReader, read_topics
    from rowtide.envelope.transforms import ConnectRecord
    from rowtide.schema_history.errors import SchemaHistoryError
    from rowtide.schema_history.model import Column, Table, TableId
    from rowtide.schema_history.queries.point_in_time import InvalidPointInTime
    from rowtide.topics.errors import TopicError

_MODULES = {
    "Change": "rowtide.connector.records.change",
    "ChangeBatch": "rowtide.connector.engine.changes.batch",
    "CheckFailedError": "rowtide.connector.check.findings",
    "ClaimCheckUnavailable": "rowtide.decoder.errors",
    "Column": "rowtide.schema_history.model",
    "Configuration": "rowtide.connector.config",
    "ConfigurationError": "rowtide.connector.config",
    "ConnectRecord": "rowtide.envelope.transforms",
    "ConnectorError": "rowtide.connector.errors",
    "DatabaseUnreachableError": "rowtide.connector.source.connection",
    "DecodeError": "rowtide.decoder.errors",
    "Decoder": "rowtide.decoder.decoder",
    "DeliveryError": "rowtide.connector.delivery.errors",
    "DeliveryInterrupted": "rowtide.connector.delivery.errors",
    "Engine": "rowtide.connector.engine.engine",
    "EngineError": "rowtide.connector.errors",
    "EngineTypeError": "rowtide.connector.errors",
    "FileSink": "rowtide.connector.delivery.sinks",
    "Geometry": "rowtide.connector.records.change",
    "HistoryMissing": "rowtide.connector.errors",
    "HttpSink": "rowtide.connector.delivery.sinks",
    "InvalidPointInTime": "rowtide.schema_history.queries.point_in_time",
    "OffsetError": "rowtide.connector.errors",
    "OffsetStoreError": "rowtide.connector.delivery.errors",
    "PositionPurged": "rowtide.connector.errors",
    "ProtocolError": "rowtide.connector.errors",
    "Record": "rowtide.connector.delivery.sinks",
    "RecordSink": "rowtide.connector.delivery.sinks",
    "RegistryUnavailable": "rowtide.decoder.errors",
    "Row": "rowtide.connector.records.change",
    "RowTypeError": "rowtide.connector.errors",
    "SchemaError": "rowtide.connector.errors",
    "SchemaHistoryError": "rowtide.schema_history.errors",
    "Signal": "rowtide.connector.signals.signal",
    "SignalError": "rowtide.connector.errors",
    "SnapshotError": "rowtide.connector.errors",
    "SourcePosition": "rowtide.connector.records.change",
    "StreamBroken": "rowtide.connector.source.binlog_stream",
    "StreamRefused": "rowtide.connector.source.binlog_stream",
    "StreamSink": "rowtide.connector.delivery.sinks",
    "Table": "rowtide.schema_history.model",
    "TableId": "rowtide.schema_history.model",
    "TopicError": "rowtide.topics.errors",
    "TopicReader": "rowtide.decoder.topics",
    "TransactionOrder": "rowtide.connector.records.change",
    "UNAVAILABLE": "rowtide.connector.records.unavailable",
    "Unavailable": "rowtide.connector.records.unavailable",
    "UnknownTable": "rowtide.connector.errors",
    "UnparsedDdl": "rowtide.connector.errors",
    "capture": "rowtide.connector.engine.engine",
    "models": "rowtide.connector.engine.models",
    "read_topics": "rowtide.decoder.topics",
}

__all__ = [
    "UNAVAILABLE",
    "Change",
    "ChangeBatch",
    "CheckFailedError",
    "ClaimCheckUnavailable",
    "Column",
    "Configuration",
    "ConfigurationError",
    "ConnectRecord",
    "ConnectorError",
    "DatabaseUnreachableError",
    "DecodeError",
    "Decoder",
    "DeliveryError",
    "DeliveryInterrupted",
    "Engine",
    "EngineError",
    "EngineTypeError",
    "FileSink",
    "Geometry",
    "HistoryMissing",
    "HttpSink",
    "InvalidPointInTime",
    "OffsetError",
    "OffsetStoreError",
    "PositionPurged",
    "ProtocolError",
    "Record",
    "RecordSink",
    "RegistryUnavailable",
    "Row",
    "RowTypeError",
    "SchemaError",
    "SchemaHistoryError",
    "Signal",
    "SignalError",
    "SnapshotError",
    "SourcePosition",
    "StreamBroken",
    "StreamRefused",
    "StreamSink",
    "Table",
    "TableId",
    "TopicError",
    "TopicReader",
    "TransactionOrder",
    "Unavailable",
    "UnknownTable",
    "UnparsedDdl",
    "__version__",
    "capture",
    "models",
    "read_topics",
]


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used."""
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib  # noqa: PLC0415

    try:
        value = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("rowtide"):
            raise
        from rowtide.errors import needs_package  # noqa: PLC0415

        raise ModuleNotFoundError(f"rowtide.{name} {needs_package(error, 'connector')}", name=error.name) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
