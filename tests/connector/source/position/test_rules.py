"""Whether a server can still stream from a position."""

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.position.rules import (
    file_check,
    mariadb_check,
    mariadb_start,
    mysql_gtid_check,
    mysql_start,
    server_check,
    with_owned,
)
from rowtide.topics.filters import EVERYTHING, Patterns, Selection

A, B = "3e11fa47-71ca-11e1-9e33-c80aa9429562", "4e11fa47-71ca-11e1-9e33-c80aa9429562"


@pytest.mark.parametrize(
    ("file", "pos", "reason"),
    [
        ("b.2", 4, ""),
        ("b.2", 100, ""),
        ("b.2", 101, "ends at 100"),
        ("b.1", 4, "it has b.2 to b.3"),
        ("b.4", 4, "it has b.2 to b.3"),
    ],
)
def test_a_file_must_be_there_and_reach_the_position(file: str, pos: int, reason: str) -> None:
    found = file_check(SourceOffset(file, pos), {"b.2": 100, "b.3": 50})
    assert found.available == (not reason)
    assert reason in found.reason


def test_a_file_and_position_hold_on_one_server() -> None:
    assert server_check(SourceOffset("b.1", 4, server=A), A).available
    assert server_check(SourceOffset("b.1", 4), A).available, "Debezium stores no server"
    found = server_check(SourceOffset("b.1", 4, server=A), B)
    assert not found.available
    assert f"was read from server {A}, and this is server {B}" in found.reason


def test_a_server_without_binlog_files_has_no_position() -> None:
    assert "it has none" in file_check(SourceOffset("b.1", 4), {}).reason


@pytest.mark.parametrize(
    ("stored", "executed", "purged", "reason"),
    [
        (f"{A}:1-5", f"{A}:1-5", "", ""),
        (f"{A}:1-5", f"{A}:1-9", f"{A}:1-5", ""),
        (f"{A}:1-5", f"{A}:1-9", f"{A}:1-6", f"has purged {A}:6"),
        (f"{A}:1-5", f"{A}:1-9,{B}:1-2", f"{B}:1", f"has purged {B}:1"),
        (f"{A}:1-5", f"{A}:1-4", "", f"has not executed {A}:5"),
        (f"{A}:1-5,{B}:1", f"{A}:1-9", "", f"has not executed {B}:1"),
    ],
)
def test_gtids_of_mysql(stored: str, executed: str, purged: str, reason: str) -> None:
    found = mysql_gtid_check(stored, executed, purged, EVERYTHING)
    assert found.available == (not reason)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("stored", "written", "oldest", "reason"),
    [
        ("0-1-5", "0-1-5", "", ""),
        ("0-1-5", "0-1-9", "0-1-5", ""),
        ("0-1-5", "0-1-9", "0-1-6", "has purged its binlog up to 0-1-6"),
        ("0-1-5", "0-1-4", "", "ends at 0-1-4"),
        ("0-1-5,1-1-3", "0-1-5", "", "ends at 0-1-5"),
        ("0-1-5", "0-1-5,1-1-7", "1-1-3", "has purged its binlog up to 1-1-3"),
    ],
)
def test_gtids_of_mariadb(stored: str, written: str, oldest: str, reason: str) -> None:
    found = mariadb_check(stored, written, oldest, EVERYTHING)
    assert found.available == (not reason)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("stored", "executed", "purged", "requested"),
    [
        (f"{A}:1-5,{B}:1-3", f"{A}:1-9,{B}:1-3", "", f"{A}:1-5,{B}:1-3"),
        (f"{A}:1-5,{B}:1-3", f"{A}:1-9", "", f"{A}:1-5"),
        (f"{A}:1-5,{B}:1-3", f"{A}:1-9,{B}:1-2", "", f"{A}:1-5,{B}:1-2"),
        (f"{A}:1-5", f"{A}:1-9,{B}:1-8", f"{A}:1-3,{B}:1-7", f"{A}:1-5,{B}:1-7"),
        (f"{A}:1-5", f"{A}:1-4", "", f"{A}:1-5"),
    ],
)
def test_a_request_has_of_ignored_sources_what_the_server_has_and_what_it_has_purged(
    stored: str, executed: str, purged: str, requested: str
) -> None:
    assert mysql_start(stored, executed, purged, Selection(exclude=Patterns.parse(B))) == requested


@pytest.mark.parametrize(
    ("stored", "state", "requested"),
    [
        ("0-1-5,1-2-7", "0-1-9,1-2-7", "0-1-5,1-2-7"),
        ("0-1-5,1-2-7", "0-1-9,1-3-9,1-2-8", "0-1-5,1-2-7"),
        ("0-1-5,1-2-7", "0-1-9,1-2-6,1-3-9", "0-1-5"),
        ("0-1-5,1-2-7", "0-1-9,1-3-9", "0-1-5"),
        ("0-1-5,1-2-7", "0-1-4", "0-1-5"),
        ("1-2-7", "0-1-9", ""),
        ("1-2-7,2-2-7", "0-1-9", "2-2-7"),
    ],
)
def test_a_request_to_mariadb_has_no_gtid_of_an_ignored_source_that_it_lacks(
    stored: str, state: str, requested: str
) -> None:
    assert mariadb_start(stored, state, Selection(exclude=Patterns.parse("1-2"))) == requested


def test_transactions_that_are_not_committed_yet_count() -> None:
    assert with_owned(f"{A}:1-5", "") == f"{A}:1-5"
    assert with_owned(f"{A}:1-5", f"{A}:6#31:7#32:9#8") == f"{A}:1-7:9"
    assert with_owned(f"{A}:1-5", f"{A}:tagged:1#31,\n{B}:1#32#33") == f"{A}:1-5:tagged:1,{B}:1"
    assert mysql_gtid_check(f"{A}:1-7", with_owned(f"{A}:1-5", f"{A}:6#31:7#32"), "", EVERYTHING).available
    assert not mysql_gtid_check(f"{A}:1-7", with_owned(f"{A}:1-5", f"{A}:6#31"), "", EVERYTHING).available
