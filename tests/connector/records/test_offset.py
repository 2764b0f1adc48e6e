"""Offsets are read and written in Debezium's format."""

import json
from dataclasses import replace

import pytest

from rowtide.connector.records.offset import PreparedXa, SourceOffset
from tests.support.recordings.golden import Case, cases


@pytest.mark.parametrize("name", cases())
def test_every_recorded_offset_round_trips_byte_for_byte(name: str) -> None:
    for record in Case(name).records:
        if record["topic"] == "connect-offsets" and record["value"] and "incremental_" not in record["value"]:
            assert SourceOffset.from_json(record["value"]).to_json() == record["value"]


def test_the_server_is_stored_where_there_are_no_gtids() -> None:
    """A file and a position mean nothing on another server; GTIDs mean the same on all."""
    for offset in (
        SourceOffset("b.1", 4, server="uuid"),
        SourceOffset("b.1", 4, server="uuid", prepared=(PreparedXa("X'1'", "b.1", 4, SourceOffset("b.0", 4)),)),
    ):
        assert json.loads(offset.to_json())["rowtide_server"] == "uuid"
        restored = SourceOffset.from_json(offset.to_json())
        assert (restored, restored.server) == (offset, "uuid")
        assert "rowtide_server" not in offset.to_map(), "not in the schema history"
    assert "server" not in SourceOffset("b.1", 4, "a:1-5", server="uuid").to_json()


def test_the_gtid_of_a_transaction_is_stored_inside_it() -> None:
    """After a fail-over, ``event`` and ``row`` hold for this transaction only, wherever the new server has it."""
    inside = SourceOffset("b.1", 4, "a:1-5", event=3, within="a:6")
    prepared = replace(inside, prepared=(PreparedXa("X'1'", "b.1", 4, SourceOffset("b.0", 4)),))
    for offset in (inside, prepared):
        assert json.loads(offset.to_json())["rowtide_gtid"] == "a:6"
        assert SourceOffset.from_json(offset.to_json()).within == "a:6"
        assert "rowtide_gtid" not in offset.to_map(), "not in the schema history"
    for offset in (replace(inside, event=0), replace(inside, gtids=None)):
        assert "rowtide_gtid" not in offset.to_json()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a JSON object"),
        ('{"pos":4}', "'file' parameter is missing"),
        ('{"file":"b.1","pos":"x"}', "'pos' must be a whole number"),
        ("{", "Expecting"),
        ('{"a":' * 100_000, "nested too deeply"),
        ('{"file":5}', "'file' must be a string"),
        ('{"file":"\\ud800"}', "'file' must be a string of Unicode characters"),
        ('{"file":"b.1","pos":Infinity}', "'pos' must be a whole number"),
        ('{"file":"b.1","gtids":["a"]}', "'gtids' must be a string"),
        ('{"file":"b.1","snapshot":1}', "'snapshot' must be a string"),
        ('{"file":"b.1","rowtide_server":{}}', "'rowtide_server' must be a string"),
        ('{"file":"b.1","rowtide_gtid":6}', "'rowtide_gtid' must be a string"),
        ('{"file":"b.1","rowtide_done":5}', "'rowtide_done' must be a string"),
        ('{"file":"b.1","rowtide_prepared":"5"}', "must be a JSON array"),
        ('{"file":"b.1","rowtide_prepared":"[[1,2]]"}', "has no prepared XA transaction"),
        ('{"file":"b.1","rowtide_prepared":"[[\\"x\\",\\"b.1\\",\\"4\\",null]]"}', "has no prepared XA transaction"),
    ],
)
def test_a_damaged_offset_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SourceOffset.from_json(text)


def test_the_done_part_of_a_transaction_in_words() -> None:
    assert SourceOffset("b.000001", 4).done_within == ""
    assert SourceOffset("b.000001", 4, event=1).done_within == "1 event of the transaction at b.000001:4"
    inside = SourceOffset("b.000001", 4, "a:1-35", event=2, row=1, within="a:36")
    assert inside.done_within == "2 events and 1 row of transaction a:36"
