"""Offsets are read and written in Debezium's format."""

import pytest
from golden import Case, cases

from rowtide.connector.records.offset import SourceOffset


@pytest.mark.parametrize("name", cases())
def test_every_recorded_offset_round_trips_byte_for_byte(name: str) -> None:
    for record in Case(name).records:
        if record["topic"] == "connect-offsets" and record["value"] and "incremental_" not in record["value"]:
            assert SourceOffset.from_json(record["value"]).to_json() == record["value"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "must be a JSON object"),
        ('{"pos":4}', "'file' parameter is missing"),
        ('{"file":"b.1","pos":"x"}', "'pos' must be a whole number"),
        ("{", "Expecting"),
    ],
)
def test_a_damaged_offset_is_refused(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SourceOffset.from_json(text)
