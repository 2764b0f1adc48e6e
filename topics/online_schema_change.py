"""Recognises the helper tables of online schema changes by their names.

Such a tool changes a copy of a table, and renames the copy to the table in the end. The names for a table ``t``::

    gh-ost                     _t_gho (copy)   _t_ghc (changelog)   _t_del, _t_20260131120000_del (the former t)
    pt-online-schema-change    _t_new (copy)                        _t_old (the former t), with up to 10 underscores
    Spirit                     _t_new (copy)   _t_chkpnt            _t_old
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rowtide.topics.java_regex import InvalidPatternError, Pattern, compile_java

Exists = Callable[[str, str], bool]
"""Returns whether a table exists, by its database and name."""

WELL_KNOWN, NONE = "well-known", "none"
_NAMES = (
    compile_java(r"_(?<ghost>.+)_(?:gho|ghc|ght|ghr|del)"),
    compile_java(r"_(?<ghost>.+)_\d{14}_del"),
    compile_java(r"_(.+)_(?:new|old|chkpnt)"),
    compile_java(r"_{2,10}([^_].*)_(?:new|old)"),
)
_GH_OST_TABLES = ("gho", "ghc")
"""In the two-step cut-over of gh-ost, there is no ``t`` for a moment, but both of these tables exist."""


@dataclass(frozen=True, slots=True)
class HelperNames:
    """The names of helper tables (``rowtide.online.schema.change.tables``).

    Attributes:
        items: the list as configured.
        patterns: each matches a name of a helper table as a whole; its group is the name of the table that is changed.
    """

    items: tuple[str, ...] = ()
    patterns: tuple[Pattern, ...] = ()

    def __str__(self) -> str:
        return ",".join(self.items) or NONE

    def table_of(self, database: str, name: str, exists: Exists) -> str | None:
        """Return the table to which a helper table belongs; ``None`` if it is not a helper table.

        Args:
            database: its database.
            name: its name.
            exists: returns which tables exist. Without the other table, a table is not a helper, whatever its name.
        """
        for pattern in self.patterns:
            found = pattern.fullmatch(name)
            if found is None or not (table := found[1]):
                continue
            stand_ins = [f"_{table}_{suffix}" for suffix in _GH_OST_TABLES] if "ghost" in pattern.group_numbers else []
            if any(exists(database, other) for other in (table, *stand_ins) if other != name):
                return table
        return None

    def may_match(self, name: str) -> bool:
        """Return whether a table of that name is a helper table if the other table exists."""
        return any(pattern.fullmatch(name) for pattern in self.patterns)


NO_HELPERS = HelperNames()
WELL_KNOWN_HELPERS = HelperNames((WELL_KNOWN,), _NAMES)


def parse_helper_names(items: tuple[str, ...]) -> HelperNames:
    """Parse a list of regular expressions with one group each; ``well-known`` stands for the names above.

    Raises:
        ValueError: an expression is invalid or does not have one group, or ``none`` is not alone.
    """
    if NONE in items and len(items) > 1:
        raise ValueError(f"{NONE!r} must be the only item")
    items = tuple(item for item in items if item != NONE)
    return HelperNames(items, tuple(pattern for item in items for pattern in _patterns(item)))


def _patterns(item: str) -> Iterator[Pattern]:
    if item == WELL_KNOWN:
        yield from _NAMES
        return
    pattern = compile_java(item, ignore_case=False)
    if pattern.groups != 1:
        raise InvalidPatternError(item, "it must have one group: the name of the table that is changed")
    yield pattern
