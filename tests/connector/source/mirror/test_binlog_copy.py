"""The bytes of binlog files from a replication stream, from every position at which a crash can leave them."""

import io
import zlib
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path

import pytest

from rowtide.connector.errors import ChecksumMismatch, MirrorError, RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.header import ARTIFICIAL, HEADER, IGNORABLE, EventType
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.mirror.binlog_copy import BinlogCopy, CopyPosition, NextFile, whole_part
from rowtide.connector.source.mirror.folder import MirrorFolder, Origin
from rowtide.connector.source.mirror.reader import MirrorStream
from tests.support.mysql.dumped_files import dumped, golden_binlogs
from tests.support.mysql.packets import event

CASES = ["restart-between-stages", "gtid-off", "mariadb-transaction-boundaries"]
FLAGS = 21
MAGIC = b"\xfebin"


def copied(files: Mapping[str, bytes], at: CopyPosition, begun: bytes = b"") -> dict[str, bytes]:
    """The copies of files, from a position in one of them on."""
    found, name = {at.file: begun}, at.file
    for piece in BinlogCopy(at).receive(dumped(files, at.file, at.dump_start)):
        if isinstance(piece, NextFile):
            name = piece.name
            found[name] = b""
        else:
            found[name] += b"".join(piece)
    return found


def in_use(data: bytes) -> bytes:
    """A file with the in-use flag, as the copy has it before it is finished."""
    return data[:FLAGS] + bytes([data[FLAGS] | 1]) + data[FLAGS + 1 :]


def expected(files: Mapping[str, bytes]) -> dict[str, bytes]:
    return {name: in_use(data) for name, data in files.items()}


@pytest.mark.parametrize("case", CASES)
def test_the_copy_has_the_bytes_of_the_files(case: str) -> None:
    files = golden_binlogs(case)
    assert copied(files, CopyPosition(next(iter(files)))) == expected(files)


@pytest.mark.parametrize("case", CASES)
def test_a_copy_that_is_cut_anywhere_is_continued_to_the_same_bytes(case: str) -> None:
    files = golden_binlogs(case)
    name, *others = files
    whole = in_use(files[name])
    for size in range(len(whole) + 1):
        at = whole_part(io.BytesIO(whole[:size]), name)
        assert at.end <= size
        found = copied(files, at, whole[: at.end])
        assert found[name] == whole, size
        assert list(found) == [name, *others]


@pytest.mark.parametrize("case", CASES)
def test_what_a_crash_leaves_behind_the_last_event_is_not_taken_for_events(case: str) -> None:
    name, data = next(iter(golden_binlogs(case).items()))
    whole = whole_part(io.BytesIO(data), name)
    assert whole.end == len(data)
    for garbage in (bytes(4096), b"\xff" * 100, data[4:], b"x"):
        assert whole_part(io.BytesIO(data + garbage), name) == whole


def test_a_damaged_event_ends_the_whole_part() -> None:
    name, data = next(iter(golden_binlogs(CASES[0]).items()))
    ends = [4]
    for packet in islice(dumped({name: data}, name, 4), 1, None, 2):
        ends.append(ends[-1] + len(packet))
    for position in range(4, len(data)):
        damaged = data[:position] + bytes([data[position] ^ 0x40]) + data[position + 1 :]
        before = max(end for end in ends if end <= position)
        assert whole_part(io.BytesIO(damaged), name).end == (0 if before == 4 else before)


def test_a_file_without_a_format_has_no_whole_part() -> None:
    data = MAGIC + event(EventType.XID, bytes(8), log_pos=4 + 31)
    assert whole_part(io.BytesIO(data), "binlog.000001") == CopyPosition("binlog.000001")


def test_a_server_with_other_events_is_refused() -> None:
    files = golden_binlogs(CASES[0])
    name = next(iter(files))
    at = whole_part(io.BytesIO(files[name]), name)
    other = CopyPosition(name, at.end, at.last[:-5] + b"X" + at.last[-4:])
    with pytest.raises(MirrorError, match=rf"the server's {name} is not the mirrored one.*other contents there"):
        copied(files, other)
    after = list(dumped(files, name, at.end))  # nothing of the file is left there
    with pytest.raises(MirrorError, match="and it sends nothing there"):
        list(BinlogCopy(at).receive(after))


def test_a_file_between_is_not_left_out() -> None:
    files = golden_binlogs("gtid-off")
    names = list(files)
    apart = {name: files[name] for name in names if name != names[1]}
    with pytest.raises(
        MirrorError, match=rf"sends {names[2]} after {names[0]}: the binlog files in between are missing"
    ):
        copied(apart, CopyPosition(names[0]))


def test_events_between_are_not_left_out() -> None:
    files = golden_binlogs(CASES[0])
    name = next(iter(files))
    packets = list(dumped(files, name, 4))
    with pytest.raises(MirrorError, match=r"that begins \d+ bytes later: the events in between are missing"):
        list(BinlogCopy(CopyPosition(name)).receive(packets[:5] + packets[7:]))


def test_events_that_are_damaged_on_the_way_are_not_written() -> None:
    files = golden_binlogs(CASES[0])
    name = next(iter(files))
    packets = list(dumped(files, name, 4))
    damaged = packets[5][:25] + b"\x99" + packets[5][26:]
    with pytest.raises(ChecksumMismatch, match=rf"wrong checksum \(at {name}:\d+\)"):
        list(BinlogCopy(CopyPosition(name)).receive([*packets[:5], damaged]))
    with pytest.raises(TruncatedEvent, match="not the size in its header"):
        list(BinlogCopy(CopyPosition(name)).receive([*packets[:5], packets[5][:-1]]))
    with pytest.raises(RemoteProtocolError, match="before the FORMAT_DESCRIPTION"):
        list(BinlogCopy(CopyPosition(name)).receive([packets[0], packets[3]]))


def test_the_servers_own_events_are_not_written() -> None:
    files = golden_binlogs(CASES[0])
    name = next(iter(files))
    fake = event(EventType.MARIADB_GTID_LIST, bytes(4), flags=ARTIFICIAL, log_pos=0)
    packets = [part for packet in dumped(files, name, 4) for part in (packet, fake)]
    copy = BinlogCopy(CopyPosition(name))
    pieces = [piece for piece in copy.receive(packets) if not isinstance(piece, NextFile)]
    assert b"".join(map(b"".join, pieces)) == b"".join(expected(files).values())


ENCRYPTION = HEADER.pack(0, EventType.MARIADB_START_ENCRYPTION, 1, 40, 0, 0) + bytes(21)


def encrypted() -> tuple[str, bytes, int]:
    """A file of MariaDB with encryption: its name, what the server reads in it, and where START_ENCRYPTION begins."""
    name, data = next(iter(golden_binlogs("mariadb-transaction-boundaries").items()))
    first, *others = binlog_packets(io.BytesIO(data), name)
    start = 4 + len(first)
    begin = _moved(ENCRYPTION[:13] + start.to_bytes(4, "little") + ENCRYPTION[17:], 40)
    return name, b"".join((MAGIC, first, begin, *(_moved(packet, 40) for packet in others))), start


def sent(name: str, data: bytes, position: int, *, encryption: bool = True) -> list[bytes]:
    """What a server sends of an encrypted file: START_ENCRYPTION, too, without a position if the dump begins later."""
    packets = [packet for packet in dumped({name: data}, name, position) if packet[4] != EventType.HEARTBEAT]
    if not encryption:
        return [packet for packet in packets if packet[4] != EventType.MARIADB_START_ENCRYPTION]
    return packets if position == 4 else [*packets[:2], ENCRYPTION, *packets[2:]]


def mirrored(at: CopyPosition, packets: list[bytes]) -> bytes:
    return b"".join(b"".join(piece) for piece in BinlogCopy(at).receive(packets) if not isinstance(piece, NextFile))


@pytest.mark.parametrize("encryption", [True, False])
def test_an_encrypted_file_is_copied_as_one_that_is_not_with_the_same_positions(*, encryption: bool) -> None:
    name, data, start = encrypted()
    found = mirrored(CopyPosition(name), sent(name, data, 4, encryption=encryption))
    _, kind, _, size, log_pos, flags = HEADER.unpack_from(found, start)
    assert (kind, size, log_pos, flags) == (EventType.IGNORABLE, 40, start + 40, IGNORABLE)
    assert (found[:start], found[start + 40 :]) == (in_use(data)[:start], data[start + 40 :])
    assert whole_part(io.BytesIO(found), name).end == len(found)


@pytest.mark.parametrize("encryption", [True, False])
def test_the_copy_of_an_encrypted_file_that_is_cut_anywhere_is_continued_to_the_same_bytes(*, encryption: bool) -> None:
    name, data, _ = encrypted()
    whole = mirrored(CopyPosition(name), sent(name, data, 4))
    for size in range(len(whole) + 1):
        at = whole_part(io.BytesIO(whole[:size]), name)
        rest = mirrored(at, sent(name, data, at.dump_start, encryption=encryption))
        assert whole[: at.end] + rest == whole, size


@pytest.mark.parametrize("gtids", [None, ""])
def test_the_copy_of_an_encrypted_file_is_read_from_every_position(gtids: str | None, tmp_path: Path) -> None:
    """The stream of a connector has the events of a file that is not encrypted."""
    name, data, _ = encrypted()
    with MirrorFolder(tmp_path) as mirror:
        mirror.claim(Origin("mariadb", "server"))
    (tmp_path / name).write_bytes(mirrored(CopyPosition(name), sent(name, data, 4)))
    packets = list(binlog_packets(io.BytesIO(data), name))
    position = 4
    for number, packet in enumerate(packets):
        if packet[4] != EventType.MARIADB_START_ENCRYPTION and not (gtids == "" and number):
            start = SourceOffset(name, position, gtids)
            stream = MirrorStream(tmp_path, start, "mariadb", follow=False)
            found = [one for some in stream.events() for one in some if not one[17] & ARTIFICIAL]
            kinds = [one[4] for one in packets[number:] if one[4] != EventType.MARIADB_START_ENCRYPTION]
            begun = [EventType.FORMAT_DESCRIPTION] if number else []
            assert [one[4] for one in found if one[4] != EventType.IGNORABLE] == begun + kinds
        position += len(packet)


def _moved(packet: bytes, by: int) -> bytes:
    """An event that is further behind in its file."""
    fields = list(HEADER.unpack_from(packet))
    fields[4] += by if fields[4] else 0
    moved = HEADER.pack(*fields) + packet[19:-4]
    return moved + zlib.crc32(moved).to_bytes(4, "little")


def test_a_dump_behind_4_gib_begins_at_the_start_of_the_file() -> None:
    last = event(EventType.XID, bytes(8), log_pos=100)
    at = CopyPosition("binlog.000001", 2**32 + 100, last)
    assert at.start == 2**32 + 100 - len(last)
    assert at.dump_start == 4
    assert CopyPosition("binlog.000001", 2**32, last).dump_start == 2**32 - len(last)


def large(events: int, size: int) -> Iterator[bytes]:
    """The events of a file that is larger than 4 GiB by its positions."""
    data = golden_binlogs(CASES[0])["binlog.000001"]
    head = data[4 : 4 + HEADER.unpack_from(data, 4)[3] - 5] + b"\0"  # without checksums, which would take long
    yield head + zlib.crc32(head).to_bytes(4, "little")
    position, body = 4 + len(head) + 4, bytes(size)
    for _ in range(events):
        position += 19 + size
        yield HEADER.pack(1, EventType.WRITE_ROWS, 1, 19 + size, position & 0xFFFFFFFF, 0) + body


def test_a_file_larger_than_4_gib_is_continued() -> None:
    copy = BinlogCopy(CopyPosition("binlog.000001"))
    written = 0
    for packet in large(260, 1 << 24):
        written += sum(len(data) for piece in copy.receive([packet]) if isinstance(piece, list) for data in piece)
    assert copy.at.end == written > 2**32
    again = BinlogCopy(copy.at)
    for number, packet in enumerate(large(262, 1 << 24)):
        pieces = [piece for piece in again.receive([packet]) if piece]
        assert bool(pieces) == (number > 260)
    assert again.at.end == copy.at.end + 2 * ((1 << 24) + 19)
