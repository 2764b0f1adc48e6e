"""Dumps over TCP: what the original server sends, and the end marker that tells a complete dump from a part of one."""

from __future__ import annotations

import pytest

from rowtide.databus.client.dump import DumpReader
from rowtide.databus.errors import DumpError
from rowtide.databus.events import RowsEvent
from tests.support.databus.messages import ITEMS, item
from tests.support.mysql.dump_server import dump_server, read_dump

LINE = RowsEvent(ITEMS, "insert", (item(1),)).encoded() + b"\n"


def test_a_dump_of_the_original_server() -> None:
    with dump_server([b"PONG\n", LINE[:10], LINE[10:] + LINE]) as (port, requests):
        reader = DumpReader("127.0.0.1", port, "DB.Data1.Json", end_marker=False)
        assert [event.rows[0][0] for event in read_dump(reader)] == [b"1", b"1"]
    assert (reader.rows, requests) == (2, [b"DB.Data1.Json\n"])


def test_a_dump_with_an_end_marker_over_ipv6() -> None:
    with dump_server([b"PONG\n" + LINE + b'{"End":true,"Rows":1}\n'], host="::1") as (port, requests):
        assert len(read_dump(DumpReader("::1", port, "f", end_marker=True))) == 1
    assert requests == [b"f\nEND\n"]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"PONG\n", "it ended without an end marker after 0 rows"),  # also if the file is missing
        (b"PONG\n" + LINE, "it ended without an end marker after 1 rows"),
        (b"PONG\n" + LINE[:30], "it ended without an end marker after 0 rows"),
        (b"PONG\n" + LINE + b'{"End":true,"Rows":2}\n', "1 rows have arrived, and its end marker has 2"),
        (b"PONG\n" + LINE + b"{}\n", "the line after 1 rows is not a rows event"),
    ],
)
def test_a_dump_that_is_not_complete_is_refused(answer: bytes, reason: str) -> None:
    with dump_server([answer]) as (port, _):
        reader = DumpReader("127.0.0.1", port, "f", end_marker=True)
        with pytest.raises(DumpError, match=reason):
            read_dump(reader)


def test_half_a_line_is_an_error_without_end_markers_too() -> None:
    with dump_server([b"PONG\n" + LINE[:30]]) as (port, _), pytest.raises(DumpError, match="ended without"):
        read_dump(DumpReader("127.0.0.1", port, "f", end_marker=False))


def test_another_server_and_none_are_named() -> None:
    with dump_server([b"SSH-2.0-x\n"]) as (port, _), pytest.raises(DumpError, match=r"dump f of .*instead of PONG"):
        DumpReader("127.0.0.1", port, "f", end_marker=True)
    with pytest.raises(DumpError, match=r"Check that it is running"):
        DumpReader("127.0.0.1", port, "f", end_marker=True)


def test_a_poll_without_data_returns() -> None:
    with dump_server([b"PONG\n"]) as (port, _):
        reader = DumpReader("127.0.0.1", port, "f", end_marker=False)
        assert reader.poll(0.0) is None
        assert read_dump(reader) == []
