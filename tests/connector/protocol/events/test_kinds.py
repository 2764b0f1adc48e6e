"""The contents of events: captured from servers, or built by hand where servers no longer or rarely write them."""

import struct
import zlib

import pytest
import zstandard

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import Event
from rowtide.connector.protocol.events.compression import decompress
from rowtide.connector.protocol.header import EventType
from rowtide.schema_history.position.gtid import MariadbGtid
from tests.support.mysql.packets import captured, captured_one, event, started


def kinds(server: str, kind: type[Event]) -> list[Event]:
    decoder = EventDecoder()
    return [e for e in map(decoder.decode, captured(server)) if isinstance(e, kind)]


def decoded(event_type: EventType, body: bytes, server: str = "mysql") -> Event:
    return started(server).decode(event(event_type, body))


def test_the_format_description_states_server_and_checksum() -> None:
    mysql = kinds("mysql", events.FormatDescription)[0]
    mariadb = kinds("mariadb", events.FormatDescription)[0]
    assert (mysql.server_version, mysql.mariadb, mysql.checksum) == ("9.7.4-2", False, "CRC32")
    assert (mariadb.server_version, mariadb.mariadb, mariadb.checksum) == ("11.4.5-MariaDB-log", True, "CRC32")


@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (19, 3, "binlog version 3"),
        (19 + 56, 13, "headers of 13 bytes"),
        (-9, 7, "checksum algorithm 7"),
        (19 + 57 + EventType.TABLE_MAP - 1, 6, r"TABLE_MAP events with a post-header of 6 bytes; known: \(8,\)"),
    ],
)
def test_an_unknown_format_is_refused(at: int, value: int, message: str) -> None:
    packet = bytearray(captured_one("mysql", EventType.FORMAT_DESCRIPTION))
    packet[at if at > 0 else at + 4] = value
    with pytest.raises(UnsupportedEvent, match=message):
        EventDecoder(verify_checksum=False).decode(bytes(packet))


def test_gtids_of_mysql() -> None:
    tagged, plain = kinds("mysql", events.Gtid)[1:3]
    assert tagged.text == f"{plain.uuid}:tag_one:2"
    assert (tagged.tag, tagged.gno, tagged.last_committed, tagged.sequence_number) == ("tag_one", 2, 1, 2)
    assert tagged.immediate_server_version == tagged.original_server_version == 90704
    assert plain.text == f"{plain.uuid}:{plain.gno}"
    assert plain.original_commit_timestamp == plain.immediate_commit_timestamp > 1_700_000_000_000_000
    assert not plain.anonymous


def test_a_gtid_from_another_server_has_both_timestamps_and_versions() -> None:
    body = b"\x01" + bytes(range(16)) + struct.pack("<qBqq", 7, 2, 5, 6)
    body += (1_600_000_000_000_000 | 1 << 55).to_bytes(7, "little") + (1_500_000_000_000_000).to_bytes(7, "little")
    body += b"\xfc\x10\x27" + struct.pack("<II", 80400 | 1 << 31, 80034) + struct.pack("<Q", 99)
    gtid = decoded(EventType.GTID, body)
    assert gtid[1:] == (
        "00010203-0405-0607-0809-0a0b0c0d0e0f", "", 7, 1, 5, 6, 1_600_000_000_000_000, 1_500_000_000_000_000, 10_000,
        80400, 80034, 99,
    )  # fmt: skip


@pytest.mark.parametrize("size", [25, 42])
def test_a_gtid_of_an_older_server_lacks_later_fields(size: int) -> None:
    body = (b"\x00" + bytes(16) + struct.pack("<qBqq", 3, 2, 1, 2))[:size]
    gtid = decoded(EventType.GTID, body)
    assert isinstance(gtid, events.Gtid)
    assert (gtid.gno, gtid.sequence_number, gtid.original_commit_timestamp) == (3, 2 if size == 42 else 0, 0)


def test_an_anonymous_gtid() -> None:
    gtid = decoded(EventType.ANONYMOUS_GTID, bytes(17) + struct.pack("<qBqq", 0, 2, 1, 2))
    assert isinstance(gtid, events.Gtid)
    assert gtid.anonymous


def test_a_gtid_with_unknown_fields_is_refused() -> None:
    with pytest.raises(UnsupportedEvent, match="unknown kind 3 of logical timestamps"):
        decoded(EventType.GTID, bytes(25) + b"\x03" + bytes(16))
    with pytest.raises(RemoteProtocolError, match="2 unknown bytes at its end"):
        decoded(EventType.GTID, bytes(25) + b"\x02" + bytes(16) + bytes(7) + b"\x05" + bytes(4) + bytes(8) + b"ab")
    message = captured_one("mysql", EventType.GTID_TAGGED)[19:-4]
    with pytest.raises(UnsupportedEvent, match="unknown version 2; known: 1"):
        decoded(EventType.GTID_TAGGED, b"\x04" + message[1:])
    with pytest.raises(RemoteProtocolError, match="its header states"):
        decoded(EventType.GTID_TAGGED, message + b"\0")


def test_previous_gtids_in_both_encodings() -> None:
    old, new = kinds("mysql", events.PreviousGtids)
    assert str(old.gtids) == ""
    assert ":tag_one:1-2" in str(new.gtids)
    assert new.gtids.encode() == captured_one("mysql", EventType.PREVIOUS_GTIDS, 1)[19:-4]
    with pytest.raises(RemoteProtocolError, match="followed by 1 unknown bytes"):
        decoded(EventType.PREVIOUS_GTIDS, old.gtids.encode() + b"\0")


def test_gtids_of_mariadb() -> None:
    gtids = kinds("mariadb", events.MariadbGtidEvent)
    first, start_alter, commit_alter, prepared, completed = gtids[:5]
    assert (first.text, first.standalone, first.ddl) == ("0-1-1", True, True)
    assert (start_alter.flags_extra, start_alter.start_alter) == (2, None)
    assert (commit_alter.flags_extra, commit_alter.start_alter) == (4, 2)
    assert prepared.xa == completed.xa == (7, b"x1", b"b")
    assert gtids[-1].gtid == MariadbGtid(3, 9, 1)
    lists = kinds("mariadb", events.MariadbGtidList)
    assert [set(event.gtids) for event in lists] == [set(), {MariadbGtid(3, 9, 1), MariadbGtid(0, 1, 27)}]


def test_a_mariadb_gtid_with_a_commit_id_and_a_thread_id() -> None:
    body = struct.pack("<QIB", 5, 2, 2 | 4) + struct.pack("<Q", 77) + b"\x10" + struct.pack("<I", 12)
    gtid = decoded(EventType.MARIADB_GTID, body, "mariadb")
    assert gtid[1:] == (MariadbGtid(2, 1, 5), 6, 77, None, 16, None, 12)
    with pytest.raises(UnsupportedEvent, match="extra flags 0x40"):
        decoded(EventType.MARIADB_GTID, struct.pack("<QIB", 5, 2, 2) + bytes(8) + b"\x40", "mariadb")


def test_ends_of_transactions() -> None:
    assert all(xid.xid > 0 for xid in kinds("mysql", events.Xid))
    for server in ("mysql", "mariadb"):
        prepare = kinds(server, events.XaPrepare)[0]
        assert (prepare.one_phase, prepare.xid) == (False, "X'7831',X'62',7")
        texts = [query.text for query in kinds(server, events.Query)]
        assert f"XA COMMIT {prepare.xid}" in texts


def test_statements_that_are_logged_as_text() -> None:
    for server in ("mysql", "mariadb"):
        decoder = EventDecoder()
        found = [decoder.decode(packet) for packet in captured(server)]
        variables = {e.name: e for e in found if isinstance(e, events.UserVar)}
        assert variables["u"].value == "häßlich".encode()
        assert variables["n"].value is None
        assert struct.unpack("<d", variables["d"].value or b"") == (1.5,)
        assert {e.kind for e in found if isinstance(e, events.IntVar)} == {1, 2}
        assert [e.seed1 > 0 for e in found if isinstance(e, events.Rand)] == [True]
        block = next(e for e in found if isinstance(e, events.LoadBlock))
        load = next(e for e in found if isinstance(e, events.ExecuteLoadQuery))
        assert (block.file_id, block.block) == (load.file_id, b"100\ta\n101\tb\n")
        assert b"INFILE" in load.query.statement[load.name_start : load.name_end]
        assert load.query.database == "cap"


def test_the_text_of_a_statement_is_decoded_by_its_own_character_set() -> None:
    status = bytes([4]) + struct.pack("<HHH", 8, 8, 255)
    body = struct.pack("<IIBHH", 9, 0, 1, 0, len(status)) + status + b"d\0" + "drop table é".encode("latin-1")
    query = decoded(EventType.QUERY, body)
    assert isinstance(query, events.Query)
    assert (query.text, query.database, query.thread_id, query.status.client_collation) == ("drop table é", "d", 9, 8)


def test_queries_rows_and_columns_of_a_compressed_mariadb_binlog() -> None:
    compressed = next(q for q in kinds("mariadb", events.Query) if b"cq" in q.statement)
    assert compressed.text.startswith("create table cq (v varchar(10) comment 'zzz")
    rows = [
        e for e in kinds("mariadb", events.Rows) if e.header.type_code >= EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1
    ]
    assert [(e.kind.value, e.start, e.end - len(e.buffer)) for e in rows] == [("u", 0, 0), ("d", 0, 0)]
    packet = bytearray(captured_one("mariadb", EventType.MARIADB_QUERY_COMPRESSED))
    decoder = started("mariadb", verify_checksum=False)
    packet[-20] ^= 0xFF
    with pytest.raises(RemoteProtocolError, match="cannot be decompressed"):
        decoder.decode(bytes(packet))


def test_a_compressed_event_that_claims_a_huge_size_is_refused() -> None:
    body = b"\x84" + (2 << 30).to_bytes(4, "big") + zlib.compress(bytes(1000))
    with pytest.raises(RemoteProtocolError, match="compressed event of 2147483648 bytes; servers replicate at most"):
        decompress(body, 0, len(body))


def test_rows_queries() -> None:
    assert kinds("mysql", events.RowsQuery)[0].text == "insert into a (id) values (7)"
    assert kinds("mariadb", events.RowsQuery)[-1].text == "insert into a (id) values (9)"


def test_heads_of_rows_events() -> None:
    partitioned = [e for e in kinds("mysql", events.Rows) if e.extra]
    assert [(e.kind.value, e.extra.hex()) for e in partitioned] == [
        ("c", "010000"), ("c", "010100"), ("u", "0101000000"), ("d", "010100"),
    ]  # fmt: skip
    assert all(e.columns[0] & e.columns_after[0] & 3 == 3 and e.column_count == 2 for e in partitioned)
    assert [e.flags & events.STATEMENT_END for e in partitioned] == [0, 1, 1, 1]
    wide = decoded(
        EventType.UPDATE_ROWS,
        struct.pack("<IHHH", 5, 1, 1, 2) + b"\xfc\x2c\x01" + b"\xff" * 38 + b"\xfe" * 38 + b"rows",
    )
    assert isinstance(wide, events.Rows)
    assert (wide.table_id, wide.column_count) == (5 + (1 << 32), 300)
    assert (wide.columns, wide.columns_after) == (b"\xff" * 38, b"\xfe" * 38)
    assert wide.buffer[wide.start : wide.end] == b"rows"
    old = decoded(EventType.DELETE_ROWS_V1, struct.pack("<IHH", 5, 0, 1) + b"\x01\x01\0\x07")
    assert isinstance(old, events.Rows)
    assert (old.kind, old.buffer[old.start : old.end]) == (events.RowsKind.DELETE, b"\0\x07")
    for body in (struct.pack("<IHHH", 5, 0, 0, 1), struct.pack("<IHHH", 5, 0, 0, 2) + b"\xfd\0\0\0"):
        with pytest.raises(RemoteProtocolError, match="rows event"):
            decoded(EventType.WRITE_ROWS, body + bytes(9))


def test_a_compressed_transaction_is_unpacked_one_event_at_a_time() -> None:
    packet = captured_one("mysql", EventType.TRANSACTION_PAYLOAD)
    decoder = started()
    payload = decoder.decode(packet)
    assert isinstance(payload, events.TransactionPayload)
    place = decoder.position
    inner = decoder.unpack(payload)
    assert isinstance(next(inner), events.Query)
    assert isinstance(decoder.decode(captured_one("mysql", EventType.XID)), events.Xid)  # in between, with a checksum
    decoder.position = place
    assert [type(e).__name__ for e in inner] == ["RowsQuery", "TableMap", "Rows", "Xid"]
    assert decoder.position == place


def wide_window(data: bytes) -> bytes:
    """A frame of zstd whose decompression needs 256 MB."""
    compressor = zstandard.ZstdCompressor(compression_params=zstandard.ZstdCompressionParameters(window_log=28))
    stream = compressor.compressobj()
    return stream.compress(data) + stream.flush()


def sized(packet: bytes, size: int) -> bytes:
    """An event whose header states another size."""
    return packet[:9] + size.to_bytes(4, "little") + packet[13:]


def payload_body(payload: bytes, size: int, algorithm: int = 255) -> bytes:
    fields = b"\x02\x01" + (bytes([algorithm]) if algorithm < 251 else b"\xfc\xff\x00")
    if algorithm >= 251:
        fields = b"\x02\x03" + b"\xfc" + algorithm.to_bytes(2, "little")
    return fields + b"\x03\x03\xfc" + size.to_bytes(2, "little") + b"\x00" + payload


def test_a_transaction_payload_without_compression_or_in_several_frames() -> None:
    xids = [event(EventType.XID, bytes([i]) + bytes(7), checksum=False, log_pos=0) for i in range(9)]
    plain = b"".join(xids)
    frames = b"".join(zstandard.compress(plain[i : i + 100]) for i in range(0, len(plain), 100))
    for body in (payload_body(plain, len(plain)), payload_body(frames, len(plain), 0)):
        decoder = started()
        payload = decoder.decode(event(EventType.TRANSACTION_PAYLOAD, body))
        assert isinstance(payload, events.TransactionPayload)
        assert [e.xid for e in decoder.unpack(payload) if isinstance(e, events.Xid)] == list(range(9))


HUGE = event(16, bytes(8), checksum=False)[:9] + b"\xff\xff\xff\xff" + bytes(14)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (payload_body(b"", 0, 1), "algorithm 1; known: 0 zstd, 255 none"),
        (payload_body(zstandard.compress(bytes(100))[:-5], 100, 0), "inner event of 0 bytes"),
        (payload_body(b"junk", 100, 0), "cannot be decompressed"),
        (payload_body(wide_window(bytes(100)), 100, 0), "cannot be decompressed: .*too much memory"),
        (
            payload_body(sized(event(16, bytes(8), checksum=False), 3 << 30), 27),
            "inner event of 3221225472 bytes; ",
        ),
        (payload_body(event(16, bytes(8), checksum=False), 26), "inner event of 27 bytes where 26 are left"),
        (payload_body(event(16, bytes(8), checksum=False)[:-1], 27), "ends 1 bytes short"),
        (payload_body(event(16, bytes(8), checksum=False) + b"x", 27), "longer than the 27 bytes"),
        (payload_body(event(99, b"", checksum=False), 19), "unknown event type 99"),
        (b"\x03\x09\xfe" + (1 << 40).to_bytes(8, "little") + b"\x00" + HUGE, "an inner event of 4294967295 bytes"),
        (b"\x07\x01\x00" + payload_body(b"", 0), "field 7"),
        (b"\x01\x01\x09" + payload_body(b"", 0), "with 0 bytes of payload, but its header states 9"),
    ],
)
def test_a_damaged_transaction_payload_is_refused_with_its_position(body: bytes, message: str) -> None:
    decoder = started()
    with pytest.raises((RemoteProtocolError, UnsupportedEvent), match=rf"(?s){message}.*\(at binlog.000001:\d+\)"):
        list(decoder.unpack(decoder.decode(event(EventType.TRANSACTION_PAYLOAD, body))))  # type: ignore[arg-type]
    assert isinstance(decoder.decode(captured_one("mysql", EventType.XID)), events.Xid)


def test_events_of_the_log_itself() -> None:
    assert decoded(EventType.HEARTBEAT, b"binlog.000009")[1:] == ("binlog.000009", 1000)
    assert decoded(EventType.HEARTBEAT_V2, b"\x01\x05bin.9\x02\x03\xfc\x34\x12\x00")[1:] == ("bin.9", 0x1234)
    with pytest.raises(UnsupportedEvent, match="field 3"):
        decoded(EventType.HEARTBEAT_V2, b"\x03\x01\x00")
    assert decoded(EventType.INCIDENT, b"\x01\x00\x04lost")[1:] == (1, "lost")
    assert isinstance(decoded(EventType.STOP, b""), events.Stop)
    assert decoded(EventType.IGNORABLE, b"abc")[1:] == (b"abc",)
    assert decoded(EventType.DELETE_FILE, b"\x09\0\0\0")[1:] == (9,)
    assert kinds("mariadb", events.BinlogCheckpoint)[0].file == "binlog.000001"
    encryption = decoded(EventType.MARIADB_START_ENCRYPTION, b"\x01\x02\0\0\0" + bytes(12), "mariadb")
    assert encryption[1:] == (1, 2, bytes(12))


def test_events_of_group_replication() -> None:
    context = struct.pack("<BIBIII", 36, 7, 1, 3, 2, 1) + b"u" * 36 + b"ver" + b"\x01\0a\x02\0bb" + b"\x01\0r"
    assert decoded(EventType.TRANSACTION_CONTEXT, context)[1:] == ("u" * 36, 7, True, b"ver", (b"a", b"bb"), (b"r",))
    view = b"123:4".ljust(40, b"\0") + struct.pack("<QI", 8, 1) + b"\x03\0key" + b"\x02\0\0\0vv"
    assert decoded(EventType.VIEW_CHANGE, view)[1:] == ("123:4", 8, (("key", b"vv"),))
