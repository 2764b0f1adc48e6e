"""The structure of a table at a position, and how it differs from that at another one, from the schema history."""

from typing import Any

from rowtide.connector.config import Configuration
from rowtide.connector.engine.wiring import history_source
from rowtide.connector.worker.web.connect_rest import BadRequest, StoreUnavailable
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.history_source import HistorySource
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.queries.point_in_time import parse_point_in_time
from rowtide.schema_history.queries.table_changes import changes_of_table
from rowtide.schema_history.queries.table_diff import diff_tables
from rowtide.schema_history.store.history_store import HistoryStoreError
from rowtide.schema_history.structure.show_create import show_create

_MOST_CHANGES = 200


def structure(config: Configuration, table: str | None, at: str, before: str | None) -> dict[str, Any]:
    """Return the names of all tables at a position, and one table; it reads the whole history, and is slow.

    Args:
        config: of the connector.
        table: ``database.table``; ``None`` for the names only.
        at: a position, GTID set, time or ``end``.
        before: the same, to compare with; ``None`` for no comparison.

    Returns:
        ``tables``, and for a table: ``ddl`` and ``columns``, both ``None`` if it does not exist there; ``diff``, the
        lines of a unified diff; ``changes``, the last statements that changed it.

    Raises:
        BadRequest: a position cannot be used, or the connector has no history that can be read.
        StoreUnavailable: the history cannot be read.
    """
    try:
        with history_source(config) as source:
            return _structure(source, table, at, before)
    except HistoryStoreError as problem:
        raise StoreUnavailable(str(problem)) from None
    except (SchemaHistoryError, OSError) as problem:
        raise BadRequest(str(problem)) from None


def _structure(source: HistorySource, table: str | None, at: str, before: str | None) -> dict[str, Any]:
    point = parse_point_in_time(at)
    known = source.tables(point)
    found: dict[str, Any] = {"tables": sorted(map(str, known.names()))}
    if table is None:
        return found
    database, _, name = table.partition(".")
    one = known.table(database, name)
    found["ddl"] = None if one is None else show_create(one, known.server)
    found["columns"] = None if one is None else table_json(one, known.server.flavor)
    if before is not None:
        earlier = parse_point_in_time(before)
        lines = diff_tables(source.tables(earlier), known, _exactly(table), source.server, (earlier.text, point.text))
        found["diff"] = list(lines)
    changes = changes_of_table(source.changes(), TableId(database, name))[-_MOST_CHANGES:]
    found["changes"] = [{"position": _text(change.position), "ts_sec": change.position.ts_sec, "ddl": change.ddl}
                        for change in changes]  # fmt: skip
    return found


def _exactly(table: str) -> str:
    """Return the pattern that only this table matches."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in table)


def _text(position: BinlogPosition) -> str:
    return f"{position.file}:{position.pos}" if position.file else position.gtids or ""
