"""Structure at a position, rebuilt from a schema history.

Records are applied in their order up to the position, as Debezium compares positions. The tables that a record tells
are taken as they are (Debezium's own answer), the statement beside them is applied as well: it knows what they leave
out, such as collations, unsigned columns behind a synonym, unique keys. Where the two disagree, what was recorded
counts, unless ``prefer_ddl`` is set.
"""

import logging
from collections.abc import Iterable
from dataclasses import replace

from rowtide.schema_history.changes import ChangeKind
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Column, Table
from rowtide.schema_history.position import BinlogPosition, is_at_or_before
from rowtide.schema_history.query import QueryEvent, Server
from rowtide.schema_history.record import HistoryRecord, RecordedTable
from rowtide.schema_history.tables import Tables
from rowtide.schema_history.told import column_of_form

log = logging.getLogger(__name__)


def recover(
    records: Iterable[HistoryRecord], server: Server, position: BinlogPosition | None, *, prefer_ddl: bool = False
) -> Tables:
    """The structure of all tables.

    Args:
        records: the history, from its first record on.
        server: decides how statements are read.
        position: up to where; ``None`` for all.
        prefer_ddl: ``schema.history.internal.prefer.ddl``: statements count, recorded tables only where there is none.

    Raises:
        SchemaHistoryError: with ``prefer_ddl``, a statement is not understood.
    """
    tables = Tables(server)
    done: set[int] = set()
    for record in records:
        if position is None or is_at_or_before(BinlogPosition.from_map(record.position), position):
            identity = _identity(record)
            if identity not in done:
                done.add(identity)
                _apply(tables, record, prefer_ddl=prefer_ddl)
    return tables


def _identity(record: HistoryRecord) -> int:
    """Equal for records that tell the same statement of the same place.

    After a crash between writing a record and storing an offset the statement is read, and recorded, a second time.
    """
    changed = tuple((table.kind, table.id, table.previous_id) for table in record.tables)
    return hash((tuple(sorted(map(repr, record.position.items()))), record.database, record.ddl, changed))


def _apply(tables: Tables, record: HistoryRecord, *, prefer_ddl: bool) -> None:
    if record.ddl:
        event = QueryEvent(record.ddl, database=record.database, sql_mode=0)
        try:
            tables.apply(event)
        except SchemaHistoryError as error:
            if prefer_ddl or not record.tables:
                # A statement that was recorded was accepted once; one without tables changed none.
                log.warning("a statement of the schema history is left out: %s", error)
    if prefer_ddl and record.ddl:
        return
    for recorded in record.tables:
        _take(tables, recorded)


def _take(tables: Tables, recorded: RecordedTable) -> None:
    if recorded.kind is ChangeKind.DROP:
        tables.remove(recorded.id)
        return
    if recorded.previous_id is not None and recorded.previous_id != recorded.id:
        tables.remove(recorded.previous_id)
    if recorded.form is not None:
        known = tables.table(recorded.id.database, recorded.id.table)
        tables.put(_merged(known, recorded))


def _merged(known: Table | None, recorded: RecordedTable) -> Table:
    """What the statement has made, with the forms that were recorded; without it, what the forms alone tell."""
    assert recorded.form is not None
    names = [form.name for form in recorded.columns]
    if known is not None and [column.name for column in known.columns] == names:
        pairs = zip(known.columns, recorded.columns, strict=True)
        columns: tuple[Column, ...] = tuple(replace(column, form=form) for column, form in pairs)
        return replace(known, id=recorded.id, columns=columns, form=recorded.form)
    return Table(
        recorded.id,
        tuple(column_of_form(form) for form in recorded.columns),
        charset=recorded.form.default_charset_name or "",
        complete=False,
        form=recorded.form,
    )
