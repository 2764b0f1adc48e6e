"""Offsets that Debezium stored: the keys are equal, and each offset survives a round trip."""

import gzip
import json

import pytest

from rowtide.connector.delivery.offset_store import is_offset_key, offset_key
from rowtide.connector.records.offset import SourceOffset
from tests.support.recordings.golden import GOLDEN

CASES = sorted(folder.name for folder in GOLDEN.iterdir() if (folder / "golden" / "records.jsonl.gz").exists())


@pytest.mark.parametrize("name", CASES)
def test_recorded_offsets_round_trip(name: str) -> None:
    config = json.loads((GOLDEN / name / "case.json").read_text())["config"]
    prefix = config.get("topic.prefix", name)
    with gzip.open(GOLDEN / name / "golden" / "records.jsonl.gz", "rt", encoding="utf-8") as lines:
        records = [record for line in lines if (record := json.loads(line))["topic"] == "connect-offsets"]
    for record in records:
        assert record["key"].encode() == offset_key(name, prefix)
        assert is_offset_key(record["key"].encode(), name, prefix)
        if "incremental_snapshot_" not in record["value"]:
            assert SourceOffset.from_json(record["value"]).to_json() == record["value"]
