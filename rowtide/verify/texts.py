"""The rows and keys of changes as canonical texts."""

from collections.abc import Collection, Sequence
from functools import partial

from rowtide.connector.records.canonical import NULL, Canonical, canonical_values
from rowtide.connector.records.change import Change
from rowtide.connector.records.change import Row as RowOfChange
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import Row
from rowtide.verify.source import SourceTable
from rowtide.verify.topic import TopicRecord

Key = tuple[str, ...]

_ZERO_TIMESTAMP = "t1970-01-01T00:00:00+00:00"


class Texts:
    """Makes the canonical texts of a table's rows.

    Args:
        table: the table.
        chosen: the columns to compare in addition to the key; none for all.
        exact: whether values are exact; otherwise a FLOAT is compared with six digits.
        two_forms: whether values may be in the forms of a snapshot and of the stream, which differ with Debezium's
            values: of a DOUBLE(M,D), a snapshot has D digits after the point; and the zero date in a TIMESTAMP that may
            be NULL is NULL in MariaDB's snapshot, and 1970-01-01 00:00:00 in its stream, a value that no other
            TIMESTAMP can have.

    Attributes:
        kinds: the data types of the columns in the source.
        key_names: the columns of the key of the records.
    """

    def __init__(self, table: SourceTable, chosen: Collection[str], *, exact: bool, two_forms: bool = False) -> None:
        self._table, self._chosen, self._exact = table, chosen, exact
        self.kinds = {column.name: column.data_type for column in table.structure.columns}
        self.key_names = [column.name for column in table.key_columns]
        self._zeros = {
            column.name
            for column in table.structure.columns
            if two_forms and column.data_type == "timestamp" and column.nullable
        }
        self._scales = {
            column.name: column.scale
            for column in table.structure.columns
            if two_forms and column.data_type == "double" and column.scale is not None
        }
        self._forms: dict[tuple[str, ...], Sequence[tuple[str, Canonical]]] = {}

    @property
    def compared(self) -> Collection[str]:
        """The columns of the table that are compared."""
        return [column.name for column in self._table.form.columns if self.compares(column.name)]

    def compares(self, name: str) -> bool:
        """Return whether a column is compared."""
        return not self._chosen or name in self._chosen or name in self.key_names

    def key(self, change: Change) -> Key:
        """Return the texts of the key of a change; none if it does not identify a row.

        Raises:
            Undecided: the record has no key.
        """
        return self.record_key(change) if self._table.key else ()

    def record_key(self, change: Change) -> Key:
        """Return the texts of the key of a change, even if it does not identify a row.

        Raises:
            Undecided: the record has no key.
        """
        key = change.key
        if key is None:
            raise Undecided(f"a record of topic {change.topic} has no key, but the table has one")
        return tuple([form(key[name]) for name, form in self._canonical(tuple(key))])

    def has_own_key(self, change: Change) -> bool:
        """Return whether the key of a change has the values of the row's key. The converter of keys may spell them."""
        key, row = self.record_key(change), self.row(change, change.after) or {}
        if change.key is None or len(key) != len(self.key_names):
            return False
        pairs = [(text, row.get(name, text)) for name, text in zip(self.key_names, key, strict=True)]
        if [*change.key] == self.key_names:  # a date without a schema is a number in one of them
            return all(one == other or one[0] != other[0] for one, other in pairs)
        return all(one == other for one, other in pairs)

    def row(self, change: Change, found: RowOfChange | None) -> Row | None:
        """Return the texts of a row of a change, by column."""
        if found is None:
            return None
        kinds = self.kinds
        row = {
            name: form(_document(found, name) if kinds.get(name) == "json" else found[name])
            for name, form in self._canonical(change.columns)
            if self.compares(name)
        }
        for name in self._zeros:
            if row.get(name) == _ZERO_TIMESTAMP:
                row[name] = NULL
        return row

    def _canonical(self, names: tuple[str, ...]) -> Sequence[tuple[str, Canonical]]:
        """Return columns with the functions that make their texts."""
        forms = self._forms.get(names)
        if forms is None:
            kinds = [self.kinds.get(name, "") for name in names]
            pairs = zip(names, canonical_values(kinds, exact=self._exact), strict=True)
            forms = self._forms[names] = [
                (name, form if (scale := self._scales.get(name)) is None else partial(_rounded, form, scale))
                for name, form in pairs
            ]
        return forms

    def refuse_others(self, found: TopicRecord, change: Change) -> None:
        """Raise ``Undecided`` if a record belongs to another table."""
        table = self._table.id
        if (change.database, change.table) != (table.database, table.table):
            raise Undecided(
                f"topic {found.topic} has a record of table {change.database}.{change.table} (partition "
                f"{found.record.partition}, offset {found.record.offset}): the topic is not only that of {table}"
            )


def _rounded(form: Canonical, scale: int, value: object) -> str:
    return form(round(value, scale) if isinstance(value, float) else value)


def _document(row: RowOfChange, name: str) -> object:
    try:
        return row.json_text(name)
    except TypeError:  # JSON without schemas
        return row[name]
