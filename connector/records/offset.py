"""The source offset: where to go on reading, in the form that Kafka Connect stores for Debezium.

An offset names the start of a transaction (file, position, GTID set before it) and how many events and rows
of that transaction are done. Debezium's field names and its order of fields are kept, so that either of the two
can continue from what the other stored.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

_PREPARED, _CURRENT, _SERVER = "rowtide_prepared", "rowtide_done", "rowtide_server"


@dataclass(frozen=True, slots=True)
class PreparedXa:
    """An XA transaction that is prepared: whether its changes count is told later.

    Attributes:
        xid: the identifier as the server writes it in ``XA COMMIT X'…',X'…',1``.
        file: the binlog file that has it.
        pos: where it begins there, with its GTID event.
        before: the offset before it; ``None`` if it was prepared before the snapshot.
    """

    xid: str
    file: str
    pos: int
    before: "SourceOffset | None" = None


@dataclass(frozen=True, slots=True)
class SourceOffset:
    """A safe restart point.

    Attributes:
        file: binlog file name.
        pos: position in ``file`` where the current transaction begins, or after the last one.
        gtids: executed GTID set before that position, or ``None`` without GTIDs.
        event: events of the transaction after ``pos`` that are done and must be skipped.
        row: rows of the next event that are done and must be skipped.
        server_id: server id of the last event, 0 if none.
        ts_sec: time of the last event in seconds since the epoch, ``None`` if not known.
        snapshot: ``INITIAL`` while an initial snapshot is under way, ``BLOCKING`` in a blocking one, else ``None``.
        transaction: within a transaction, with transaction metadata, ``transaction_id`` and the orders per collection.
        prepared: the XA transactions that were prepared before and have not ended, in order.
        server: the server that ``file`` and ``pos`` belong to: MySQL's ``server_uuid``, MariaDB's ``server_id``;
            ``None`` if it is not known. Stored only without GTIDs, which hold on every server.
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
    server: str | None = None

    def gtid_set(self, connector: str) -> GtidSet | MariadbGtidPosition:
        """``gtids`` as the set of the ``mysql`` connector, or the position of the ``mariadb`` one; empty for none."""
        return (MariadbGtidPosition if connector == "mariadb" else GtidSet).parse(self.gtids or "")

    def to_map(self) -> dict[str, Any]:
        """Debezium's fields of this offset, in the order in which Debezium writes them.

        With XA transactions that are prepared there are fields of rowtide's own. Debezium, which does not know them,
        begins before the oldest of these transactions, so as not to miss it.
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
        """The value of the record in Kafka Connect's offsets topic."""
        fields = self.to_map()
        if self.server is not None and self.gtids is None:
            fields = java_hash_map_order({**fields, _SERVER: self.server})
        return json.dumps(fields, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_map(cls, fields: Mapping[str, Any]) -> "SourceOffset":
        """Read a stored offset, Debezium's or ours.

        Raises:
            ValueError: a field is missing or has the wrong type; the message names it.
        """
        if fields.get(_CURRENT) is not None:
            return replace(cls.from_json(fields[_CURRENT]), server=fields.get(_SERVER))
        if not isinstance(fields.get("file"), str):
            msg = f"source offset 'file' parameter is missing or not a string: {dict(fields)!r}"
            raise ValueError(msg)  # noqa: TRY004 - a stored text is wrong, not an argument's type
        transaction = {
            name: value for name, value in fields.items() if name.startswith(("transaction_id", "transaction_data_"))
        }
        snapshot = fields.get("snapshot")
        if isinstance(snapshot, bool):  # written by Debezium before 3.0
            snapshot = "INITIAL" if snapshot else None
        return cls(
            file=fields["file"],
            pos=_whole(fields, "pos", 4),
            gtids=fields.get("gtids"),
            event=_whole(fields, "event", 0),
            row=_whole(fields, "row", 0),
            server_id=_whole(fields, "server_id", 0),
            ts_sec=None if fields.get("ts_sec") is None else _whole(fields, "ts_sec", 0),
            snapshot=snapshot,
            transaction=transaction or None,
            prepared=tuple(
                PreparedXa(xid, file, pos, before and cls.from_map(before))
                for xid, file, pos, before in json.loads(fields.get(_PREPARED) or "[]")
            ),
            server=fields.get(_SERVER),
        )

    @classmethod
    def from_json(cls, text: str | bytes) -> "SourceOffset":
        """Read the value of a record of the offsets topic; raises ``ValueError`` as ``from_map`` does."""
        fields = json.loads(text)
        if not isinstance(fields, dict):
            msg = f"a source offset must be a JSON object, this is not: {text!r}"
            raise ValueError(msg)  # noqa: TRY004 - the text is wrong, not the type of the argument
        return cls.from_map(fields)


def _whole(fields: Mapping[str, Any], name: str, default: int) -> int:
    value = fields.get(name, default)
    try:
        return int(value)
    except (TypeError, ValueError):
        msg = f"source offset {name!r} must be a whole number, not {value!r}"
        raise ValueError(msg) from None


def java_hash_map_order(fields: Mapping[str, Any], capacity: int = 16) -> dict[str, Any]:
    """Order fields as a ``java.util.HashMap`` iterates over them, for Debezium builds its offsets in one.

    Args:
        fields: by name.
        capacity: of the map when it was made.
    """
    while len(fields) > capacity * 3 // 4:
        capacity *= 2

    def bucket(name: str) -> int:
        code = 0
        for unit in memoryview(name.encode("utf-16-le")).cast("H"):
            code = (31 * code + unit) & 0xFFFFFFFF
        return (code ^ (code >> 16)) & (capacity - 1)

    return {name: fields[name] for name in sorted(fields, key=bucket)}
