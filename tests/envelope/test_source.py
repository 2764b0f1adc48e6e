"""The source block, with and without the replacement of nulls."""

from __future__ import annotations

import json

import pytest

from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.source import SourceTemplate, stream_snapshot_marker


@pytest.mark.parametrize(("replaced", "marker"), [(True, "false"), (False, None)])
def test_a_streamed_record_has_a_null_marker_or_its_default(replaced: bool, marker: str | None) -> None:
    block = SourceTemplate("mysql", "p", "d", "t")
    form = JsonFormat(replace_null_with_default=replaced)
    text = block.prefix(1, stream_snapshot_marker(form), 1, None, "binlog.000001", 4) + "0" + block.suffix(None, None)
    assert json.loads(text)["snapshot"] == marker
