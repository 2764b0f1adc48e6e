"""The arguments of calls that a program makes, which are checked before they are used."""

import datetime as dt
from collections.abc import Mapping
from types import UnionType
from typing import Any

from rowtide.connector.config import Configuration
from rowtide.connector.config.arguments import FilePath
from rowtide.connector.delivery.sinks import RecordSink
from rowtide.connector.engine.wiring import history_source
from rowtide.connector.errors import EngineError, EngineTypeError, UnknownTable
from rowtide.schema_history.model import Table
from rowtide.schema_history.queries.point_in_time import parse_point_in_time

_SHOWN = 10


def require_mapping(properties: object) -> None:
    """Raise ``EngineTypeError`` unless properties are a mapping, or ``None``."""
    if properties is not None and not isinstance(properties, Mapping):
        raise EngineTypeError(
            f"properties is a {type(properties).__name__}, not a mapping of names to values; Engine.from_config reads "
            "a file"
        )


def require_number(name: str, value: object, kind: type | UnionType, least: int) -> None:
    """Raise ``EngineError`` unless an argument is a sufficiently large number."""
    if not isinstance(value, kind) or isinstance(value, bool):
        raise EngineTypeError(f"{name} must be a number, not {value!r}")
    if not value >= least:  # type: ignore[operator]  # a number; not a number (NaN) is refused, too
        raise EngineError(f"{name} must be at least {least}, not {value!r}")


def require_function(call: str, value: object) -> None:
    """Raise ``EngineTypeError`` unless an argument can be called."""
    if not callable(value):
        raise EngineTypeError(f"{call} takes a function, not {value!r}")


def require_target(target: object) -> None:
    """Raise ``EngineTypeError`` unless an argument is a function or an object with the methods of a sink."""
    if isinstance(target, type) or not (callable(target) or isinstance(target, RecordSink)):
        raise EngineTypeError(
            f"run() takes a function, or a sink with the methods write, flush and close, not {target!r}"
        )


def require_paths(paths: tuple[Any, ...]) -> None:
    """Raise ``EngineTypeError`` unless arguments are paths of configuration files."""
    if not paths or not all(isinstance(path, str | FilePath) for path in paths):
        raise EngineTypeError("Engine.from_config takes paths of configuration files; Engine takes properties")


def structure_at(config: Configuration, name: str, at: str | int | dt.datetime) -> Table:
    """Return the structure of a table at a point in time; see ``Engine.table_at``."""
    if not isinstance(name, str) or not isinstance(at, str | int | dt.datetime):
        raise EngineTypeError(f"table_at takes a table as a string and a point in time, not {name!r} and {at!r}")
    point = parse_point_in_time(at.isoformat() if isinstance(at, dt.datetime) else str(at))
    database, _, table = name.partition(".")
    with history_source(config) as source:
        tables = source.tables(point)
        found = tables.table(database, table)
        if found is None:
            known = ", ".join(sorted(map(str, tables.names()))[:_SHOWN]) or "no tables"
            raise UnknownTable(f"the schema history has no table {name!r} (database.table) at {at}; it has {known}")
        return found
