"""The profile of the stages, with the binlog of a golden case and librdkafka's mock broker."""

from __future__ import annotations

import pytest

from tests.bench.stages import FORMS, measured
from tests.support.recordings.golden import Case

DELIVERY = {"produce() and commits", "delivery reports", "librdkafka's threads"}


@pytest.mark.parametrize("form", FORMS)
def test_every_stage_is_measured(form: str) -> None:
    found = dict(measured(Case("transactions").binlog, form, rounds=1, snapshot_rows=50))
    assert {name for name in found if ": " not in name} == {
        "read the file",
        "event header, checksum, table map",
        "rows to JSON text",
        "what the messages of an event share",
        "messages from the text",
        *(["messages to Avro"] if form == "Avro" else []),
        "all of it, from the file",
        "event store",
    }
    assert {name.split(": ")[1] for name in found if name.startswith("exactly once")} == DELIVERY
    assert {name.split(": ")[1] for name in found if name.startswith("at least once")} == DELIVERY
    assert len([name for name in found if name.startswith("snapshot")]) == 2
    assert min(found.values()) > 0
