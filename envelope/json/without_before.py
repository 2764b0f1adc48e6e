"""Removes the row before an update from a change that a JSON converter has written, and leaves every other byte."""

import json
from collections.abc import Iterator

_DECODER = json.JSONDecoder()


def without_before(value: bytes) -> bytes | None:
    """Return an update with null as ``before``; ``None`` if it is not an update that has a row before and after it.

    Args:
        value: an envelope as ``JsonConverter`` writes it, with or without its schema.
    """
    try:
        text = value.decode("utf-8", "surrogatepass")
        members = _members(text, 0)
        if members.keys() == {"schema", "payload"}:
            members = _members(text, members["payload"][0])
        first, end = members["before"]
        after = text[slice(*members["after"])]
        is_update = text[slice(*members["op"])] == '"u"'
    except (IndexError, KeyError, UnicodeDecodeError, ValueError):
        return None
    if not is_update or text[first] != "{" or not after.startswith("{"):
        return None
    return f"{text[:first]}null{text[end:]}".encode("utf-8", "surrogatepass")


def _members(text: str, start: int) -> dict[str, tuple[int, int]]:
    """Return where the values of the members of an object begin and end."""
    return dict(_spans(text, start))


def _spans(text: str, start: int) -> Iterator[tuple[str, tuple[int, int]]]:
    if text[start] != "{":
        raise ValueError("not an object")
    at = start
    while text[at] != "}":
        name, colon = _DECODER.raw_decode(text, at + 1)
        if text[colon] != ":":
            raise ValueError("not JSON as a converter writes it")
        _, end = _DECODER.raw_decode(text, colon + 1)
        yield name, (colon + 1, end)
        at = end
        if text[at] not in ",}":
            raise ValueError("not JSON as a converter writes it")
