"""The tables that snapshots alongside the stream still have to read, and their form in every offset. Pure."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rowtide.connector.errors import SignalError
from rowtide.connector.records.offset import UNFINISHED
from rowtide.connector.snapshot.chunks.key_ranges import Bound
from rowtide.schema_history.model import TableId

log = logging.getLogger(__name__)

_MAX_STORED = 600_000
"""Bytes of the fields in an offset. Kafka's default limit is 1 MB for a record."""
_STATE = "rowtide_snapshot_state"
_DEBEZIUM = "incremental_snapshot_"
_COLLECTIONS, _CORRELATION = f"{_DEBEZIUM}collections", f"{_DEBEZIUM}correlation_id"
_ID, _CONDITION, _SURROGATE = (f"{_COLLECTIONS}_{name}" for name in ("id", "additional_condition", "surrogate_key"))


@dataclass(frozen=True, slots=True)
class IncrementalTable:
    """A table that a snapshot reads alongside the stream.

    Attributes:
        name: ``database.table``, as in notifications.
        table: the table; ``None`` if no captured table has that name.
        signal_id: the id of the signal that requested it; ``""`` for a table of the initial snapshot.
        condition: a condition for its rows, as SQL.
        surrogate_key: the column by which to cut it, instead of its primary key.
        begun: whether the largest key is known.
        last: the largest key at the beginning; ``None`` if it was empty.
        lower: the key up to which its rows are read.
        key: the signature of the key that ``last`` and ``lower`` belong to; ``None`` if it was not stored.
        rows: the number of rows read.
        key_names, keys: the rows to read, by their keys: the columns of the key and the values of each; none for all.
            Deletion records are sent for those that do not exist.
        initial: whether it remains from an interrupted initial snapshot.
        estimated: the server's estimate of the number of rows; not stored.
    """

    name: str
    table: TableId | None
    signal_id: str
    condition: str | None = None
    surrogate_key: str | None = None
    begun: bool = False
    last: Bound | None = None
    lower: Bound | None = None
    rows: int = 0
    key: str | None = None
    estimated: int | None = None
    initial: bool = False
    key_names: tuple[str, ...] = ()
    keys: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of_initial_snapshot(cls, table: TableId, lower: Bound | None, key: str, rows: int) -> "IncrementalTable":
        """Return a table that the initial snapshot has read up to a key.

        Args:
            table: the table.
            lower: the key; ``None`` if nothing was read.
            key: the signature of its key.
            rows: the number of rows read.
        """
        return cls(str(table), table, "", lower=lower, key=key, rows=rows, initial=True)

    @property
    def kind(self) -> str:
        """The kind of snapshot that it belongs to, for messages."""
        return "initial" if self.initial else "incremental"

    def restarted(self) -> "IncrementalTable":
        """Return the table before its first chunk."""
        return replace(self, begun=False, last=None, lower=None, rows=0, key=None)


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """The tables that remain to be read, in order; the first one is being read.

    Attributes:
        tables: the tables.
        paused: whether ``pause-snapshot`` was received.
    """

    tables: tuple[IncrementalTable, ...] = ()
    paused: bool = False

    @property
    def unfinished(self) -> bool:
        """Whether tables of the initial snapshot remain to be read."""
        return any(table.initial for table in self.tables)

    def names(self, signal_id: str) -> list[str]:
        """Return the names of the tables that a signal requested."""
        return list(dict.fromkeys(table.name for table in self.tables if table.signal_id == signal_id))

    def with_first(self, table: IncrementalTable) -> "SnapshotState":
        """Return the state with a different first table."""
        return replace(self, tables=(table, *self.tables[1:]))

    def without_first(self) -> "SnapshotState":
        """Return the state after the first table is read."""
        return replace(self, tables=self.tables[1:])

    def renamed(self, former: TableId, now: TableId, *, remains: bool, swap: bool = False) -> "SnapshotState":
        """Return the state after a table was renamed, which is then read from its beginning.

        If its new name belonged to a pending table, that table is also read from its beginning, because the rows read
        so far belong to another table.

        Args:
            former: its former name.
            now: its new name.
            remains: whether there is another table with the former name, which is then read, too.
            swap: whether an online schema change swaps the two, so that they have the same rows.
        """
        left: list[IncrementalTable] = []
        for table in self.tables:
            if table.table != former:
                left.append(table.restarted() if table.table == now and not swap else table)
                continue
            again = table.restarted()
            left += [again] if remains else []
            left.append(replace(again, name=str(now), table=now))
        return replace(self, tables=tuple(left))

    def carried(self, others: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return the fields of all later offsets: those of ``others`` that do not belong to snapshots, and the state's.

        Debezium's fields name the tables of signals. It has the keys as serialised Java objects, and reads a table from
        its beginning without them. It does not continue an initial snapshot, but takes it again. It could not
        distinguish rows named by their keys from whole tables.
        """
        fields = {name: value for name, value in (others or {}).items() if not _is_of_snapshots(name)}
        if requested := [table for table in self.tables if not table.initial and not table.keys]:
            fields[_COLLECTIONS] = _json(list(map(_for_debezium, requested)))
            fields[_CORRELATION] = requested[0].signal_id
        if self.unfinished:
            fields[UNFINISHED] = True
        if self.tables:
            fields[_STATE] = _json({"paused": self.paused, "tables": [_stored(table) for table in self.tables]})
        return fields or None

    def require_room(self) -> None:
        """Raise ``SignalError`` if the tables are too many for an offset."""
        if not self.has_room:
            raise SignalError(
                f"{len(self.tables)} tables need {self._stored_bytes} bytes in each stored position, but at most "
                f"{_MAX_STORED} are allowed. Send several signals with fewer tables or keys, each when the snapshot "
                "before it is completed"
            )

    @property
    def has_room(self) -> bool:
        """Whether an offset has enough space for the tables."""
        return self._stored_bytes <= _MAX_STORED

    @property
    def _stored_bytes(self) -> int:
        return len(_json(self.carried(None)).encode())

    @staticmethod
    def is_in(fields: Mapping[str, Any] | None) -> bool:
        """Return whether an offset has a state, even an unreadable one."""
        return any(map(_is_of_snapshots, fields or ()))

    @classmethod
    def from_carried(cls, fields: Mapping[str, Any] | None) -> "SnapshotState":
        """Return the state in an offset. A state stored by Debezium has the tables, but not the progress in them."""
        fields = fields or {}
        try:
            if _STATE in fields:
                found = json.loads(fields[_STATE])
                return cls(tuple(map(_restored, found["tables"])), bool(found["paused"]))
            if _COLLECTIONS in fields:
                signal_id = str(fields.get(_CORRELATION) or "")
                return cls(tuple(_of_debezium(item, signal_id) for item in json.loads(fields[_COLLECTIONS])))
        except (KeyError, TypeError, ValueError):
            log.exception(
                "the stored position has an incremental snapshot that cannot be read, so it does not continue; "
                "send its execute-snapshot signal again: %.500s", {_STATE: fields.get(_STATE)}
            )  # fmt: skip
        return cls()


def _is_of_snapshots(field: str) -> bool:
    return field in (_STATE, UNFINISHED) or field.startswith(_DEBEZIUM)


def _for_debezium(table: IncrementalTable) -> dict[str, Any]:
    condition = None if table.condition is None else f"({table.condition})"
    return {_ID: table.name, _CONDITION: condition, _SURROGATE: table.surrogate_key}


def _stored(table: IncrementalTable) -> dict[str, Any]:
    found: dict[str, Any] = {"name": table.name, "signal": table.signal_id}
    if table.table is not None:
        found["table"] = [table.table.database, table.table.table]
    others = {"condition": table.condition, "surrogate": table.surrogate_key, "lower": table.lower, "key": table.key}
    found |= {name: value for name, value in others.items() if value is not None}
    if table.begun:
        found["last"] = table.last
    if table.rows:
        found["rows"] = table.rows
    if table.initial:
        found["initial"] = True
    if table.keys:
        found |= {"key_names": table.key_names, "keys": table.keys}
    return found


def _restored(stored: Mapping[str, Any]) -> IncrementalTable:
    table = stored.get("table")
    return IncrementalTable(
        str(stored["name"]),
        None if table is None else TableId(str(table[0]), str(table[1])),
        str(stored["signal"]),
        stored.get("condition"),
        stored.get("surrogate"),
        "last" in stored,
        _bound(stored.get("last")),
        _bound(stored.get("lower")),
        int(stored.get("rows", 0)),
        stored.get("key"),
        initial=bool(stored.get("initial")),
        key_names=tuple(map(str, stored.get("key_names", ()))),
        keys=tuple(tuple(map(str, values)) for values in stored.get("keys", ())),
    )


def _of_debezium(stored: Mapping[str, Any], signal_id: str) -> IncrementalTable:
    name = str(stored[_ID])
    database, dot, table = name.partition(".")
    return IncrementalTable(
        name, TableId(database, table) if dot else None, signal_id, stored.get(_CONDITION), stored.get(_SURROGATE)
    )


def _bound(stored: Any) -> Bound | None:
    return None if stored is None else tuple(map(str, stored))


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
