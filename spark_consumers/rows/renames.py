"""The names that columns have in the table, if the schema history proves which columns are the same.

The structures of a batch are found in the history by the names of their columns, in order. A list of names may occur
there several times. All possible sequences of structures must then agree on which columns are the
same. Pure.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, product
from math import prod

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.state import ColumnNames

_MOST_WAYS = 4096


def renamed(columns: Sequence[Column], names: Mapping[str, str]) -> tuple[Column, ...]:
    """Return the columns that have a name in the table, with that name."""
    found = [(column, names.get(column.field.lower())) for column in columns]
    return tuple(
        column if name.lower() == column.name.lower() else replace(column, name=name, former=column.field)
        for column, name in found
        if name is not None
    )


def proven_names(structures: Sequence[Sequence[str]], history: Sequence[Mapping[str, int]]) -> ColumnNames | None:
    """Return the names of the columns in the table, ``None`` if the history does not prove them.

    A column has the name that it has in the newest structure that has it.

    Args:
        structures: names of the columns in messages, in order; the structures are mostly in the order of the binlog.
        history: the structures of the table, oldest first: the identity of each column by its name.
    """
    kept = [
        found
        for number, found in enumerate(history)
        if number == 0 or [*found.items()] != [*history[number - 1].items()]
    ]
    known = [tuple(name.lower() for name in found) for found in kept]
    places = [
        [number for number, names in enumerate(known) if names == tuple(name.lower() for name in structure)]
        for structure in structures
    ]
    if not 0 < prod(map(len, places)) <= _MOST_WAYS:
        return None
    ways = list(product(*places))
    # Records of several partitions, and those that a connector writes again, can be older than those before them.
    ways = [way for way in ways if all(first <= second for first, second in pairwise(way))] or ways
    if len({_same_columns(way, kept) for way in ways}) > 1:
        return None
    return _names(ways[-1], kept)


def _same_columns(way: Sequence[int], history: Sequence[Mapping[str, int]]) -> tuple[tuple[int, ...], ...]:
    """Return the identities of columns, with numbers that do not depend on the place in the history."""
    numbers: dict[int, int] = {}
    return tuple(tuple(numbers.setdefault(one, len(numbers)) for one in history[place].values()) for place in way)


def _names(way: Sequence[int], history: Sequence[Mapping[str, int]]) -> ColumnNames:
    newest_first = sorted(range(len(way)), key=lambda index: (way[index], index), reverse=True)
    names: dict[int, str | None] = {}
    for index in newest_first:
        for name, identity in history[way[index]].items():
            if identity not in names:
                is_taken = name.lower() in {one.lower() for one in names.values() if one is not None}
                names[identity] = None if is_taken else name
    return ColumnNames(
        [
            {name.lower(): new for name, identity in history[place].items() if (new := names[identity]) is not None}
            for place in way
        ],
        newest_first[0],
    )


@dataclass(frozen=True, slots=True)
class Renames:
    """The change of the names in a table.

    Attributes:
        names: new names by old names; they may be exchanged.
        dropped: columns that were dropped in MySQL, and are dropped here, too.
    """

    names: Mapping[str, str]
    dropped: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.names or self.dropped)

    def new_name(self, name: str) -> str | None:
        """Return the name of a column afterwards; ``None`` if it is dropped."""
        return None if name in self.dropped else self.names.get(name, name)

    def without(self, columns: Collection[str], gone: Collection[str]) -> "Renames":
        """Return the renames with additional dropped columns.

        Args:
            columns: of the table.
            gone: the new names of columns to drop, in lower case.
        """
        lost = tuple(name for name in columns if (self.new_name(name) or "").lower() in gone)
        return Renames({old: new for old, new in self.names.items() if old not in lost}, (*self.dropped, *lost))


NO_RENAMES = Renames({})


def table_renames(columns: Collection[str], names: Mapping[str, str]) -> Renames:
    """Return the renames in a table.

    Args:
        columns: of the table.
        names: the names that the columns of its last structure get, by those that they have, in lower case.
    """
    new = {name: names[name.lower()] for name in columns if name.lower() in names}
    changed = {name: other for name, other in new.items() if name.lower() != other.lower()}
    wanted = {name.lower() for name in changed.values()}
    return Renames(changed, tuple(name for name in columns if name.lower() in wanted and name not in changed))
