"""The readers of the race read every row, without servers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.race.readers import READERS

RECORDED = Path(__file__).parents[1] / "golden"


@pytest.mark.parametrize(("case", "images", "messages"), [("transactions", 84, 78), ("numeric-types", 131, 122)])
def test_all_readers_read_the_same_rows(case: str, images: int, messages: int) -> None:
    folder = RECORDED / case / "golden" / "binlog"
    found = {name: prepare(folder)() for name, prepare in READERS.items()}
    assert found.pop("messages") == messages
    assert found == dict.fromkeys(found, images)
    assert len(found) == 3
