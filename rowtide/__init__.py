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
    from rowtide.connector.config import Configuration, ConfigurationError
    from rowtide.connector.delivery.sinks import FileSink, HttpSink, Record, RecordSink, StreamSink
    from rowtide.connector.engine.changes.batch import ChangeBatch
    from rowtide.connector.engine.engine import Engine, EngineError, capture
    from rowtide.connector.errors import ConnectorError, SignalError
    from rowtide.connector.pipeline.signals.signal import Signal
    from rowtide.connector.records.change import (
        UNAVAILABLE,
        Change,
        Geometry,
        Row,
        SourcePosition,
        TransactionOrder,
    )
    from rowtide.schema_history.model import Column, Table, TableId

_MODULES = {
    "Change": "rowtide.connector.records.change",
    "ChangeBatch": "rowtide.connector.engine.changes.batch",
    "Column": "rowtide.schema_history.model",
    "Configuration": "rowtide.connector.config",
    "ConfigurationError": "rowtide.connector.config",
    "ConnectorError": "rowtide.connector.errors",
    "Engine": "rowtide.connector.engine.engine",
    "EngineError": "rowtide.connector.engine.engine",
    "FileSink": "rowtide.connector.delivery.sinks",
    "Geometry": "rowtide.connector.records.change",
    "HttpSink": "rowtide.connector.delivery.sinks",
    "Record": "rowtide.connector.delivery.sinks",
    "RecordSink": "rowtide.connector.delivery.sinks",
    "Row": "rowtide.connector.records.change",
    "Signal": "rowtide.connector.pipeline.signals.signal",
    "SignalError": "rowtide.connector.errors",
    "SourcePosition": "rowtide.connector.records.change",
    "StreamSink": "rowtide.connector.delivery.sinks",
    "Table": "rowtide.schema_history.model",
    "TableId": "rowtide.schema_history.model",
    "TransactionOrder": "rowtide.connector.records.change",
    "UNAVAILABLE": "rowtide.connector.records.change",
    "capture": "rowtide.connector.engine.engine",
}

__all__ = [
    "UNAVAILABLE",
    "Change",
    "ChangeBatch",
    "Column",
    "Configuration",
    "ConfigurationError",
    "ConnectorError",
    "Engine",
    "EngineError",
    "FileSink",
    "Geometry",
    "HttpSink",
    "Record",
    "RecordSink",
    "Row",
    "Signal",
    "SignalError",
    "SourcePosition",
    "StreamSink",
    "Table",
    "TableId",
    "TransactionOrder",
    "__version__",
    "capture",
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
        raise ModuleNotFoundError(
            f"rowtide.{name} needs the package {error.name}, which is not installed: pip install 'rowtide[connector]'",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
