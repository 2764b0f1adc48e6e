"""Distinguishes differences from rows whose last record is older than a change of the table's structure.

``ALTER TABLE`` changes the appearance of a table's rows without a row event: FLOAT to DOUBLE, another character set,
other labels of an ENUM, a column that was dropped and added again. If a row has not changed since then, its last record
has the values in their old form. This is neither a fault nor a proof for the column.
"""

from collections.abc import Callable, Collection, Mapping
from functools import cached_property

from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.queries.column_changes import ColumnChange
from rowtide.verify.comparison import RowDifference
from rowtide.verify.positions import RecordPlace, before


class OldForms:
    """The changes of a table's columns, and the records before them.

    Args:
        read: reads the last change of each column from the schema history, when it is first needed.
        key: the columns of the key of the records.
        same_server: whether records have positions in the binlog of the server.
        completed: the columns whose values can be those of an earlier record, because the binlog omits them.
    """

    def __init__(
        self,
        read: Callable[[], Mapping[str, ColumnChange]],
        key: Collection[str],
        *,
        same_server: Callable[[], bool],
        completed: Collection[str] = (),
    ) -> None:
        self._read, self._key, self._same, self._completed = read, key, same_server, completed
        self._known: Mapping[str, ColumnChange] | None = None
        self._is_complete = False

    @property
    def _changes(self) -> Mapping[str, ColumnChange]:
        if self._known is None:
            self._known = self._read()
        return self._known

    def complete(self) -> None:
        """Read the changes again, if they were read before the connector had delivered the position of a view."""
        if not self._is_complete:
            self._known, self._is_complete = None, True

    @cached_property
    def _same_server(self) -> bool:
        return self._same()

    def of(self, one: RowDifference) -> Mapping[str, ColumnChange]:
        """Return the columns of a difference that prove nothing, with their changes.

        A stale row has them in their old form. A row that one side lacks may exist there with its key in another form.
        """
        if one.kind == "stale":
            return self.before(one.places[-1], one.columns)
        if one.kind == "extra":
            return self.before(one.places[-1], self._key)
        if one.places:
            return {}  # the topic knows the key
        return {name: found for name in self._key if (found := self._changes.get(name)) and not found.made}

    def before(self, place: RecordPlace, names: Collection[str]) -> Mapping[str, ColumnChange]:
        """Return those of the named columns that were changed after a record, with their changes."""
        return {
            name: found for name in names if (found := self._changes.get(name)) and self._is_older(place, found, name)
        }

    def _is_older(self, place: RecordPlace, change: ColumnChange, name: str) -> bool:
        if change.made and not change.described:
            return False  # rows of an earlier table of the name are gone, and those of this one have row events
        if name in self._completed and not change.made:
            return True
        at = change.position
        found = before(SourceOffset(at.file, at.pos, at.gtids), same_server=self._same_server)(place)
        if found is None:  # a row of a snapshot, on a server with GTIDs
            return not (change.described and place.snapshot)
        return found


def described(change: ColumnChange) -> str:
    """Return the text of a change for a report."""
    statement = " ".join(change.ddl.split())
    shown = statement if len(statement) <= 120 else statement[:119] + "…"
    return f"{shown or 'a snapshot of the structure'}, at {change.position.file}:{change.position.pos}"
