"""Builds keys and values of messages from the JSON texts of rows and the parts that an event's messages share."""

from collections.abc import Sequence
from typing import Any

from rowtide.connector.rows.native.implementation import native

Texts = tuple[str, str]
"""The JSON texts of key and row."""


def python_parts(opening: bytes, rows: Sequence[Texts], place: int, closing: bytes) -> list[bytes]:
    """Return one text of each row, between the same bytes.

    Args:
        opening: the bytes before it.
        rows: the rows.
        place: 0 for the key, 1 for the row.
        closing: the bytes after it.
    """
    return [opening + row[place].encode() + closing for row in rows]


def python_values(
    opening: bytes,
    before: Sequence[Texts] | None,
    between: str,
    after: Sequence[Texts] | None,
    middle: str,
    first: int,
    tail: str,
) -> list[bytes]:
    """Return the value of each row: the row before and after, each ``null`` if missing, and the text that follows.

    Args:
        opening: the bytes before a value.
        before: the rows before the change.
        between: the text between both rows.
        after: the rows after it; the same number if both are present.
        middle: the text that follows, up to the row number.
        first: the row number of the first row.
        tail: the text after the row number.
    """
    if before is None:
        assert after is not None
        return [
            opening + f"null{between}{new}{middle}{row}{tail}".encode() for row, (_, new) in enumerate(after, first)
        ]
    if after is None:
        return [
            opening + f"{old}{between}null{middle}{row}{tail}".encode() for row, (_, old) in enumerate(before, first)
        ]
    return [
        opening + f"{old}{between}{new}{middle}{row}{tail}".encode()
        for row, ((_, old), (_, new)) in enumerate(zip(before, after, strict=True), first)
    ]


def python_bytes(messages: Sequence[tuple[bytes | None, bytes | None, Any]]) -> int:
    """Return the bytes of all keys and values.

    Args:
        messages: key, value and headers of each message.
    """
    return sum([len(key or b"") + len(value or b"") for key, value, _ in messages])


message_bytes = python_bytes if native is None else native.message_bytes
message_parts = python_parts if native is None else native.message_parts
message_values = python_values if native is None else native.message_values
