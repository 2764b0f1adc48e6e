"""The source block, with and without the replacement of nulls."""

from __future__ import annotations

import json

import pytest

from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.source import SourceTemplate, stream_snapshot_marker


@pytest.mark.parametrize(
    ("replaced", "exact", "marker"),
    [(True, False, "false"), (False, False, None), (False, True, "false"), (True, True, "false")],
)
def test_a_streamed_record_has_a_null_marker_or_its_default(replaced: bool, exact: bool, marker: str | None) -> None:
    block = SourceTemplate("mysql", "p", "d", "t")
    form = JsonFormat(replace_null_with_default=replaced)
    before_row = block.prefix(1, stream_snapshot_marker(form, exact=exact), 1, None, "binlog.000001", 4)
    text = before_row + "0" + block.suffix(None, None)
    assert json.loads(text)["snapshot"] == marker
