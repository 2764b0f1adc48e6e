"""The benchmark of the decoder, with the binlog of a golden case."""

from __future__ import annotations

import pytest

from tests.bench.topic_values import JSON_FORMS, READERS, rates, records_of
from tests.support.recordings.golden import Case


@pytest.mark.parametrize("form", JSON_FORMS)
def test_every_reader_is_measured(form: str) -> None:
    records = records_of(Case("transactions").binlog, form)
    assert len(records) > 10
    found = rates(records, 2)
    assert list(found) == list(READERS)
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in found.values())
