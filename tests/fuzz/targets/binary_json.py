"""Binary JSON, and documents with differences."""

from __future__ import annotations

from functools import cache
from random import Random

from rowtide.connector.errors import ProtocolError
from rowtide.connector.protocol.json.binary import SERVER, STREAM, json_text, patched_json_text
from tests.fuzz.mutators import mutated, spliced
from tests.fuzz.targets.packets import packed
from tests.support.mysql.json_documents import encode

_EXPANSION = 200
"""The most characters for a byte: the exact decimal expansion of a double has up to 1 100 for 11 bytes."""
_PATHS = (
    "$",
    "$[0]",
    "$[1]",
    "$.a",
    '$."b c"',
    "$[last]",
    "$[last-1]",
    "$.a[0].b",
    "$" + "[0]" * 300,
    "$.a" * 3,
    "$[9999999999]",
)


class BinaryJson:
    """An input is the length of the document, the document, and the differences."""

    declared = (ProtocolError,)

    def make(self, random: Random) -> bytes:
        """A damaged document, often with differences."""
        document = random.choice(_documents())
        action = random.random()
        if action < 0.1:
            document = _nested(random)
        elif action < 0.15:
            document = spliced(random, document, random.choice(_documents()))
        elif action < 0.9:
            document = mutated(random, document)
        differences = b"".join(_difference(random) for _ in range(random.choice((0, 0, 1, 2))))
        if differences and random.random() < 0.5:
            differences = mutated(random, differences)
        return len(document).to_bytes(3, "little") + document + differences

    def run(self, data: bytes) -> None:
        """Format it in both styles, as it is or after the differences."""
        size = int.from_bytes(data[:3], "little")
        document, differences = data[3 : 3 + size], data[3 + size :]
        for style in (STREAM, SERVER):
            text = patched_json_text(document, differences, style) if differences else json_text(document, style)
            assert len(text) <= 100 + _EXPANSION * len(data), f"{len(text)} characters of {len(data)} bytes"


@cache
def _documents() -> tuple[bytes, ...]:
    values: list[object] = [
        None, True, 5, -70_000, 2**63, 1.5, 5e-324, "text", "é😀\n", "x" * 300, [], {}, [1, 2, 3], [[[["deep"]]]],
        {"a": 1, "b c": [1, {"a": None}], "long": "y" * 200}, {"a": {"b": {"c": [{"d": 1.25}]}}},
        list(range(300)), [{"k": number, "v": str(number)} for number in range(40)], ["same"] * 50,
    ]  # fmt: skip
    return tuple(encode(value, large=large) for value in values for large in (False, True))


def _nested(random: Random) -> bytes:
    """Containers whose elements are one another: each level would double the text, or never end."""
    levels, width, out = random.choice((3, 20, 90, 200, 2000)), random.choice((1, 2, 3, 40)), b""
    for _ in range(levels):
        size = 4 + 3 * width
        offset = random.choice((size, size, size, 0)) if random.random() < 0.1 else size
        out += width.to_bytes(2, "little") + size.to_bytes(2, "little")
        out += (b"\2" + offset.to_bytes(2, "little")) * width
    return b"\2" + out + b"\0\0\4\0"


def _difference(random: Random) -> bytes:
    path = random.choice(_PATHS).encode()
    operation = random.choice((0, 0, 1, 1, 2, 3))
    value = b"" if operation == 2 else random.choice(_documents())
    return bytes((operation,)) + packed(len(path)) + path + (packed(len(value)) + value if operation != 2 else b"")
