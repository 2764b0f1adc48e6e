"""The protobuf form of entries, and what the recorded cases do not have."""

from __future__ import annotations

import json

import pytest

from rowtide.canal.entries.entry import ABSENT, Entry, EntryColumn, EntryHeader, EventType, RowChange, TransactionEnd
from rowtide.canal.entries.flat_message import flat_message
from rowtide.envelope.protobuf.wire import varint
from tests.support.canal.golden import fields

HEADER = EntryHeader("binlog.000001", 4, 100, 1, 1795256670, "shop", "t")
ID = EntryColumn(0, "id", True, 4, 4, -5, 0x7FFFFFFF, "int unsigned")
NOTE = EntryColumn(1, "note", False, 2005, 2005, 2005, None, "text")


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (-1, "ffffffffffffffffff01"),
        (1 << 63, "80808080808080808001"),
    ],
)
def test_varints(number: int, written: str) -> None:
    assert varint(number).hex() == written


def test_an_unsigned_integer_beyond_the_signed_range_has_the_next_larger_type() -> None:
    assert [ID.type_of(text) for text in ("2147483647", "2147483648", None)] == [4, -5, 4]


def test_columns_that_an_image_leaves_out_are_not_written_and_count_as_updated() -> None:
    change = RowChange(EventType.UPDATE, 7, [ID, NOTE], [(("1", ABSENT), ("1", "new")), (("2", "old"), ("2", ABSENT))])
    entry = Entry(HEADER, change)
    rows = [value for number, value in fields(change.encoded()) if number == 12]
    images = [[number for number, _ in fields(row)] for row in rows if isinstance(row, bytes)]
    assert images == [[1, 2, 2], [1, 1, 2]]
    flat = flat_message(entry, 1, 0)
    assert flat is not None
    message = json.loads(flat)
    assert message["data"] == [{"id": "1", "note": "new"}, {"id": "2"}]
    assert message["old"] == [{}, {}]


def test_bounds_of_transactions_have_no_flat_message() -> None:
    assert flat_message(Entry(HEADER, TransactionEnd(12)), 1, 0) is None
