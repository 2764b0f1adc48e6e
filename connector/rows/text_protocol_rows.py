"""The row compiler for snapshots: generates one function per query, from packets of the text protocol to JSON.

It is the counterpart of :mod:`rowtide.connector.rows.row_compiler`. The packet of a row holds the columns one after
another, each as a length and the value in the server's text format.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from json.encoder import encode_basestring  # the compiled one where there is one
from typing import Any

import orjson

from rowtide.connector.rows.column_output import (
    ESCAPE_FIXES,
    ColumnOutput,
    null_text,
    null_value,
    template,
    tuple_source,
)
from rowtide.connector.rows.compiled_source import define
from rowtide.connector.rows.text_cache import compile_text_cache
from rowtide.connector.rows.text_protocol_values import ASCII_KINDS, CACHED_KINDS, converted_source, value_source
from rowtide.envelope.json.text import normalize_escapes, string_text
from rowtide.envelope.types.text import TEXT
from rowtide.schema_history.model import Column

Rows = Sequence[tuple[Any, ...]]
"""The JSON texts of key and row, or their converted values, for each row."""

_NULL = 251
_LARGEST = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of the record.

    Attributes:
        column: the column's structure.
        output: its field in the record.
        absent_text: the JSON text if the query does not select the column.
        absent_value: the converted value in that case.
    """

    column: Column
    output: ColumnOutput
    absent_text: str
    absent_value: Any = None


@dataclass(frozen=True, slots=True)
class ResultReader:
    """The functions that read a result set, compiled for its columns.

    Attributes:
        rows: decodes the complete packets at the start of a buffer; returns their rows and the offset where it stopped:
            at an incomplete packet, a packet that is not a row, or one whose payload continues in the next packet.
        row: decodes the payload of one row, of any size.
    """

    rows: Callable[[bytes], tuple[Rows, int]]
    row: Callable[[bytes], tuple[Any, ...]]


def result_text_reader(
    columns: Sequence[ResultColumn],
    key: Sequence[int],
    names: Sequence[str],
    key_constants: Sequence[tuple[str, str]] = (),
    *,
    verify: bool = False,
) -> ResultReader:
    """Compile the functions for a result set.

    Args:
        columns: the record's columns.
        key: indexes of the key's columns among them, in the key's order.
        names: the result set's columns; those that are not in the record are skipped.
        key_constants: further fields of the key that are the same for all rows, with their JSON text.
        verify: verify that integers are integers, because the query is not rowtide's own.
    """
    separate_keys = frozenset(i for i in key if columns[i].output.differs_in_key)
    source = _Source(columns, separate_keys, verify=verify)
    source.read(names)
    row = template([(c.output.field, f"t{i}") for i, c in enumerate(columns) if c.output.in_value])
    key_fields = [(columns[i].output.field, f"k{i}" if i in separate_keys else f"t{i}") for i in key]
    key_fields += [(name, source.bind(text)) for name, text in key_constants]
    return source.compiled(f"k, r = {template(key_fields)}, {row}")


def result_value_reader(columns: Sequence[ResultColumn], key: Sequence[int], names: Sequence[str]) -> ResultReader:
    """Compile the functions for tuples of converted values; the arguments are those of :func:`result_text_reader`."""
    separate_keys = frozenset(i for i in key if columns[i].output.differs_in_key)
    source = _Source(columns, separate_keys, values=True)
    source.read(names)
    row = tuple_source([f"t{i}" for i, c in enumerate(columns) if c.output.in_value])
    keys = tuple_source([f"k{i}" if i in separate_keys else f"t{i}" for i in key])
    return source.compiled(f"k, r = {keys}, {row}")


class _Source:
    """Builds the source of the two functions.

    In the source ``b`` is the buffer, ``s`` the same as Latin-1 text, ``p`` the offset, ``n`` a length, and ``t0``,
    ``t1`` … hold the JSON texts of the columns.

    Args:
        columns: the record's columns.
        separate_keys: indexes of key columns whose text in the key differs from that in the value; ``k0``, ``k1`` …
            hold the text for the key.
        values: the variables hold converted values instead of JSON texts.
        verify: verify that integers are integers.
    """

    def __init__(
        self,
        columns: Sequence[ResultColumn],
        separate_keys: frozenset[int],
        *,
        values: bool = False,
        verify: bool = False,
    ) -> None:
        self._json_source = partial(value_source, verify=verify)
        self._columns = columns
        self._separate_keys = separate_keys
        self._values = values
        self._names: dict[str, object] = {"longer": longer, "overrun": _overrun, "normalize_escapes": normalize_escapes}
        self._lines: list[str] = []
        self._fix_escapes = False

    def bind(self, value: object) -> str:
        """Return the name of a new constant of the functions with this value."""
        if value is string_text:
            self._fix_escapes, value = True, encode_basestring
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def read(self, names: Sequence[str]) -> None:
        indexes = {column.column.name.lower(): index for index, column in enumerate(self._columns)}
        for name in names:
            index = indexes.pop(name.lower(), None)
            if index is None:
                self._skip()
            else:
                self._column(index)
        for index in indexes.values():
            absent = (
                self.bind(self._columns[index].absent_value) if self._values else repr(self._columns[index].absent_text)
            )
            self._lines.insert(0, f"t{index} = {absent}")
            if index in self._separate_keys:
                self._lines.insert(1, f"k{index} = t{index}")

    def _skip(self) -> None:
        self._lines += [
            "n = b[p]",
            "p += 1",
            f"if n != {_NULL}:",
            f"    if n > {_NULL}:",
            "        n, p = longer(b, p, n)",
            "    p += n",
        ]

    def _column(self, index: int) -> None:
        column, v = self._columns[index], f"t{index}"
        kind = column.output.type.kind
        short = kind in ASCII_KINDS
        self._lines += [
            "n = b[p]",
            "p += 1",
            f"if n == {_NULL}:",
            f"    {v} = {self._null(column.output)}",
        ]
        if index in self._separate_keys:
            null = column.output.in_key.fallback.text
            self._lines.append(f"    k{index} = {None if self._values else null!r}")
        self._lines.append("else:")
        if not short:
            self._lines += [f"    if n > {_NULL}:", "        n, p = longer(b, p, n)"]
        self._lines += ["    q = p + n", f"    {v} = {'s' if short else 'b'}[p:q]", "    p = q"]
        self._lines += (f"    {line}" for line in self._value_source(index, v))

    def _null(self, output: ColumnOutput) -> str:
        return self.bind(null_value(output)) if self._values else repr(null_text(output))

    def _value_source(self, index: int, v: str) -> list[str]:
        """Return the source lines that convert ``v`` from the server's text to JSON text, or to the converted value."""
        column, output = self._columns[index].column, self._columns[index].output
        make = converted_source if self._values else self._json_source
        if index in self._separate_keys:
            return make(column, output, v, self.bind, f"k{index}")
        if output.type.kind in CACHED_KINDS:
            return [f"{v} = {self.bind(compile_text_cache(lambda bind: make(column, output, 'v', bind)))}[{v}]"]
        if self._values:
            return make(column, output, v, self.bind)
        if output.type is TEXT and output.change is None:
            self._fix_escapes = True
            return [f"{v} = {self.bind(orjson.dumps)}({v}.decode('utf-8', 'replace')).decode()"]
        return make(column, output, v, self.bind)

    def compiled(self, result: str) -> ResultReader:
        lines = [*self._lines, result, *(ESCAPE_FIXES if self._fix_escapes else ())]
        body = "".join(f"        {line}\n" for line in lines)
        source = (
            "def rows(b):\n"
            "    out = []\n    add = out.append\n    s = b.decode('latin-1')\n    p, end = 0, len(b)\n"
            "    while end - p > 4:\n"
            "        n = b[p] | b[p + 1] << 8 | b[p + 2] << 16\n"
            "        e = p + 4 + n\n"
            f"        if e > end or n == {_LARGEST} or (b[p + 4] > 253 and (n < 9 or b[p + 4] == 255)):\n"
            "            break\n"
            "        p += 4\n"
            f"{body}"
            "        if p != e:\n            raise overrun(p, e)\n"
            "        add((k, r))\n"
            "    return out, p\n"
            "def row(b):\n"
            "    s = b.decode('latin-1')\n    p, e = 0, len(b)\n"
            "    if True:\n"
            f"{body}"
            "    if p != e:\n        raise overrun(p, e)\n"
            "    return k, r\n"
        )
        define(source, "<result set reader>", self._names)
        return ResultReader(self._names["rows"], self._names["row"])  # type: ignore[arg-type]


def longer(buffer: bytes, position: int, first: int) -> tuple[int, int]:
    """Return a length that does not fit into one byte, and the offset of the value."""
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(buffer[position : position + size], "little"), position + size


def _overrun(position: int, end: int) -> ValueError:
    return ValueError(f"a row of a result set ends at byte {end}, but its columns at byte {position}")
