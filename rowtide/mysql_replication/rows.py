"""Converts the row images of one table to the dictionaries of mysql-replication's ``rows``."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from pymysqlreplication.constants import NONE_SOURCE

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.records.codecs.recently_used import MAX_DECODERS, RecentlyUsed
from rowtide.connector.records.codecs.row_images import Decoder, RowImages
from rowtide.connector.rows.partial_update import expand_images
from rowtide.connector.rows.row_compiler import Column
from rowtide.connector.rows.row_decoder import value_rows
from rowtide.mysql_replication.values import NoneSource, may_be_none, value_columns, with_differences
from rowtide.schema_history.model import Table

Values = tuple[Any, ...]
_Named = tuple[dict[str, Any], dict[str, str]]
"""Values by column, and the reasons of those that are ``None``."""


class EventRows(RowImages[Values]):
    """Decodes the row events of one table.

    Args:
        structure: the TABLE_MAP.
        table: the structure, which fits it.

    Raises:
        SchemaError: the type of a column in the TABLE_MAP does not match the structure.
    """

    def __init__(self, structure: TableStructure, table: Table) -> None:
        super().__init__(table.id, value_columns(structure.columns, table), ())
        self.names = tuple(column.name for column in table.row_columns)
        self._naming_of: RecentlyUsed[bytes, Callable[[Values], _Named]] = RecentlyUsed(MAX_DECODERS)
        self._names = {place: name for place, name in enumerate(self.names) if may_be_none(self._columns[place])}

    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> Decoder[Values]:
        """Compile the function that reads mysql-replication's values."""
        return value_rows(columns, *layouts)

    def decode_partial(self, buffer: bytes, start: int, end: int, before: bytes, after: bytes) -> list[Values]:
        """Decode pairs of images whose second one may hold JSON differences, which stay differences."""
        present = self.present_columns(before), self.present_columns(after)
        layouts = [column.layout for column in self._columns]
        whole = expand_images(buffer, start, end, layouts, *present, needs_documents=False)
        return self._decoded(value_rows(with_differences(self._columns), *present), whole, 0, len(whole))

    def dictionaries(self, event: Rows) -> list[dict[str, Any]]:
        """Return mysql-replication's ``rows`` of an event.

        Raises:
            ValueError: the images do not match the structure.
        """
        images = self.rows(event)
        first = self._naming(event.columns)
        if event.kind is not RowsKind.UPDATE:
            return [{"values": values, "none_sources": sources} for values, sources in map(first, images)]
        second = first if event.columns_after == event.columns else self._naming(event.columns_after)
        return [
            {
                "before_values": before,
                "before_none_sources": before_sources,
                "after_values": after,
                "after_none_sources": after_sources,
            }
            for (before, before_sources), (after, after_sources) in zip(
                map(first, images[::2]), map(second, images[1::2]), strict=True
            )
        ]

    def _naming(self, present: bytes) -> Callable[[Values], _Named]:
        """Return the function that names the values of images with these columns."""
        found = self._naming_of.get(present)
        if found is None:
            found = self._new_naming(present)
            self._naming_of.put(present, found)
        return found

    def _new_naming(self, present: bytes) -> Callable[[Values], _Named]:
        names = self.names
        places = dict(self._names)
        for place, held in enumerate(self.present_columns(present)):
            if not held:
                places[place] = names[place]
        doubtful = tuple(places.items())
        null = cast("str", NONE_SOURCE.NULL)

        def named(values: Values) -> _Named:
            found, sources = dict(zip(names, values, strict=True)), {}
            for place, name in doubtful:
                value = values[place]
                if value is None:
                    sources[name] = null
                elif value.__class__ is NoneSource:
                    found[name] = None
                    sources[name] = value.reason
            return found, sources

        return named
