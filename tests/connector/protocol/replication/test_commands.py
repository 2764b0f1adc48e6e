"""The payloads of a replica's commands, byte by byte."""

import pytest

from rowtide.connector.errors import LocalProtocolError
from rowtide.connector.protocol.replication.commands import (
    NON_BLOCK,
    SEND_ANNOTATE_ROWS,
    binlog_dump,
    binlog_dump_gtid,
    register_replica,
)
from rowtide.schema_history.position.gtid import GtidSet

UUID = "00112233-4455-6677-8899-aabbccddeeff"


ONE_SOURCE = """
    1e 0400 07000000 00000000 0400000000000000 40000000
    0100000000000000 00112233445566778899aabbccddeeff
    0200000000000000 0100000000000000 0600000000000000 0900000000000000 0a00000000000000
"""
WITH_A_TAG = """
    1e 0400 07000000 00000000 0400000000000000 5d000000
    0102000000000001 00112233445566778899aabbccddeeff 00 0100000000000000 0300000000000000 0400000000000000
    00112233445566778899aabbccddeeff 06746167 0100000000000000 0200000000000000 0300000000000000
"""


@pytest.mark.parametrize(
    ("payload", "expected"),
    [
        (register_replica(0x01020304), "15 04030201 00 00 00 0000 00000000 00000000"),
        (
            register_replica(1, host="héß", user="u", port=3306),
            "15 01000000 05 68c3a9c39f 01 75 00 ea0c 00000000 00000000",
        ),
        (binlog_dump(7, "bin.1", 0x12345678), "12 78563412 0000 07000000 62696e2e31"),
        (binlog_dump(7, "", flags=NON_BLOCK | SEND_ANNOTATE_ROWS), "12 04000000 0300 07000000"),
        (binlog_dump_gtid(7, GtidSet()), "1e 0400 07000000 00000000 0400000000000000 08000000 0000000000000000"),
        (binlog_dump_gtid(7, GtidSet.parse(f"{UUID}:1-5:9")), ONE_SOURCE),
        (binlog_dump_gtid(7, GtidSet.parse(f"{UUID}:3:tag:2")), WITH_A_TAG),
    ],
)
def test_layout(payload: bytes, expected: str) -> None:
    assert payload.hex() == "".join(expected.split())


def test_values_that_do_not_fit_a_command_are_refused() -> None:
    with pytest.raises(LocalProtocolError, match=r"bin.1:4294967296 is beyond 4 GiB.*start from a GTID set"):
        binlog_dump(1, "bin.1", 2**32)
    with pytest.raises(LocalProtocolError, match="server id 4294967296 does not fit"):
        register_replica(2**32)
    with pytest.raises(LocalProtocolError, match="longer than 255"):
        register_replica(1, host="h" * 256)
