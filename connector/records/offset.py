"""The source offset: the resume position, in the format that Kafka Connect stores for Debezium.

An offset names the start of a transaction (file, position, GTID set before it) and the number of processed events and
rows of that transaction. Fields have Debezium's names and order, so that rowtide and Debezium can resume from each
other's offsets.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from rowtide.envelope.java_hashes import java_string_hash
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

T = TypeVar("T")

_SURROGATE = re.compile("[\ud800-\udfff]")
_PREPARED, _CURRENT, _SERVER, _WITHIN = "rowtide_prepared", "rowtide_done", "rowtide_server", "rowtide_gtid"
_CARRIED = "incremental_snapshot_", "rowtide_snapshot_", "rowtide_signal_", "rowtide_values"
"""The prefixes of the names of fields that are carried from offset to offset."""
UNFINISHED = "rowtide_snapshot_initial"
"""The field of ``carried`` while the initial snapshot continues alongside the stream.

The stored offset is then that of an initial snapshot, so that Debezium, which could not continue it, takes it again.
"""


@dataclass(frozen=True, slots=True)
class PreparedXa:
    """A prepared XA transaction, which a later statement commits or rolls back.

    Attributes:
        xid: the identifier as the server writes it in ``XA COMMIT X'…',X'…',1``.
        file: the binlog file that contains it.
        pos: the position of its first event (the GTID event) in that file.
        before: the offset before it; ``None`` if it was prepared before the snapshot.
    """

    xid: str
    file: str
    pos: int
    before: "SourceOffset | None" = None


@dataclass(slots=True, unsafe_hash=True)
class SourceOffset:
    """A position from which the stream can resume without losing changes. Batches share it: do not change it.

    It is not frozen, because each row event makes one, and a frozen one takes three times as long.

    Attributes:
        file: binlog file name.
        pos: position in ``file`` at the start of the current transaction, or after the last one.
        gtids: GTID set executed before that position; ``None`` without GTIDs.
        event: number of events after ``pos`` that are processed and must be skipped.
        row: number of rows of the next event that are processed and must be skipped.
        server_id: server id of the last event, 0 if none.
        ts_sec: time of the last event in seconds since the epoch; ``None`` if unknown.
        snapshot: ``INITIAL`` during an initial snapshot, ``BLOCKING`` during a blocking one, else ``None``.
        transaction: within a transaction, with transaction metadata, ``transaction_id`` and the orders per collection.
        prepared: the XA transactions that are prepared but not ended at this position, in order.
        server: the server to which ``file`` and ``pos`` belong: MySQL's ``server_uuid`` or MariaDB's ``server_id``;
            ``None`` if unknown. Stored only without GTIDs, which are valid on every server.
        within: the GTID of the transaction to which ``event`` and ``row`` belong; ``None`` if unknown. After a
            fail-over, another transaction may come first. Stored only inside a transaction.
        carried: the data stored with every position, by field name: the state of signals and snapshots, and whether
            values are exact. Names begin with ``incremental_snapshot_`` (Debezium's),
            ``rowtide_snapshot_``, ``rowtide_signal_`` or ``rowtide_values``. Not in positions of the schema history.
    """

    file: str
    pos: int
    gtids: str | None = None
    event: int = 0
    row: int = 0
    server_id: int = 0
    ts_sec: int | None = None
    snapshot: str | None = None
    transaction: Mapping[str, Any] | None = field(default=None)
    prepared: tuple[PreparedXa, ...] = ()
    server: str | None = field(default=None, compare=False)
    within: str | None = field(default=None, compare=False)
    carried: Mapping[str, Any] | None = field(default=None)

    @property
    def continues_snapshot(self) -> bool:
        """Whether a start from it continues an interrupted initial snapshot."""
        return UNFINISHED in (self.carried or ())

    @property
    def done_within(self) -> str:
        """The part of its transaction that is processed, in words; empty at the start of a transaction.

        This can be all of it: a stored position belongs to a record, and no record follows the last row of a
        transaction.
        """
        if not self.event and not self.row:
            return ""
        events = f"{self.event} event{'s' * (self.event != 1)}"
        rows = f" and {self.row} row{'s' * (self.row != 1)}" if self.row else ""
        transaction = f"transaction {self.within}" if self.within else f"the transaction at {self.file}:{self.pos}"
        return f"{events}{rows} of {transaction}"

    def gtid_set(self, connector: str) -> GtidSet | MariadbGtidPosition:
        """Return ``gtids`` parsed for the ``mysql`` or the ``mariadb`` connector; empty if there are none."""
        return (MariadbGtidPosition if connector == "mariadb" else GtidSet).parse(self.gtids or "")

    def to_map(self) -> dict[str, Any]:
        """Return Debezium's fields of this offset, in Debezium's order.

        With prepared XA transactions there are two more fields, which Debezium ignores: the other fields are then those
        of the position before the oldest of these transactions, so that Debezium does not miss it.
        """
        prepared = [[xa.xid, xa.file, xa.pos, xa.before and xa.before.to_map()] for xa in self.prepared]
        fields = self._fields()
        if prepared:
            fields[_PREPARED] = json.dumps(prepared, separators=(",", ":"))
        before = next((xa.before for xa in self.prepared if xa.before is not None), None)
        if before is not None:
            inner = json.dumps(java_hash_map_order(fields), separators=(",", ":"), ensure_ascii=False)
            fields = {**before.to_map(), _CURRENT: inner}
        return java_hash_map_order(fields)

    def _fields(self) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        if self.gtids is not None:
            fields["gtids"] = self.gtids
        if self.server_id:
            fields["server_id"] = self.server_id
        if self.event:
            fields["event"] = self.event
        if self.row:
            fields["row"] = self.row
        if self.ts_sec is not None:
            fields["ts_sec"] = self.ts_sec
        fields["file"] = self.file
        fields["pos"] = self.pos
        if self.snapshot is not None:
            fields["snapshot"] = self.snapshot
        if self.transaction is not None:
            fields.update(self.transaction)
        return fields

    def to_json(self) -> str:
        """Return the value of the record in Kafka Connect's offset storage topic."""
        fields = self.to_map()
        if self.server is not None and self.gtids is None:
            fields = java_hash_map_order({**fields, _SERVER: self.server})
        if self.within is not None and self.gtids is not None and (self.event or self.row):
            fields = java_hash_map_order({**fields, _WITHIN: self.within})
        if self.carried:
            unfinished = {"snapshot": "INITIAL"} if self.continues_snapshot else {}
            fields = java_hash_map_order({**fields, **unfinished, **self.carried})
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)

    def position_json(self) -> str:
        """Return the position for a message: as stored, without ``carried``."""
        return replace(self, carried=None).to_json()

    @classmethod
    def from_map(cls, fields: Mapping[str, Any]) -> "SourceOffset":
        """Parse an offset stored by rowtide or Debezium.

        Raises:
            ValueError: a field is missing or has the wrong type; the message names it.
        """
        current, server, within = _text(fields, _CURRENT), _text(fields, _SERVER), _text(fields, _WITHIN)
        carried = {name: value for name, value in fields.items() if name.startswith(_CARRIED)} or None
        if current is not None:
            return replace(cls.from_json(current), server=server, within=within, carried=carried)
        file = _text(fields, "file")
        if file is None:
            raise ValueError(f"source offset 'file' parameter is missing: {dict(fields)!r}")
        transaction = {
            name: value for name, value in fields.items() if name.startswith(("transaction_id", "transaction_data_"))
        }
        if isinstance(fields.get("snapshot"), bool):  # written by Debezium before 3.0
            snapshot = "INITIAL" if fields["snapshot"] else None
        else:
            snapshot = _text(fields, "snapshot")
        return cls(
            file=file,
            pos=_whole(fields, "pos", 4),
            gtids=_text(fields, "gtids"),
            event=_whole(fields, "event", 0),
            row=_whole(fields, "row", 0),
            server_id=_whole(fields, "server_id", 0),
            ts_sec=None if fields.get("ts_sec") is None else _whole(fields, "ts_sec", 0),
            snapshot=snapshot,
            transaction=transaction or None,
            prepared=tuple(map(cls._prepared, _parsed(_text(fields, _PREPARED) or "[]", list))),
            server=server,
            within=within,
            carried=carried,
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "SourceOffset":
        """Parse the value of a record of the offset storage topic. Raises ``ValueError`` as ``from_map`` does."""
        return cls.from_map(_parsed(text, dict))

    @classmethod
    def _prepared(cls, stored: Any) -> PreparedXa:
        """Return a prepared XA transaction from the form in which `to_map` stores it."""
        match stored:
            case [str(xid), str(file), int(pos), None]:
                return PreparedXa(xid, file, pos)
            case [str(xid), str(file), int(pos), dict(before)]:
                return PreparedXa(xid, file, pos, cls.from_map(before))
        raise ValueError(f"source offset {_PREPARED!r} has no prepared XA transaction: {stored!r:.200}")


def _parsed(text: str | bytes, kind: type[T]) -> T:
    """Return a JSON array or object. Raises ``ValueError`` if the text is something else."""
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("a source offset is nested too deeply") from None
    if not isinstance(found, kind):
        what = "object" if kind is dict else "array"
        raise ValueError(f"a source offset must be a JSON {what}, this is not: {text!r:.200}")  # noqa: TRY004
    return found


def _text(fields: Mapping[str, Any], name: str) -> str | None:
    """Return the text of a field, ``None`` if it is missing; raises ``ValueError`` for anything else."""
    value = fields.get(name)
    if value is None:
        return None
    if isinstance(value, str) and not _SURROGATE.search(value):
        return value
    raise ValueError(f"source offset {name!r} must be a string of Unicode characters, not {value!r:.200}")


def _whole(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"source offset {name!r} must be a whole number, not {value!r:.200}") from None


def java_hash_map_order(fields: Mapping[str, Any], capacity: int = 16) -> dict[str, Any]:
    """Order fields in the iteration order of a ``java.util.HashMap``, in which Debezium builds its offsets.

    Args:
        fields: values by name.
        capacity: the initial capacity of the map.
    """
    while len(fields) > capacity * 3 // 4:
        capacity *= 2

    def bucket(name: str) -> int:
        code = java_string_hash(name)
        return (code ^ (code >> 16)) & (capacity - 1)

    return {name: fields[name] for name in sorted(fields, key=bucket)}


def describe(offset: SourceOffset) -> str:
    """Return an offset in words, for messages."""
    text = f"{offset.file}:{offset.pos}"
    if offset.gtids is not None:
        text = f"{text}, GTIDs {offset.gtids or 'none'}"
    if offset.done_within:
        text = f"{text} ({offset.done_within} done)"
    return text
