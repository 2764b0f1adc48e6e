"""Typed access to the fields of a stored JSON object: a field of the wrong type is an error that names it."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def text(value: Any, name: str) -> str:
    """Return the value of a field that is a string of Unicode characters.

    Raises:
        TypeError: it is something else; JSON can contain halves of characters.
    """
    if isinstance(value, str) and (value.isascii() or not _SURROGATE.search(value)):
        return value
    raise TypeError(f"{name!r} is not a string of Unicode characters")


def optional_text(value: Any, name: str) -> str | None:
    """Return the same value; ``None`` for null."""
    return None if value is None else text(value, name)


def texts(value: Any, name: str) -> tuple[str, ...]:
    """Return the value of a field that is a list of strings; null is an empty one. Raises ``TypeError``."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise TypeError(f"{name!r} is not a list")
    return tuple(text(item, name) for item in value)


def number(value: Any, name: str) -> int:
    """Return the value of a field that is a whole number. Raises ``TypeError``."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise TypeError(f"{name!r} is not a whole number")


def optional_number(value: Any, name: str) -> int | None:
    """Return the same value; ``None`` for null."""
    return None if value is None else number(value, name)


def flag(value: Any, name: str) -> bool:
    """Return the value of a field that is true or false. Raises ``TypeError``."""
    if isinstance(value, bool):
        return value
    raise TypeError(f"{name!r} is neither true nor false")


def json_object(value: Any, name: str) -> Mapping[str, Any]:
    """Return the value of a field that is an object. Raises ``TypeError``."""
    if isinstance(value, dict):
        return value
    raise TypeError(f"{name!r} is not an object")


def objects(value: Any, name: str) -> Iterable[Mapping[str, Any]]:
    """Return the value of a field that is a list of objects; null is an empty one. Raises ``TypeError``."""
    if value is not None and not isinstance(value, list):
        raise TypeError(f"{name!r} is not a list")
    return [json_object(item, name) for item in value or ()]
