"""The keys by which rows of a chunk are compared with row events: equal for the same row, from either source."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.codecs.builder import Codec, Codecs, column_output
from rowtide.connector.records.codecs.python_values import python_output
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.records.unavailable import UNAVAILABLE
from rowtide.connector.rows.text_protocol_rows import ResultColumn, ResultReader, result_value_reader
from rowtide.connector.source.server_queries import selected
from rowtide.envelope.table import RecordRules, build_table_schema
from rowtide.schema_history.model import Column, Table
from rowtide.topics.filters import ColumnFilter, Patterns, Selection

_NO_COLUMNS = ColumnFilter(Selection(include=Patterns.parse("")))


class RowKeys:
    """Decodes the keys of a table's rows, from row events and from result sets. Masks do not apply to them.

    Args:
        table: the structure.
        columns: the columns of the key.
        settings: of the records.
        topics: the owners of topics.

    Attributes:
        selected: the expressions that select the columns of the key.
        exact: whether both sources have the same values. Without exact values, a result set has FLOAT with six digits.
    """

    def __init__(
        self, table: Table, columns: Sequence[Column], settings: PipelineSettings, topics: TopicOwners
    ) -> None:
        names = tuple(column.name for column in columns)
        self.selected = [selected(column, exact=settings.canonical) for column in columns]
        self.exact = settings.canonical or all(column.data_type != "float" for column in columns)
        self._table = table
        self._names = names
        rules = RecordRules(values=settings.rules.values, columns=_NO_COLUMNS)
        self._settings = replace(settings, rules=rules, changes=True)
        self._codecs = Codecs(self._settings, topics)
        self._codec: tuple[TableStructure, Codec] | None = None
        padded = {place for place, column in enumerate(columns) if column.data_type == "binary"}
        self._normalized: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None = None
        if padded:  # row events have BINARY without its trailing zeros
            self._normalized = lambda key: tuple(
                value.rstrip(b"\0") if place in padded else value for place, value in enumerate(key)
            )

    def of_event(self, event: Rows, structure: TableStructure) -> list[Hashable]:
        """Return the keys of all row images of an event.

        Raises:
            ConnectorError, ValueError: the images do not match the structure.
        """
        if self._codec is None or self._codec[0] is not structure:
            self._codec = structure, self._codecs.codec(structure, self._table, self._names)
        return self._keys(self._codec[1].rows(event))

    def reader(self, names: Sequence[str]) -> ResultReader:
        """Compile a reader of keys for a result set with columns of these names; see :meth:`of_rows`."""
        settings, table = self._settings, self._table
        records = build_table_schema(
            table, "", settings.rules, "snapshot", lambda _table, _column: None, key_names=self._names
        )
        outputs = [(one, python_output(column_output(one, records, settings), one)) for one in records.columns]
        columns = [ResultColumn(one.column, output, "", UNAVAILABLE) for one, output in outputs]
        places = {record.index: place for place, record in enumerate(records.columns)}
        return result_value_reader(columns, [places[index] for index in records.key_columns], names)

    def of_rows(self, rows: Sequence[tuple[Any, ...]]) -> list[Hashable]:
        """Return the keys of the rows that the reader has returned."""
        return self._keys(rows)

    def _keys(self, rows: Sequence[tuple[Any, ...]]) -> list[Hashable]:
        if self._normalized is None:
            return [row[0] for row in rows]
        return [self._normalized(row[0]) for row in rows]


def replaces_rows(event: Rows, *, skip_unchanged: bool) -> bool:
    """Return whether a consumer that has the records of an event needs no earlier state of its rows.

    This is not so after an update whose image lacks columns or has differences of JSON documents, or that may be
    omitted because it changes nothing that is published (``skip.messages.without.change``).
    """
    if event.kind is not RowsKind.UPDATE:
        return True
    after = event.columns_after
    complete = all(after[index >> 3] >> (index & 7) & 1 for index in range(event.column_count))
    return complete and not event.partial and not skip_unchanged
