"""Stored offsets: keys and values of a shared offsets topic, Kafka Connect's offset files, and GTID sets."""

from __future__ import annotations

import json
import struct
from contextlib import suppress
from random import Random

from rowtide.connector.delivery.file_offset_store import deserialized, serialized
from rowtide.connector.delivery.offset_store import is_offset_key, offset_key
from rowtide.connector.errors import LocalProtocolError
from rowtide.connector.protocol.replication import commands
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from tests.fuzz.mutators import HOSTILE, mutated, mutated_json
from tests.fuzz.recorded import offset_texts

_KEY, _VALUE, _FILE, _GTIDS, _ENCODED = range(5)
_UUID = "aa7d5f2e-e591-11f1-904d-02fc00000001"
_SETS = ("", f"{_UUID}:1-5", f"{_UUID}:1-5:7:9-100:tag:1-3,{_UUID[:-1]}2:5", "0-1-42", "0-1-42,1-2-3", f"{_UUID}:5-3")
_EXTRA = {
    "event": 5, "row": 2, "transaction_id": "x", "snapshot": "INITIAL", "rowtide_server": "5", "rowtide_gtid": "5-1-7",
    "rowtide_prepared": '[["X\'61\',X\'\',1","binlog.000001",4,null],["b","f.1",5,{"file":"f.1","pos":4}]]',
    "rowtide_done": '{"file":"binlog.000002","pos":4}', "gtids": f"{_UUID}:1-5",
}  # fmt: skip


class Offsets:
    """An input is a byte that selects what is read, and its bytes."""

    declared = (ValueError, LocalProtocolError)

    def make(self, random: Random) -> bytes:
        """A damaged key, value, file or set."""
        kind = random.choice((_KEY, _VALUE, _VALUE, _VALUE, _FILE, _GTIDS, _ENCODED))
        if kind == _KEY:
            data = _json(random, ["name", {"server": "prefix"}])
        elif kind == _VALUE:
            value = json.loads(random.choice(offset_texts()))
            value |= dict(random.sample(list(_EXTRA.items()), random.choice((0, 1, 2))))
            data = _json(random, value)
        elif kind == _FILE:
            value = random.choice(offset_texts()).encode()
            entries = {
                offset_key("name", "prefix"): value,
                offset_key("other", "x"): None if random.random() < 0.5 else value,
            }
            data = mutated(random, serialized(entries))
        elif kind == _GTIDS:
            data = mutated(random, random.choice(_SETS).encode(), (b"-", b":", b",", b"0", b"9" * 5000, _UUID.encode()))
        else:
            data = mutated(random, GtidSet.parse(random.choice(_SETS[:3])).encode())
        return bytes((kind,)) + data

    def run(self, data: bytes) -> None:
        """Read it, and use what was read as a start does."""
        kind, text = data[:1], data[1:]
        if kind == bytes((_KEY,)):
            is_offset_key(text, "name", "prefix")
        elif kind == bytes((_VALUE,)):
            _use(SourceOffset.from_json(text))
        elif kind == bytes((_FILE,)):
            try:
                found = deserialized(text)
            except (struct.error, IndexError):
                return
            for key, value in found.items():
                if is_offset_key(key, "name", "prefix") and value is not None:
                    _use(SourceOffset.from_json(value))
        elif kind == bytes((_GTIDS,)):
            _parse(text.decode("utf-8", "replace"))
        elif kind == bytes((_ENCODED,)):
            gtids = GtidSet.decode(text)
            assert GtidSet.parse(str(gtids)) == gtids


def _use(offset: SourceOffset) -> None:
    """Use an offset as a start does."""
    again = SourceOffset.from_json(offset.to_json())
    assert again == offset, f"{again} is not {offset}"
    for connector in ("mysql", "mariadb"):
        with suppress(ValueError):  # of the other kind of server
            gtids = offset.gtid_set(connector)
            if isinstance(gtids, GtidSet):
                commands.binlog_dump_gtid(1, gtids)
    commands.binlog_dump(1, offset.file, offset.pos)
    for position in (offset, *(xa.before for xa in offset.prepared if xa.before is not None)):
        PositionFilter(BinlogPosition.from_map(position.to_map())).includes(BinlogPosition("binlog.000001", 4))


def _json(random: Random, value: object) -> bytes:
    """A damaged value as JSON, or the JSON damaged."""
    action = random.random()
    if action < 0.03:
        depth = random.choice((100, 1000, 5000, 100_000))
        return b"[" * depth if action < 0.015 else b'{"a":' * depth
    if action < 0.7:
        return json.dumps(mutated_json(random, value)).encode("utf-8", "surrogatepass")
    return mutated(random, json.dumps(value).encode(), tuple(json.dumps(hostile).encode() for hostile in HOSTILE))


def _parse(text: str) -> None:
    for kind in (GtidSet, MariadbGtidPosition):
        try:
            found = kind.parse(text)
        except ValueError:
            continue
        assert kind.parse(str(found)) == found
