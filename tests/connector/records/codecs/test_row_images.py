"""Row images that do not form the changes of their event."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from rowtide.connector.protocol.events.classes import Rows, RowsKind
from rowtide.connector.records.codecs.row_images import RowImages
from rowtide.connector.rows import layouts
from rowtide.connector.rows.layouts import ColumnDecoding, column_layout
from rowtide.connector.rows.row_compiler import Column, ValueRows
from rowtide.connector.rows.row_decoder import value_rows
from rowtide.schema_history.model import TableId


class Images(RowImages[tuple[Any, ...]]):
    """Images of a table with one unpublished INT."""

    def __init__(self) -> None:
        column = Column(column_layout(layouts.LONG, 0), ColumnDecoding("int"), nullable=False, output=None)
        super().__init__(TableId("d", "t"), [column], ())

    def compiled(self, columns: Sequence[Column], *layouts: Sequence[bool], carry: bool) -> ValueRows:
        return value_rows(columns, *layouts)


def event(kind: RowsKind, images: int) -> Rows:
    data = b"\0\1\0\0\0" * images
    fields: Any = SimpleNamespace(
        kind=kind, partial=False, buffer=data, start=0, end=len(data), columns=b"\1", columns_after=b"\1"
    )
    return cast("Rows", fields)


@pytest.mark.parametrize("images", [1, 3])
def test_an_update_without_its_second_image_is_refused(images: int) -> None:
    """Otherwise it would not count as a change, and the row would be lost silently."""
    with pytest.raises(ValueError, match=rf"an update of table d\.t has {images} row images instead of pairs"):
        Images().rows(event(RowsKind.UPDATE, images))
    assert len(Images().rows(event(RowsKind.UPDATE, images + 1))) == images + 1
    assert len(Images().rows(event(RowsKind.DELETE, images))) == images
