"""Status variables of QUERY events."""

import pytest

from rowtide.connector.errors import TruncatedEvent, UnsupportedEvent
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.events import Query
from rowtide.connector.protocol.events.query_status import QueryStatus, parse_query_status
from tests.support.mysql.packets import captured


def statuses(server: str) -> list[QueryStatus]:
    decoder = EventDecoder()
    return [e.status for e in map(decoder.decode, captured(server)) if isinstance(e, Query)]


@pytest.mark.parametrize(
    ("code", "raw", "name", "value"),
    [
        (0, "00400008", "flags2", 0x08004000),
        (1, "0700000000000080", "sql_mode", (1 << 63) + 7),
        (2, "03737464", "catalog", None),
        (3, "03000200", "auto_increment", (3, 2)),
        (4, "ff00ff000800", "charset", (255, 255, 8)),
        (5, "062b30313a3030", "time_zone", "+01:00"),
        (6, "03737464", "catalog", "std"),
        (7, "0400", "lc_time_names", 4),
        (8, "0800", "charset_database", 8),
        (9, "0300000000000000", "table_map_for_update", 3),
        (10, "01020000", "master_data_written", 513),
        (11, "0372616f026c68", "invoker", ("rao", "lh")),
        (12, "026100626200", "updated_databases", ("a", "bb")),
        (12, "fe", "updated_databases", ()),
        (13, "40420f", "microseconds", 1_000_000),
        (14, "0100000000000000", "commit_timestamp", 1),
        (15, "0200000000000000", "commit_timestamp", 2),
        (16, "01", "explicit_defaults_for_timestamp", True),
        (17, "0500000000000000", "xid", 5),
        (18, "2d00", "default_collation_for_utf8mb4", 45),
        (19, "00", "sql_require_primary_key", False),
        (20, "01", "default_table_encryption", True),
        (21, "00", "enable_cascade_triggers", False),
        (128, "010000", "microseconds", 1),
        (129, "0900000000000000", "xid", 9),
        (130, "02", "mariadb_gtid_flags3", (2, None)),
        (130, "040700000000000000", "mariadb_gtid_flags3", (4, 7)),
        (131, "022d0000092e000109", "character_set_collations", ((45, 0x900), (46, 0x901))),
    ],
)
def test_every_variable_is_parsed_up_to_the_next_one(code: int, raw: str, name: str, value: object) -> None:
    end = "00" if code == 2 else ""
    block = bytes([code]) + bytes.fromhex(raw + end) + b"\x07\x2a\x00"
    status = parse_query_status(block)
    assert getattr(status, name) == ("std" if code == 2 else 42 if code == 7 else value)
    assert status.lc_time_names == 42
    with pytest.raises(TruncatedEvent):
        parse_query_status(block[: len(raw) // 2])


def test_status_variables_of_recorded_sessions() -> None:
    mysql, mariadb = statuses("mysql"), statuses("mariadb")
    for all_of_them in (mysql, mariadb):
        assert {"+01:00"} <= {s.time_zone for s in all_of_them}
        assert {(3, 2)} <= {s.auto_increment for s in all_of_them}
        assert {4} <= {s.lc_time_names for s in all_of_them}
        assert {("root", "localhost")} <= {s.invoker for s in all_of_them}
        assert any(s.microseconds for s in all_of_them)
        assert any(s.table_map_for_update == 3 for s in all_of_them)
        assert {8} <= {s.client_collation for s in all_of_them}
    assert any(s.updated_databases == ("cap",) for s in mysql)
    assert any(s.enable_cascade_triggers is False for s in mysql)
    assert any(s.character_set_collations == ((45, 2304),) for s in mariadb)


def test_an_unknown_variable_is_refused_with_its_code() -> None:
    with pytest.raises(UnsupportedEvent, match="unknown status variable 77; the block is 10014d"):
        parse_query_status(b"\x10\x01\x4d")


def test_the_same_block_is_parsed_once() -> None:
    assert parse_query_status(b"\x00\x01\x00\x00\x00") is parse_query_status(b"\x00\x01\x00\x00\x00")
