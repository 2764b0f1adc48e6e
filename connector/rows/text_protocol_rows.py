"""The row compiler for result sets: from the packets of the text protocol straight to JSON, one function per query.

It is the counterpart of :mod:`rowtide.connector.rows.compiler` for snapshots and shares with it how values become JSON.
A packet of a row holds the columns one after the other, each as a length and the server's text.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from json.encoder import encode_basestring  # the compiled one where there is one

import orjson

from rowtide.connector.rows.compiler import TIDY, Output, null_text, template
from rowtide.connector.rows.text_cache import remembered
from rowtide.connector.rows.text_protocol_values import ASCII_KINDS, REPEATED_KINDS, value_source
from rowtide.envelope.json.text import normalize_escapes, string_text
from rowtide.envelope.types.text import TEXT
from rowtide.schema_history.model import Column

Rows = Sequence[tuple[str, str]]
"""Of each row the JSON of the key and the JSON of the row."""

_NULL = 251
_LARGEST = 0xFFFFFF


@dataclass(frozen=True, slots=True)
class ResultColumn:
    """A column of the record.

    Attributes:
        column: its structure.
        output: its place in the record.
        absent_text: its JSON text if the query does not select it.
    """

    column: Column
    output: Output
    absent_text: str


@dataclass(frozen=True, slots=True)
class TextRows:
    """A compiled reader.

    Attributes:
        rows: from a buffer to the rows of the whole packets at its beginning, and where it stopped: at a packet that
            is not all there, that is no row, or whose payload goes on in another packet.
        row: from the payload of one packet, however large, to its row.
    """

    rows: Callable[[bytes], tuple[Rows, int]]
    row: Callable[[bytes], tuple[str, str]]


def text_rows(
    columns: Sequence[ResultColumn],
    key: Sequence[int],
    names: Sequence[str],
    key_constants: Sequence[tuple[str, str]] = (),
) -> TextRows:
    """Compile a reader for a result set.

    Args:
        columns: the record's columns.
        key: places of the key's columns among them, in the key's order.
        names: the result set's columns; those that the record does not have are passed over.
        key_constants: further fields of the key, the same for all rows, with their JSON text.
    """
    unchanged = frozenset(i for i in key if columns[i].output.differs_in_key)
    source = _Source(columns, unchanged)
    source.read(names)
    row = template([(c.output.field, f"t{i}") for i, c in enumerate(columns) if c.output.in_value])
    key_fields = [(columns[i].output.field, f"k{i}" if i in unchanged else f"t{i}") for i in key]
    key_fields += [(name, source.bind(text)) for name, text in key_constants]
    return source.compiled(f"k, r = {template(key_fields)}, {row}")


class _Source:
    """The source of the two functions while it is put together.

    Args:
        columns: the record's columns.
        unchanged: places of the key's columns with another text there: the variable ``k…`` has it.
    """

    def __init__(self, columns: Sequence[ResultColumn], unchanged: frozenset[int]) -> None:
        self._columns = columns
        self._unchanged = unchanged
        self._names: dict[str, object] = {"longer": longer, "overrun": _overrun, "normalize_escapes": normalize_escapes}
        self._lines: list[str] = []
        self._loose = False

    def bind(self, value: object) -> str:
        """A variable of the functions that has this value."""
        if value is string_text:
            self._loose, value = True, encode_basestring
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def read(self, names: Sequence[str]) -> None:
        places = {column.column.name.lower(): place for place, column in enumerate(self._columns)}
        for name in names:
            place = places.pop(name.lower(), None)
            if place is None:
                self._skip()
            else:
                self._column(place)
        for place in places.values():
            self._lines.insert(0, f"t{place} = {self._columns[place].absent_text!r}")
            if place in self._unchanged:
                self._lines.insert(1, f"k{place} = t{place}")

    def _skip(self) -> None:
        self._lines += [
            "n = b[p]",
            "p += 1",
            f"if n != {_NULL}:",
            f"    if n > {_NULL}:",
            "        n, p = longer(b, p, n)",
            "    p += n",
        ]

    def _column(self, place: int) -> None:
        column, v = self._columns[place], f"t{place}"
        kind = column.output.type.kind
        short = kind in ASCII_KINDS
        self._lines += [
            "n = b[p]",
            "p += 1",
            f"if n == {_NULL}:",
            f"    {v} = {null_text(column.output)!r}",
        ]
        if place in self._unchanged:
            self._lines.append(f"    k{place} = {column.output.in_key.fallback.text!r}")
        self._lines.append("else:")
        if not short:
            self._lines += [f"    if n > {_NULL}:", "        n, p = longer(b, p, n)"]
        self._lines += ["    q = p + n", f"    {v} = {'s' if short else 'b'}[p:q]", "    p = q"]
        self._lines += (f"    {line}" for line in self._value_source(place, v))

    def _value_source(self, place: int, v: str) -> list[str]:
        """Source lines that turn ``v`` from what the server sent into JSON text."""
        column, output = self._columns[place].column, self._columns[place].output
        if place in self._unchanged:
            return value_source(column, output, v, self.bind, f"k{place}")
        if output.type.kind in REPEATED_KINDS:
            return [f"{v} = {self.bind(remembered(lambda bind: value_source(column, output, 'v', bind)))}[{v}]"]
        if output.type is TEXT and output.change is None:
            self._loose = True
            return [f"{v} = {self.bind(orjson.dumps)}({v}.decode('utf-8', 'replace')).decode()"]
        return value_source(column, output, v, self.bind)

    def compiled(self, result: str) -> TextRows:
        lines = [*self._lines, result, *(TIDY if self._loose else ())]
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
        exec(compile(source, "<result set reader>", "exec"), self._names)
        return TextRows(self._names["rows"], self._names["row"])  # type: ignore[arg-type]


def longer(buffer: bytes, position: int, first: int) -> tuple[int, int]:
    """A length that does not fit into one byte, and where the value begins."""
    size = {252: 2, 253: 3, 254: 8}[first]
    return int.from_bytes(buffer[position : position + size], "little"), position + size


def _overrun(position: int, end: int) -> ValueError:
    return ValueError(f"a row of a result set ends at byte {end}, but its columns at byte {position}")
