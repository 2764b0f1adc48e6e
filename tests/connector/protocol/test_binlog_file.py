"""Binlog files from disk: plain, gzipped, truncated, damaged, encrypted."""

import gzip
import io

import pytest

from rowtide.connector.errors import EncryptedBinlog, RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol.binlog_file import MAGIC, binlog_packets
from tests.support.mysql.packets import captured, golden_files, golden_packets

PACKETS = captured("mysql")[1:6]
FILE = MAGIC + b"".join(PACKETS)
IN_USE = FILE[:21] + b"\x01" + FILE[22:]
"""The in-use flag, set while the server writes to the file."""


def read(data: bytes, *, active: bool = False) -> list[bytes]:
    return list(binlog_packets(io.BytesIO(data), "binlog.000001", active=active))


def test_a_file_is_split_into_events_plain_and_gzipped() -> None:
    assert read(FILE) == PACKETS
    assert read(gzip.compress(FILE)) == PACKETS
    assert read(MAGIC) == []


def test_recorded_files_are_read_to_their_end() -> None:
    file = golden_files()[0]
    assert MAGIC + b"".join(golden_packets(file)) == gzip.decompress(file.read_bytes())


def test_a_truncated_file_yields_its_complete_events_then_an_error_with_the_position() -> None:
    ends = [4 + sum(map(len, PACKETS[: i + 1])) for i in range(len(PACKETS))]
    for size in range(4, len(FILE)):
        whole = [packet for packet, end in zip(PACKETS, ends, strict=True) if end <= size]
        assert len(read(IN_USE[:size], active=True)) == len(whole)
        if size in {4, *ends}:
            assert read(FILE[:size]) == whole
            continue
        packets = binlog_packets(io.BytesIO(FILE[:size]), "binlog.000001")
        for packet in whole:
            assert next(packets) == packet
        place = 4 + sum(map(len, whole))
        with pytest.raises(TruncatedEvent, match=rf"the file ends inside .*\(at binlog.000001:{place}\)"):
            next(packets)


def test_an_incomplete_event_is_tolerated_only_in_a_file_in_use(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert len(read(IN_USE[:-1], active=True)) == len(PACKETS) - 1
    assert "the server was still writing it, so the event is skipped" in caplog.text
    with pytest.raises(TruncatedEvent):
        read(FILE[:-1], active=True)


@pytest.mark.parametrize(
    ("data", "message"), [(b"", "starts with nothing"), (b"PNG", "starts with 504e47"), (FILE[4:], "not a")]
)
def test_other_files_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(RemoteProtocolError, match=message):
        read(data)


def test_an_encrypted_file_is_refused_with_a_remedy() -> None:
    with pytest.raises(EncryptedBinlog, match="read-from-remote-server"):
        read(b"\xfdbin" + bytes(508))


def test_a_damaged_gzip_stream_is_refused_with_its_position() -> None:
    packed = gzip.compress(FILE)
    for data in (packed[: len(packed) // 2], packed[:-10], packed[:200] + b"\0\0\0" + packed[203:]):
        with pytest.raises(RemoteProtocolError, match=r"gzip stream is damaged or incomplete.*binlog.000001:\d+"):
            read(data)


def test_an_impossible_size_is_refused() -> None:
    with pytest.raises(RemoteProtocolError, match="XID event with a size of 7 bytes"):
        read(MAGIC + bytes(4) + b"\x10" + bytes(4) + (7).to_bytes(4, "little") + bytes(6))
