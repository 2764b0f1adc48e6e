"""Notes on ``ALTER TABLE`` statements that changed existing rows in MySQL in a way that the records do not show.

MySQL writes no change event for a row that a statement converts. The structures before and after show that values were
added, removed or made wider. They do not show whether a column was renamed, or which values MySQL rounded.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import pairwise

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.columns.spark_types import common_type, decimal_parts, is_integer
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion

Structure = Sequence[tuple[str, str | None]]
"""Names and types of a row's columns, in order. A type is ``None`` if an older release stored the structure."""

_REPAIR = (
    "Only rows that were written since then are right. To repair the others, let the connector read the table again "
    "with an incremental snapshot; see 'Changes of structure' in docs/spark.md"
)


def alteration_notes(table: str, structures: Sequence[Structure], unproven: str | None = "") -> list[str]:
    """Return a note for each change that existing rows may lack.

    Args:
        table: its name.
        structures: of the records, oldest first.
        unproven: the reason why the schema history does not show whether columns were renamed; ``None`` if it does.
    """
    notes = []
    for old, new in pairwise(structures):
        if unproven is not None and (names := possibly_renamed(old, new)):
            notes.append(
                f"{table}: column names changed ({names}). The records do not show whether columns were renamed"
                f"{unproven}. If so, older rows have no values under the new names. {_REPAIR}"
            )
        before = {name.lower(): kind for name, kind in old}
        for name, kind in new:
            earlier = before.get(name.lower())
            if earlier is not None and kind is not None and may_convert(earlier, kind):
                notes.append(
                    f"{table}: column {name} was changed from {earlier} to {kind}. MySQL may have converted its "
                    f"values, for example by rounding; the table keeps them as they were. {_REPAIR}"
                )
    return notes


def key_without_values(
    keys: Iterable[KeyVersion], values: Sequence[ValueVersion], last_known: Sequence[str] | None
) -> tuple[ValueVersion, Column] | None:
    """Return a key column in which older rows have no value, with the first structure that has it.

    It was renamed, or MySQL computed its values. A column that was added with a constant default has that default.

    Args:
        keys: the batch's key schemas.
        values: the batch's row schemas, oldest first.
        last_known: the columns of the newest row schema of earlier batches, ``None`` if there was none.
    """
    names = {name.lower() for key in keys for name in key.names}
    known: Collection[str] | None = None if last_known is None else {name.lower() for name in last_known}
    for version in values:
        for column in version.columns:
            new = known is not None and column.name.lower() not in known
            if new and column.name.lower() in names and not column.has_default:
                return version, column
        known = version.names or known
    return None


def may_convert(old: str, new: str) -> bool:
    """Return whether MySQL in strict mode may change a value when a column gets another type.

    It refuses values that are out of range, and rounds digits. ``boolean`` proves nothing: Debezium writes ``BOOL``
    with another type in a snapshot than in the stream.
    """
    if old == new or "boolean" in (old, new):
        return False
    small, large = decimal_parts(old), decimal_parts(new)
    if is_integer(old) and (is_integer(new) or large):
        return False
    if small and large:
        return large[1] < small[1]
    return common_type(old, new) != new


def possibly_renamed(old: Structure, new: Structure) -> str | None:
    """Return the names before and after a possible rename, ``None`` if columns were only added, dropped or moved."""
    removed, added = _without(old, new), _without(new, old)
    if bool(removed) != bool(added):
        return None
    if len(old) == len(new):
        places = [(a, b) for a, b in zip(old, new, strict=True) if a[0].lower() != b[0].lower()]
        if all(a[1] is None or b[1] is None or a[1] == b[1] for a, b in places):
            return ", ".join(f"{a[0]} and {b[0]}" for a, b in places) or None
    return f"{', '.join(removed)} and {', '.join(added)}" if removed else None


def _without(columns: Structure, others: Structure) -> list[str]:
    known = {name.lower() for name, _ in others}
    return [name for name, _ in columns if name.lower() not in known]
