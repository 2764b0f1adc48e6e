"""The compiled reader of usual events: the events and errors of Python, or nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.errors import ProtocolError
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import Event, Gtid, Query, Rows, TableMap, Xid
from rowtide.connector.protocol.header import EventType
from rowtide.connector.protocol.native import usual_events
from tests.support.mysql.packets import captured, event, golden_files, golden_packets

pytestmark = pytest.mark.skipif(usual_events.reader is None, reason="there is no compiled code: run docker/setup")


def decoders(server: str, *, verify: bool = True) -> tuple[EventDecoder, EventDecoder]:
    """A decoder with compiled code and one without, which have read a stream; Python has parsed all its tables."""
    found = EventDecoder(verify_checksum=verify), EventDecoder(verify_checksum=verify)
    for decoder in found:
        for packet in captured(server):
            decoder.decode(packet)
    found[1]._usual = None
    return found


def outcome(decoder: EventDecoder, packet: bytes) -> tuple[Event | str, int]:
    """The event, or the error, and the position after it."""
    try:
        return decoder.decode(packet), decoder.position
    except ProtocolError as error:
        return f"{type(error).__name__}: {error}", decoder.position


@pytest.mark.parametrize("file", golden_files(), ids=lambda file: f"{file.parts[-4]}-{file.stem}")
def test_recorded_events_are_the_same(file: Path) -> None:
    compiled, python = EventDecoder(file.stem), EventDecoder(file.stem)
    for packet in golden_packets(file):
        python._usual = None
        assert outcome(compiled, packet) == outcome(python, packet)


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_most_events_are_read_by_compiled_code(server: str) -> None:
    compiled, _ = decoders(server)
    assert compiled._usual is not None
    kinds = set()
    for packet in captured(server)[2:]:
        found = compiled._usual.decode(packet, True, True, compiled._structures)
        if found is not None:
            assert found == compiled.decode(packet)
            kinds.add(type(found).__name__)
    assert kinds == {"Gtid" if server == "mysql" else "MariadbGtidEvent", "Query", "TableMap", "Rows", "Xid"}


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_damaged_events_have_the_same_outcome(server: str, verify: bool) -> None:
    compiled, python = decoders(server, verify=verify)
    errors = 0
    for packet in {packet[4]: packet for packet in captured(server)[2:]}.values():
        for at in range(len(packet)):
            for damaged in (packet[:at], packet[:at] + bytes([packet[at] ^ 0x81]) + packet[at + 1 :]):
                found = outcome(compiled, damaged)
                assert found == outcome(python, damaged)
                errors += isinstance(found[0], str)
                python.position = compiled.position = 4
    assert errors > 100


USUAL = [
    EventType.QUERY, EventType.XID, EventType.TABLE_MAP, EventType.WRITE_ROWS_V1, EventType.UPDATE_ROWS_V1,
    EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS, EventType.GTID, EventType.ANONYMOUS_GTID,
    EventType.MARIADB_GTID,
]  # fmt: skip


@given(st.sampled_from(USUAL), st.binary(max_size=60), st.sampled_from([0, 0x20, 0x80]), st.sampled_from([0, 1000]))
def test_random_bodies_have_the_same_outcome(kind: EventType, body: bytes, flags: int, log_pos: int) -> None:
    compiled, python = decoders("mysql")
    packet = event(kind, body, flags=flags, log_pos=log_pos)
    assert outcome(compiled, packet) == outcome(python, packet)


@given(st.binary(min_size=16, max_size=16), st.integers(0, 2**63 - 1), st.lists(st.integers(0, 255), max_size=50))
def test_gtid_events_of_all_lengths_have_the_same_outcome(uuid: bytes, gno: int, rest: list[int]) -> None:
    compiled, python = decoders("mysql")
    packet = event(EventType.GTID, b"\x01" + uuid + gno.to_bytes(8, "little") + bytes([2, *rest]))
    for _ in range(2):  # the second time, Python has cached the text of the uuid
        assert outcome(compiled, packet) == outcome(python, packet)


def test_an_opening_is_three_events() -> None:
    packets = captured("mysql")
    compiled, python = decoders("mysql")
    found = 0
    for at in range(len(packets)):
        opening = compiled.opening(packets, at)
        if opening is None:
            continue
        found += 1
        assert opening == tuple(python.decode(packet) for packet in packets[at : at + 3])
        assert compiled.position == python.position
        assert [type(one) for one in opening] == [Gtid, Query, TableMap]
        assert python.opening(packets, at) is None
        assert compiled.opening(packets[: at + 2], at) is None
    assert found > 3


@pytest.mark.parametrize("changed", range(3))
def test_an_opening_with_another_event_is_none(changed: int) -> None:
    packets = captured("mysql")
    compiled, _ = decoders("mysql")
    at = next(at for at in range(len(packets)) if compiled.opening(packets, at))
    position = compiled.position
    other = next(packet for packet in packets if packet[4] == EventType.XID)
    wrong = packets[at + changed][:-1] + bytes([packets[at + changed][-1] ^ 1])
    rollback = event(EventType.QUERY, bytes(13) + b"\0ROLLBACK")
    compiled.decode(rollback)  # its settings are known
    compiled.position = position
    for replacement in (other, wrong, b"", rollback):
        given = packets[at : at + 3]
        given[changed] = replacement
        assert compiled.opening(given, 0) is None
    assert compiled.opening(packets, len(packets)) is None
    assert compiled.position == position


def test_wrong_arguments_are_refused() -> None:
    reader = usual_events.reader
    assert reader is not None
    with pytest.raises(TypeError):
        reader.decode(b"")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        reader.opening((), 0, True, True, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        type(reader)((int,), (), len, {}, {})
    assert reader.decode(bytearray(40), True, True, {}) is None  # type: ignore[arg-type]


def test_rows_and_commits_stay_in_their_packet() -> None:
    compiled, python = decoders("mysql")
    for kind in (Rows, Xid):
        packet = next(packet for packet in captured("mysql") if isinstance(python.decode(packet), kind))
        found = compiled.decode(packet)
        assert isinstance(found, kind)
        if isinstance(found, Rows):
            assert found.buffer is packet
