"""The source block where a converter leaves nulls as they are."""

from __future__ import annotations

import json

import pytest

from rowtide.envelope.json.text import JsonForm
from rowtide.envelope.source import SourceBlock, streamed


@pytest.mark.parametrize(("replaced", "marker"), [(True, "false"), (False, None)])
def test_a_streamed_record_has_no_marker_but_the_default(replaced: bool, marker: str | None) -> None:
    block = SourceBlock("mysql", "p", "d", "t")
    form = JsonForm(replace_null_with_default=replaced)
    text = block.before_row(1, streamed(form), 1, None, "binlog.000001", 4) + "0" + block.after_row(None, None)
    assert json.loads(text)["snapshot"] == marker
