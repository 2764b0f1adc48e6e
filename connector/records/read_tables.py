"""The tables whose rows were read, in the form of every offset: the lists that captured tables, and the exceptions.

A table that these lists capture was read by a snapshot, or was created while they captured it, so that the stream has
all of its rows. A table that only newer lists capture has rows that were not read. Lists stay small where tables are
many. Pure.
"""

import base64
import json
import logging
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from rowtide.schema_history.model import TableId
from rowtide.topics.filters import CapturedNames, Patterns, Selection, TableFilter
from rowtide.topics.online_schema_change import Exists, parse_helper_names

log = logging.getLogger(__name__)

_FIELD = "rowtide_snapshot_lists"
_LONGEST_PLAIN = 1000
"""Characters; a longer text is stored compressed, since every offset has it."""
_LONGEST = 300_000
"""Characters. Kafka's default limit for a record is 1 MB, and an incremental snapshot needs space, too."""


@dataclass(frozen=True, slots=True)
class ReadTables:
    """The tables whose rows were read.

    Attributes:
        lists: the lists by which tables were captured.
        unread: the tables that they capture, but whose earlier rows were not read.
    """

    lists: TableFilter
    unread: tuple[TableId, ...] = ()

    def names(self, exists: Exists) -> CapturedNames:
        """Return the test for tables that the lists captured.

        Args:
            exists: returns which tables exist.
        """
        return CapturedNames(self.lists, exists)

    def carried(self, others: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Return the fields of all later offsets: those of ``others``, and this one."""
        fields = {name: value for name, value in (others or {}).items() if name != _FIELD}
        text = json.dumps(_stored(self), separators=(",", ":"), ensure_ascii=False)
        if len(text) > _LONGEST_PLAIN:
            text = base64.b64encode(zlib.compress(text.encode(), 9)).decode()
        if len(text) > _LONGEST:
            log.warning(
                "the lists of captured tables are too long to be stored with each position, so a table that is added "
                "to them is not found at the next start. Use fewer, more general regular expressions"
            )
            return fields
        return {**fields, _FIELD: text}

    @classmethod
    def from_carried(cls, fields: Mapping[str, Any] | None) -> "ReadTables | None":
        """Return the lists in an offset; ``None`` for one from Debezium or an earlier version, or an unreadable one."""
        text = (fields or {}).get(_FIELD)
        if text is None:
            return None
        try:
            if not text.startswith("{"):
                text = zlib.decompress(base64.b64decode(text)).decode()
            return _restored(json.loads(text))
        except (AttributeError, KeyError, TypeError, ValueError, zlib.error):
            log.exception("the stored position has lists of captured tables that cannot be read: %.500s", text)
            return None


def with_read(carried: Mapping[str, Any] | None, tables: Collection[TableId | None]) -> Mapping[str, Any] | None:
    """Return the fields of all later offsets, after the rows of tables were read."""
    known = ReadTables.from_carried(carried) if tables else None
    if known is None or not set(known.unread) & set(tables):
        return carried
    return replace(known, unread=tuple(one for one in known.unread if one not in tables)).carried(carried)


def with_unread(carried: Mapping[str, Any] | None, table: TableId) -> Mapping[str, Any] | None:
    """Return the fields of all later offsets, after a captured table received rows that the stream does not have."""
    known = ReadTables.from_carried(carried)
    if known is None or table in known.unread:
        return carried
    return replace(known, unread=(*known.unread, table)).carried(carried)


def with_renamed(
    carried: Mapping[str, Any] | None, former: TableId, now: TableId, *, remains: bool
) -> Mapping[str, Any] | None:
    """Return the fields of all later offsets, after a table was renamed; see ``SnapshotState.renamed``."""
    known = ReadTables.from_carried(carried)
    if known is None or former not in known.unread:
        return carried
    others = tuple(one for one in known.unread if one != now and (remains or one != former))
    return replace(known, unread=(*others, now)).carried(carried)


def _stored(read: ReadTables) -> dict[str, Any]:
    lists = read.lists
    found = {
        "databases": _selection(lists.databases),
        "tables": _selection(lists.tables),
        "builtin": not lists.ignore_builtin,
        "always": sorted(map(list, lists.always)),
        "helpers": list(lists.helpers.items),
        "unread": [[table.database, table.table] for table in read.unread],
    }
    return {name: value for name, value in found.items() if value}


def _selection(selection: Selection) -> dict[str, list[str]]:
    pairs = ("include", selection.include), ("exclude", selection.exclude)
    return {name: list(patterns.sources) for name, patterns in pairs if patterns is not None}


def _restored(stored: Mapping[str, Any]) -> ReadTables:
    lists = TableFilter(
        _restored_selection(stored.get("databases", {})),
        _restored_selection(stored.get("tables", {})),
        not stored.get("builtin", False),
        frozenset((str(database), str(table)) for database, table in stored.get("always", ())),
        parse_helper_names(tuple(stored.get("helpers", ()))),
    )
    return ReadTables(lists, tuple(TableId(str(database), str(table)) for database, table in stored.get("unread", ())))


def _restored_selection(stored: Mapping[str, Any]) -> Selection:
    include, exclude = (Patterns.of(stored[name]) if name in stored else None for name in ("include", "exclude"))
    return Selection(include, exclude)
