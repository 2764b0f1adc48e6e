"""Compares a row of the source with the states of its key in the topic, or with that of another server. Pure."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from rowtide.connector.records.canonical import NULL, UNKNOWN, are_of_one_kind, is_equal
from rowtide.verify.fold import FoldState, Row
from rowtide.verify.positions import Order, RecordPlace, ViewOrder

Kind = Literal["lost", "stale", "extra"]


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A key that differs, or a row of a table without a key.

    Attributes:
        kind: ``lost`` if the topic lacks the row, ``stale`` if it has other values, ``extra`` if the source lacks it.
            Between two servers, the other server takes the place of the topic.
        key: the canonical texts of the key by column; without a key, those of all columns.
        source: the row of the source.
        topic: the row of the topic.
        columns: the columns that differ.
        places: the last records of the key, the newest last.
        copies: how many more copies of the row one side has, for a table without a key.
    """

    kind: Kind
    key: Row
    source: Row | None
    topic: Row | None
    columns: tuple[str, ...] = ()
    places: tuple[RecordPlace, ...] = ()
    copies: int = 1


def different_columns(source: Row, topic: Row) -> tuple[str, ...]:
    """Return the columns that differ. A column on only one side was added or dropped later."""
    return tuple(
        name
        for name, text in source.items()
        if (other := topic.get(name)) is not None and other != UNKNOWN and not is_equal(text, other)
    )


def retyped_columns(source: Row, topic: Row) -> tuple[str, ...]:
    """Return the columns whose values are the same as texts only, as a number and its digits.

    That is so after a change of the column's type. Without one, the record has the wrong type.
    """
    return tuple(
        name
        for name, text in source.items()
        if (other := topic.get(name, NULL)) != UNKNOWN and is_equal(text, other) and not are_of_one_kind(text, other)
    )


def not_compared(source: Row, topic: Row) -> Collection[str]:
    """Return the columns whose values are missing in the topic, because they were added later or the binlog omits them.

    A column that a record lacks is null for consumers, so it is compared if the source has NULL.
    """
    return [
        name
        for name, text in source.items()
        if (found := topic.get(name, NULL)) == UNKNOWN or (name not in topic and text != found)
    ]


def is_same(source: Row | None, topic: Row | None) -> bool:
    """Return whether a row is the same on both sides, or exists on neither."""
    if source is None or topic is None:
        return source is topic
    return not different_columns(source, topic)


def possible_states(states: Sequence[FoldState], order: ViewOrder) -> list[FoldState]:
    """Return the states of a key in the topic that may match a view of the source.

    Args:
        states: the states from the last one before the view was opened.
        order: the order of records and the view.
    """
    possible = [states[0]]
    for state in states[1:]:
        match order.order(state.places[-1]):
            case Order.AFTER:
                break
            case Order.BEFORE:
                possible = [state]
            case Order.WITHIN:
                possible.append(state)
    return possible


def difference(key: Row, source: Row | None, state: FoldState, retyped: Collection[str] = ()) -> RowDifference:
    """Describe a key whose row in the source matches no state in the topic.

    Args:
        key: the key.
        source: the row of the source.
        state: of the topic.
        retyped: columns that differ in their type only.
    """
    kind: Kind = "extra" if source is None else "lost" if state.row is None else "stale"
    columns = different_columns(source, state.row) if source and state.row else ()
    columns = tuple(name for name in source or () if name in columns or name in retyped)
    return RowDifference(kind, key, source, state.row, columns, state.places)


def difference_of_copies(row: Row, number: int) -> RowDifference:
    """Describe a row of a table without a key, with the number of additional copies in the source."""
    kind: Kind = "lost" if number > 0 else "extra"
    return RowDifference(kind, row, row if number > 0 else None, None if number > 0 else row, copies=abs(number))
