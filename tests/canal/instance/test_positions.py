"""Positions in the form of Canal's files and ZooKeeper nodes."""

from __future__ import annotations

import pytest

from rowtide.canal.instance.positions import (
    CanalPosition,
    ClientPosition,
    Master,
    PositionsError,
    cursor_text,
    meta_text,
    read_cursor,
    read_meta,
)

MASTER = Master("localhost", 3306, 1234)
POSITION = CanalPosition("binlog.000001", 4, 1, 1795256665000, "u:1-5")
META = (
    '{"clientDatas":[{"clientIdentity":{"clientId":1001,"destination":"example","filter":".*\\\\..*"},"cursor":{"identity":'
    '{"slaveId":1234,"sourceAddress":{"address":"localhost","port":3306}},"postion":{"gtid":"u:1-5","included":false,'
    '"journalName":"binlog.000001","position":4,"serverId":1,"timestamp":1795256665000}}}],"destination":"example"}'
)
"""Written by Canal's FileMixedMetaManager."""


BAD_POSITION = (
    '{"clientDatas":[{"clientIdentity":{"clientId":1},"cursor":{"postion":{"journalName":"f","position":"x"}}}]}'
)


def test_meta_dat_is_written_and_read_as_canal_does() -> None:
    clients = [ClientPosition(1001, r".*\..*", MASTER, POSITION)]
    assert meta_text("example", clients) == META
    assert read_meta(META) == clients


def test_a_client_without_a_position() -> None:
    text = '{"clientDatas":[{"clientIdentity":{"clientId":7,"destination":"d","filter":""}}],"destination":"d"}'
    assert meta_text("d", [ClientPosition(7, "")]) == text
    assert read_meta(text) == [ClientPosition(7, "")]


def test_cursors_have_a_type_and_parse_positions_have_none() -> None:
    untyped = cursor_text(MASTER, POSITION, typed=False)
    assert untyped in META
    typed = cursor_text(MASTER, POSITION, typed=True)
    assert typed == '{"@type":"com.alibaba.otter.canal.protocol.position.LogPosition",' + untyped[1:]
    assert read_cursor(typed) == read_cursor(untyped) == (MASTER, POSITION)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "not JSON"),
        ("[]", "not a JSON object"),
        ('{"clientDatas":[{}]}', "no clientIdentity"),
        ('{"clientDatas":[{"clientIdentity":{"clientId":"x"}}]}', "no clientIdentity"),
        (BAD_POSITION, "form"),
        ('{"clientDatas":[{"clientIdentity":{"clientId":1},"cursor":[]}]}', "form"),
        ('{"clientDatas":5}', "not a list"),
        ('{"clientDatas":' + "[" * 100_000, "not JSON"),
        (BAD_POSITION.replace('"x"', "1e400"), "form"),
    ],
)
def test_damaged_files_are_reported(text: str, problem: str) -> None:
    with pytest.raises(PositionsError, match=problem):
        read_meta(text)


def test_a_cursor_without_a_file_is_none() -> None:
    with pytest.raises(PositionsError, match="no journalName"):
        read_cursor('{"postion":{}}')
    assert read_meta('{"clientDatas":[{"clientIdentity":{"clientId":1},"cursor":{}}]}') == [ClientPosition(1, "")]
