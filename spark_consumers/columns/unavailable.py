"""Values that the binlog did not have: a record has a placeholder instead (``unavailable.value.placeholder``).

A table would need the old value, which may be in no record. So a row that takes such a value ends the query. A snapshot
reads all values: in its records (``r``), the text of the placeholder is a value.
"""

import base64
import json
import re
from typing import NamedTuple

from rowtide.spark_consumers.columns.spark_types import literal

DEFAULT_PLACEHOLDER = b"__debezium_unavailable_value"

_MARK = "rowtide: no value in the binlog for"
_FOUND = re.compile(rf'{_MARK} ("(?:[^"\\]|\\.)*") at (\d+):(\d+)')
_UNESCAPED = re.compile(r"[A-Za-z0-9_ .,:;?!=+*#@$%(){}\[\]|~^-]+")
"""Characters that every writer of JSON writes as they are."""


class UnavailableValue(NamedTuple):
    """The first unavailable value that a query encountered: its column, and partition and offset of its record."""

    column: str
    partition: int
    offset: int


def may_contain(message: str, placeholder: bytes) -> str:
    """Return SQL of whether a message may contain the placeholder, in text or, as base64, in bytes.

    The columns need no check if no message may contain it. The search takes about a third of the time of parsing the
    message.
    """
    texts = (_text(placeholder), base64.b64encode(placeholder).decode())
    parts = dict.fromkeys(max(_UNESCAPED.findall(text), key=len, default="") for text in texts)
    return f"({' OR '.join(f'contains({message}, {literal(part)})' for part in parts)})"


def is_unavailable(value: str, wire: str, placeholder: bytes) -> str:
    """Return SQL of whether a value is the placeholder, which takes much less time than a search of the message.

    Args:
        value: SQL of the value read.
        wire: its type, ``STRING`` or ``BINARY``.
        placeholder: in bytes.
    """
    return f"{value} = X'{placeholder.hex()}'" if wire == "BINARY" else f"{value} = {literal(_text(placeholder))}"


def checked(value: str, converted: str, column: str, wire: str, kind: str, placeholder: bytes) -> str:
    """Return SQL of a converted value that ends the query if the value read is the placeholder.

    Args:
        value: SQL of the value read. ``partition``, ``offset`` and ``op`` of the record must be next to it.
        converted: SQL of the converted value.
        column: its name.
        wire: the type of the value read, ``STRING`` or ``BINARY``.
        kind: the type of the converted value.
        placeholder: in bytes.
    """
    text = f"concat({literal(f'{_MARK} {json.dumps(column)} at ')}, partition, ':', offset)"
    lacks = f"{is_unavailable(value, wire, placeholder)} AND coalesce(op, '') <> 'r'"
    return f"IF({lacks}, CAST(raise_error({text}) AS {kind}), {converted})"


def unavailable_value(text: str) -> UnavailableValue | None:
    """Return the value that ended a query, from the text of its error; ``None`` if it ended for another reason."""
    found = _FOUND.search(text)
    return UnavailableValue(json.loads(found[1]), int(found[2]), int(found[3])) if found else None


def _text(placeholder: bytes) -> str:
    return placeholder.decode("utf-8", "replace")
