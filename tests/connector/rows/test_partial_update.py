"""Expanding PARTIAL_UPDATE_ROWS images; the recorded case ``json-partial-update`` replays real events."""

import pytest

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.rows.layouts import JSON, LONG, VARCHAR, column_layout
from rowtide.connector.rows.partial_update import expand_images, json_text_with_diffs

LAYOUT = [column_layout(LONG, 0), column_layout(JSON, 4), column_layout(VARCHAR, 40), column_layout(JSON, 4)]
ALL = [True] * 4

ID = (7).to_bytes(4, "little")
TEXT = b"\x02ab"
DOCUMENT = b"\x00\x01\x00\x0c\x00\x0b\x00\x01\x00\x05\x01\x00a"  # {"a": 1}
OTHER = b"\x04\x01"  # true
SET_A_TO_2 = b"\x00\x03$.a\x03\x05\x02\x00"


def field(value: bytes) -> bytes:
    return len(value).to_bytes(4, "little") + value


def test_an_image_without_options_is_copied() -> None:
    image = b"\x00" + ID + field(DOCUMENT) + TEXT + field(OTHER)
    data = b"head" + image + b"\x00" + image + b"tail"
    assert expand_images(data, 4, len(data) - 4, LAYOUT, ALL, ALL) == image + image


def test_differences_are_combined_with_the_document_of_the_before_image() -> None:
    before = b"\x00" + ID + field(DOCUMENT) + TEXT + field(OTHER)
    after = b"\x01\x01" + b"\x00" + ID + field(SET_A_TO_2) + TEXT + field(OTHER)
    data = (before + after) * 2
    whole = expand_images(data, 0, len(data), LAYOUT, ALL, ALL)
    assert whole[: len(before)] == before
    parts = b"\xff" + field(DOCUMENT) + SET_A_TO_2
    assert whole == (before + b"\x00" + ID + field(parts) + TEXT + field(OTHER)) * 2
    assert json_text_with_diffs(parts) == '{"a":2}'
    assert json_text_with_diffs(DOCUMENT) == '{"a":1}'
    assert json_text_with_diffs(b"\xff" + field(DOCUMENT)) == '{"a":1}'


def test_partial_bits_count_absent_json_columns_too() -> None:
    before = b"\x00" + ID + field(OTHER) + TEXT + field(DOCUMENT)
    after = b"\x01\x02" + b"\x00" + ID + field(SET_A_TO_2)
    whole = expand_images(before + after, 0, len(before + after), LAYOUT, ALL, [True, False, False, True])
    assert whole.endswith(b"\x00" + ID + field(b"\xff" + field(DOCUMENT) + SET_A_TO_2))


def test_differences_without_a_document_are_refused() -> None:
    before = b"\x02" + ID + TEXT + field(OTHER)
    after = b"\x01\x01" + b"\x00" + ID + field(SET_A_TO_2) + TEXT + field(OTHER)
    with pytest.raises(RemoteProtocolError, match="before image lacks it"):
        expand_images(before + after, 0, len(before + after), LAYOUT, ALL, ALL)


def test_unknown_value_options_are_refused() -> None:
    before = b"\x00" + ID + field(OTHER) + TEXT + field(OTHER)
    with pytest.raises(UnsupportedEvent, match="value options 0x2"):
        expand_images(before + b"\x02\x00", 0, len(before) + 2, LAYOUT, ALL, ALL)
