"""Applies the JSON differences of PARTIAL_UPDATE_ROWS events to a document, as the server's ``apply_json_diffs`` does.

A difference is an operation, a path and, except for REMOVE, a value.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias, Union

from rowtide.connector.errors import RemoteProtocolError, UnsupportedEvent
from rowtide.connector.protocol.byte_reader import ByteReader

_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_LEG = re.compile(r'\s*(?:\.\s*(?:("(?:[^"\\]|\\.)*")|([^\s."\[\]*]+))|\[\s*(?:(\d+)|last(?:\s*-\s*(\d+))?)\s*\])')


class Leaf(NamedTuple):
    """A value that is neither array nor object, by its offset in the bytes of its document."""

    data: bytes
    kind: int
    offset: int


Node: TypeAlias = Union[Leaf, list["Node"], dict[bytes, "Node"]]  # noqa: UP007 - quoted names know no |


class _Cell(NamedTuple):
    """An array index, counted from the last element if ``from_end``."""

    number: int
    from_end: bool

    def position(self, size: int) -> int:
        """Return the index from the start; negative if it is before the first element."""
        return size - 1 - self.number if self.from_end else self.number


_Path = tuple[bytes | _Cell, ...]


def parse_path(text: str) -> _Path:
    """Return the legs of a JSON path without wildcards: member names and array cells.

    Raises:
        UnsupportedEvent: differences cannot have a path of this form.
    """
    legs: list[bytes | _Cell] = []
    text = text.strip()
    pos = 1
    while text[:1] == "$" and (match := _LEG.match(text, pos)):
        quoted, plain, index, from_end = match.groups()
        if quoted or plain:
            legs.append((json.loads(quoted) if quoted else plain).encode())
        else:
            legs.append(_Cell(int(index or from_end or 0), index is None))
        pos = match.end()
    if pos != len(text):
        raise UnsupportedEvent(f"a JSON difference with the unsupported path {text!r}")
    return tuple(legs)


def read_diffs(diffs: bytes) -> Iterator[tuple[int, bytes, bytes | None]]:
    """Yield operation (0 replace, 1 insert, 2 remove), path and binary JSON value of each difference.

    Raises:
        UnsupportedEvent: an unknown operation.
    """
    reader = ByteReader(diffs, 0, len(diffs))
    while reader.remaining():
        operation = reader.uint(1)
        if operation > _REMOVE:
            raise UnsupportedEvent(
                f"a JSON difference with unknown operation {operation}; known: 0 replace, 1 insert, 2 remove"
            )
        yield operation, reader.packed_string(), None if operation == _REMOVE else reader.packed_string()


def apply_diffs(root: Node, diffs: bytes, parse_value: Callable[[bytes], Node]) -> Node:
    """Return the document after all differences; ``root`` is modified.

    Raises:
        RemoteProtocolError: a difference does not apply to the document.
        UnsupportedEvent: an unknown operation or path.
    """
    for operation, name, stored in read_diffs(diffs):
        path, value = name.decode(), None if stored is None else parse_value(stored)
        try:
            root = _change(root, parse_path(path), operation, value)
        except (KeyError, IndexError):
            raise RemoteProtocolError(
                f"a JSON difference (operation {operation}) at {path!r} does not apply to the document "
                "of the before image"
            ) from None
    return root


def _change(node: Node, path: _Path, operation: int, value: Node | None) -> Node:
    """Return the node after the operation on the value at ``path`` below it."""
    if operation == _REPLACE and not path:
        assert value is not None
        return value
    leg, rest = path[0], path[1:]
    if isinstance(leg, _Cell):
        if isinstance(node, list):
            position = leg.position(len(node))
            if operation != _REPLACE and not rest:
                _change_array(node, position, value)
            else:
                _within(position, node)
                node[position] = _change(node[position], rest, operation, value)
        elif leg.number == 0:  # any value counts as an array of itself
            return _change(node, rest, operation, value)
        else:
            raise IndexError(leg.number)
    elif not isinstance(node, dict):
        raise KeyError(leg)
    elif operation == _REPLACE or rest:
        node[leg] = _change(node[leg], rest, operation, value)
    elif value is None:
        del node[leg]
    elif leg in node:
        raise KeyError(leg)
    else:
        node[leg] = value
    return node


def _change_array(node: list[Node], position: int, value: Node | None) -> None:
    if value is None:
        _within(position, node)
        del node[position]
    else:
        node.insert(max(position, 0), value)


def _within(position: int, node: list[Node]) -> None:
    if not 0 <= position < len(node):
        raise IndexError(position)
