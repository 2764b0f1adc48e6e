"""Whole streams through the decoder: recorded files and captured dumps, complete, shifted, truncated and damaged."""

import contextlib
from collections import Counter
from pathlib import Path

import pytest

from rowtide.connector.errors import (
    ChecksumMismatch,
    ProtocolError,
    RemoteProtocolError,
    TruncatedEvent,
    UnsupportedEvent,
)
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import (
    Event,
    FormatDescription,
    Ignorable,
    Rotate,
    Rows,
    TableMap,
    TransactionPayload,
)
from rowtide.connector.protocol.header import EventType
from tests.support.mysql.packets import captured, captured_one, event, golden_files, golden_packets, started


def all_events(packets: list[bytes]) -> list[Event]:
    decoder = EventDecoder()
    events: list[Event] = []
    for packet in packets:
        events.append(decoder.decode(packet))
        if isinstance(events[-1], TransactionPayload):
            events += decoder.unpack(events[-1])
    return events


@pytest.mark.parametrize("file", golden_files(), ids=lambda file: f"{file.parts[-4]}-{file.stem}")
def test_every_event_of_a_recorded_file_is_decoded_with_its_position(file: Path) -> None:
    decoder = EventDecoder(file.stem)
    position = 4
    for packet in golden_packets(file):
        decoded = decoder.decode(packet)
        position += len(packet)
        assert not isinstance(decoded, Ignorable)
        if isinstance(decoded, Rotate):
            assert (decoder.file, decoder.position) == (decoded.next_file, 4)
        else:
            assert decoder.position == position
            assert decoded.header.log_pos in {0, position}


def test_the_recorded_files_are_complete() -> None:
    kinds = Counter(type(e).__name__ for file in golden_files() for e in all_events(list(golden_packets(file))))
    assert kinds["Rows"] >= 663  # new cases may bring more
    assert kinds["TransactionPayload"] >= 6
    assert kinds["MariadbGtidEvent"] >= 158
    assert sum(kinds.values()) > 4000


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_a_rows_event_refers_to_a_table_map_before_it(server: str) -> None:
    tables: dict[int, TableMap] = {}
    rows = 0
    for decoded in all_events(captured(server)):
        if isinstance(decoded, TableMap):
            tables[decoded.table_id] = decoded
        if isinstance(decoded, Rows):
            rows += 1
            assert decoded.column_count == len(tables[decoded.table_id].structure.columns)
            assert decoded.start < decoded.end <= len(decoded.buffer)
    assert rows >= 9


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_an_event_may_start_at_any_offset_of_its_packet(server: str) -> None:
    plain, shifted = EventDecoder(), EventDecoder()
    for packet in captured(server):
        first, second = plain.decode(packet), shifted.decode(b"\x00\xef\x01" + packet, 3)
        if isinstance(first, Rows) and isinstance(second, Rows):
            assert first.buffer[first.start : first.end] == second.buffer[second.start : second.end]
            first, second = first._replace(buffer=b"", start=0, end=0), second._replace(buffer=b"", start=0, end=0)
        if not isinstance(first, TransactionPayload):
            assert first == second


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_truncated_events_are_refused_with_their_position(server: str) -> None:
    packets = captured(server)
    for index, packet in enumerate(packets[2:12], 2):
        decoder = EventDecoder()
        for before in packets[:index]:
            decoder.decode(before)
        for size in range(len(packet)):
            with pytest.raises(TruncatedEvent, match=rf"\(at binlog.000001:{decoder.position}\)"):
                decoder.decode(packet[:size])
        with pytest.raises(TruncatedEvent):
            decoder.decode(packet + b"\0")
        decoder.decode(packet)


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_a_changed_byte_is_refused(server: str) -> None:
    decoder = started(server)
    for packet in captured(server)[2:]:
        for at in range(19, len(packet) - 5, 7):
            damaged = packet[:at] + bytes([packet[at] ^ 0x40]) + packet[at + 1 :]
            with pytest.raises(ChecksumMismatch, match="mysqlbinlog"):
                decoder.decode(damaged)
        decoder.decode(packet)


@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_without_verification_damage_is_an_error_or_decodes_but_never_crashes(server: str) -> None:
    found = 0
    for packet in captured(server)[2:]:
        decoder = started(server, verify_checksum=False)
        for at in range(19, len(packet) - 5):
            for flip in (0x01, 0xFF):
                damaged = packet[:at] + bytes([packet[at] ^ flip]) + packet[at + 1 :]
                with contextlib.suppress(ProtocolError):
                    decoded = decoder.decode(damaged)
                    if isinstance(decoded, TransactionPayload):
                        list(decoder.unpack(decoded))
                    continue
                found += 1
    assert found > 1000


def test_the_checksum_does_not_cover_the_in_use_flag() -> None:
    packet = bytearray(captured_one("mysql", EventType.FORMAT_DESCRIPTION))
    packet[17] |= 1
    assert isinstance(EventDecoder().decode(bytes(packet)), FormatDescription)
    packet[30] ^= 1
    with pytest.raises(ChecksumMismatch):
        EventDecoder().decode(bytes(packet))


@pytest.mark.parametrize("checksum", [True, False])
def test_the_first_rotate_comes_with_or_without_a_checksum(checksum: bool) -> None:
    body = (4).to_bytes(8, "little") + b"binlog.000042"
    decoder = EventDecoder()
    decoder.decode(event(EventType.ROTATE, body, flags=0x20, log_pos=0, checksum=checksum))
    assert (decoder.file, decoder.position) == ("binlog.000042", 4)


def test_an_event_before_the_format_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="XID event before the FORMAT_DESCRIPTION"):
        EventDecoder("binlog.000001").decode(event(EventType.XID, bytes(8)))


def test_an_unknown_event_is_refused_unless_it_is_ignorable() -> None:
    decoder = started()
    with pytest.raises(UnsupportedEvent, match=r"unknown event type 99.*\(at binlog.000001:975\)") as caught:
        decoder.decode(event(99, b"\xab\xcd"))
    assert "abcd" not in str(caught.value), "the bytes may hold values of rows"
    assert decoder.decode(event(99, b"\xab\xcd", flags=0x80)) == Ignorable(
        (1_700_000_000, 99, 1, 25, 1000, 0x80), b"\xab\xcd"
    )
    with pytest.raises(UnsupportedEvent, match="unknown LOAD"):
        decoder.decode(event(EventType.LOAD, bytes(20)))


def test_a_dump_from_the_middle_keeps_its_position() -> None:
    decoder = EventDecoder()
    decoder.decode(event(EventType.ROTATE, (285).to_bytes(8, "little") + b"binlog.000007", flags=0x20, log_pos=0))
    description = bytearray(captured_one("mariadb", EventType.FORMAT_DESCRIPTION)[:-4])
    description[13:17] = bytes(4)  # log_pos, as the server sends it when the dump does not begin at the file's start
    decoder.decode(event(EventType.FORMAT_DESCRIPTION, bytes(description[19:]), log_pos=0))
    assert (decoder.file, decoder.position) == ("binlog.000007", 285)
    decoder.decode(event(EventType.XID, bytes(8), log_pos=0))
    assert decoder.position == 316


def test_a_heartbeat_does_not_move_the_position() -> None:
    decoder = started()
    before = decoder.position
    decoder.decode(event(EventType.HEARTBEAT_V2, b"\x01\x0dbinlog.000001\x02\x01\x7f\x00", log_pos=0))
    assert decoder.position == before
