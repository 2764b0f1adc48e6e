"""The row compiler: generates one function per table that decodes the row images of an event to JSON or Connect values.

A function belongs to a table's structure, its TABLE_MAP and the columns that are present in the images. It decodes a
whole event: runs of fixed-size NOT NULL columns with one :mod:`struct` call, each value once. Generated code makes this
fast enough in Python: no call per column, no dictionary per row.
"""

import struct
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
    text_expression,
    tuple_source,
    value_expression,
)
from rowtide.connector.rows.compiled_source import define
from rowtide.connector.rows.layouts import (
    BIT,
    DATE,
    DATETIME2,
    DOUBLE,
    ENUM,
    FLOAT,
    NEWDATE,
    NEWDECIMAL,
    OLD_DATETIME,
    OLD_TIME,
    OLD_TIMESTAMP,
    SET,
    TIME2,
    TIMESTAMP2,
    ColumnDecoding,
    ColumnLayout,
    fixed_source,
    struct_code,
    variable_source,
)
from rowtide.connector.rows.text_cache import compile_text_cache
from rowtide.envelope.json.text import normalize_escapes, string_text
from rowtide.envelope.types.column_type import Bind
from rowtide.envelope.types.text import TEXT

CACHED_TYPES = frozenset(
    {
        FLOAT, DOUBLE, NEWDECIMAL, DATE, NEWDATE, BIT, TIMESTAMP2, DATETIME2, TIME2, OLD_TIMESTAMP, OLD_TIME,
        OLD_DATETIME, ENUM, SET,
    }
)  # fmt: skip
"""Binlog types whose texts are cached, see :mod:`rowtide.connector.rows.text_cache`."""

TextRows = Callable[[bytes, int, int], list[tuple[str, str]]]
"""From the event's bytes, the offset of the first image and the offset after the last one to the JSON texts of key and
row, for each image."""

KeyValueRows = Callable[[bytes, int, int], list[tuple[tuple[Any, ...], tuple[Any, ...]]]]
"""From the same arguments to the key and the row as tuples of converted values, for each image."""

ValueRows = Callable[[bytes, int, int], list[tuple[Any, ...]]]
"""From the same arguments to a tuple of Connect values in the order of the columns, for each image."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table, as the compiler needs it.

    Attributes:
        layout: the layout of its values in an image.
        decoding: how to interpret these bytes.
        nullable: whether the column has to be looked up in the null bitmap.
        output: its field in the record; ``None`` for a column that is not published.
        absent_text: the JSON text if the image does not hold the column.
        absent_value: the same as a Connect value.
        default_text: the JSON text if the image of an INSERT does not hold the column and its default is known.
    """

    layout: ColumnLayout
    decoding: ColumnDecoding
    nullable: bool
    output: ColumnOutput | None
    absent_text: str = "null"
    absent_value: Any = None
    default_text: str | None = None


def text_rows(
    columns: Sequence[Column],
    key: Sequence[int],
    *present: Sequence[bool],
    key_constants: Sequence[tuple[str, str]] = (),
    carry: bool = False,
) -> TextRows:
    """Compile the function that returns JSON text.

    Args:
        columns: all columns of the table, in order.
        key: indexes of the columns of the record's key, in the key's order.
        present: for each column, whether the images hold it (the columns-present bitmap); two of them if images come
            in pairs that hold different columns.
        key_constants: further fields of the key that are the same for all rows, with their JSON text.
        carry: take the value of a column that is absent in the second image of a pair from the first image.
    """
    in_key = separate_keys(columns, key)
    source = _Source(columns, in_key)
    row = template([(c.output.field, f"t{i}") for i, c in enumerate(columns) if c.output and c.output.in_value])
    key_fields = [(c.output.field, f"k{i}" if i in in_key else f"t{i}") for i in key if (c := columns[i]).output]
    key_fields += [(name, source.bind(text)) for name, text in key_constants]
    return source.function([f"k, r = {template(key_fields)}, {row}"], "(k, r)", present, carry=carry)


def key_value_rows(
    columns: Sequence[Column], key: Sequence[int], *present: Sequence[bool], carry: bool = False
) -> KeyValueRows:
    """Compile the function that returns the key and the row of each image as tuples of converted values.

    The arguments are those of :func:`text_rows`; ``ColumnOutput.type`` determines the conversion of a value.
    """
    in_key = separate_keys(columns, key)
    source = _Source(columns, in_key, values=True, cache_values=True)
    row = tuple_source([f"t{i}" for i, c in enumerate(columns) if c.output and c.output.in_value])
    keys = tuple_source([f"k{i}" if i in in_key else f"t{i}" for i in key if columns[i].output])
    return source.function([], f"({keys}, {row})", present, carry=carry)


def value_rows(columns: Sequence[Column], *present: Sequence[bool], cached: bool = False) -> ValueRows:
    """Compile the function that returns converted values.

    Args:
        columns: all columns of the table, in order.
        present: as for :func:`text_rows`.
        cached: cache the values as texts are cached; they must be immutable.
    """
    source = _Source(columns, values=True, cache_values=cached)
    names = "".join(f"t{i}, " for i, column in enumerate(columns) if column.output)
    return source.function([], f"({names})", present)


def separate_keys(columns: Sequence[Column], key: Sequence[int]) -> frozenset[int]:
    """Return the key columns whose text or value in the key differs from that in the row."""
    return frozenset(i for i in key if (output := columns[i].output) and output.differs_in_key)


class _Source:
    """Builds the source of one function.

    In the source ``b`` is the buffer, ``p`` the offset in it, ``n`` the null bitmap, and ``t0``, ``t1`` … hold the
    values of the columns.

    Args:
        columns: all columns of the table.
        separate_keys: indexes of key columns whose text in the key differs from that in the value; ``k0``, ``k1`` …
            hold the text for the key.
        values: the variables hold converted values instead of JSON texts.
        cache_values: cache them as texts are cached; they must be immutable.
    """

    def __init__(
        self,
        columns: Sequence[Column],
        separate_keys: frozenset[int] = frozenset(),
        *,
        values: bool = False,
        cache_values: bool = False,
    ) -> None:
        self._columns = columns
        self._separate_keys = separate_keys
        self._values = values
        self._lines_of = stored_value_lines if values else stored_text_lines
        self._caches = cache_values or not values
        self._names: dict[str, object] = {}
        self._lines: list[str] = []
        self._fix_escapes = False

    def bind(self, value: object) -> str:
        """Return the name of a new constant of the function with this value."""
        if value is string_text and not self._values:
            self._fix_escapes, value = True, encode_basestring
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def function(
        self, finish: Sequence[str], result: str, images: Sequence[Sequence[bool]], *, carry: bool = False
    ) -> Callable[..., Any]:
        """Compile ``rows(b, p, end)``, which returns a list of ``result``, one for each image.

        Args:
            finish: source lines that follow those that decode an image.
            result: source of the expression that is added to the list.
            images: for each column, whether the image holds it; several of them if the images alternate.
            carry: a column that is absent in an image keeps the value of the image before.
        """
        kept: Sequence[bool] = ()
        for present in images:
            self._image(present, kept)
            kept = present if carry else ()
            self._add(*finish)
            if self._fix_escapes and not self._values:
                self._add(*ESCAPE_FIXES)
            self._add(f"add({result})")
        body = "\n".join(f"        {line}" for line in self._lines)
        # Images without columns have no bytes; MySQL refuses to write more than one such row into an event.
        loop = "while p < end" if any(map(any, images)) else "for _ in range(1)"
        source = (
            f"def rows(b, p, end):\n    out = []\n    add = out.append\n    {loop}:\n{body}\n"
            "    if p != end:\n        raise overrun(p, end)\n    return out\n"
        )
        names = {**self._names, "overrun": _overrun, "normalize_escapes": normalize_escapes}
        define(source, "<row decoder>", names)
        rows: Callable[..., Any] = names["rows"]  # type: ignore[assignment]
        return rows

    def _image(self, present: Sequence[bool], kept: Sequence[bool]) -> None:
        """Decode one image: the null bitmap of the columns that it holds, then their values."""
        bitmap = (sum(present) + 7) // 8
        self._add(f"n = int.from_bytes(b[p:p + {bitmap}], 'little')" if bitmap != 1 else "n = b[p]")
        self._add(f"p += {bitmap}")
        run: list[int] = []
        bit = 0
        for index, column in enumerate(self._columns):
            if not present[index]:
                if not (kept and kept[index]):
                    self._absent(index, column)
                continue
            if column.layout.fixed and not column.nullable:
                run.append(index)
            else:
                self._flush(run)
                self._single(index, column, bit)
            bit += 1
        self._flush(run)

    def _add(self, *lines: str) -> None:
        self._lines.extend(lines)

    def _absent(self, index: int, column: Column) -> None:
        if column.output:
            value = self.bind(column.absent_value) if self._values else repr(column.absent_text)
            self._add(f"t{index} = {value}")
            if index in self._separate_keys:
                self._add(f"k{index} = t{index}")

    def _flush(self, run: list[int]) -> None:
        """Decode a run of fixed-size columns that cannot be null with one call."""
        if not run:
            return
        columns = [self._columns[index] for index in run]
        size = sum(column.layout.size for column in columns)
        published = [index for index in run if self._columns[index].output]
        codes = "".join(self._code(index) for index in run)
        if published:
            unpack = self.bind(struct.Struct("<" + codes).unpack_from)
            self._add(f"{''.join(f't{index}, ' for index in published)}= {unpack}(b, p)")
        self._add(f"p += {size}")
        for index in published:
            column = self._columns[index]
            if self._is_cached(index):
                self._add(f"t{index} = {self._cache(column)}[t{index}]")
            else:
                self._add(*fixed_source(column.layout, column.decoding, f"t{index}", self.bind))
                self._output(index, column, "")
        run.clear()

    def _cache(self, column: Column) -> str:
        """Return the name of a new cache of the column's texts or values."""
        assert column.output is not None
        return self.bind(compile_text_cache(partial(self._lines_of, column, column.output)))

    def _is_cached(self, index: int) -> bool:
        """Return whether the texts or values of a column are cached."""
        column = self._columns[index]
        alone = column.output is not None and index not in self._separate_keys and self._caches
        return alone and column.layout.fixed and column.layout.type in CACHED_TYPES

    def _code(self, index: int) -> str:
        column = self._columns[index]
        if column.output is None:
            return f"{column.layout.size}x"
        return f"{column.layout.size}s" if self._is_cached(index) else struct_code(column.layout, column.decoding)

    def _single(self, index: int, column: Column, bit: int) -> None:
        indent = ""
        if column.nullable:
            indent = "    "
            if column.output:
                self._add(f"if n & {1 << bit}:", f"    t{index} = {self._null(column.output)}")
                if index in self._separate_keys:
                    null = column.output.in_key.fallback.text
                    self._add(f"    k{index} = {None if self._values else null!r}")
                self._add("else:")
            else:
                self._add(f"if not n & {1 << bit}:")
        if self._is_cached(index):
            size, texts = column.layout.size, self._cache(column)
            self._add(f"{indent}t{index} = {texts}[b[p:p + {size}]]", f"{indent}p += {size}")
            return
        read = self._fixed_read if column.layout.fixed else self._variable_read
        self._add(*(indent + line for line in read(column, f"t{index}")))
        if column.output:
            self._output(index, column, indent)

    def _null(self, output: ColumnOutput) -> str:
        if not self._values:
            return repr(null_text(output))
        return self.bind(null_value(output))

    def _fixed_read(self, column: Column, v: str) -> list[str]:
        size = column.layout.size
        if not column.output:
            return [f"p += {size}"]
        code = struct_code(column.layout, column.decoding)
        if code.endswith("s"):
            read = f"{v} = b[p:p + {size}]"
        elif code == "B":
            read = f"{v} = b[p]"
        else:
            read = f"{v}, = {self.bind(struct.Struct('<' + code).unpack_from)}(b, p)"
        return [read, f"p += {size}", *fixed_source(column.layout, column.decoding, v, self.bind)]

    def _variable_read(self, column: Column, v: str) -> list[str]:
        size = column.layout.size
        length = {1: "b[p]", 2: "b[p] | b[p + 1] << 8"}.get(size) or f"int.from_bytes(b[p:p + {size}], 'little')"
        lines = [f"q = p + {size} + ({length})"]
        if column.output:
            lines.append(f"{v} = b[p + {size}:q]")
        lines.append("p = q")
        if column.output:
            lines.extend(variable_source(column.layout, column.decoding, v, self.bind))
        return lines

    def _output(self, index: int, column: Column, indent: str) -> None:
        output, v = column.output, f"t{index}"
        assert output is not None
        if index in self._separate_keys:
            key_expression = value_expression if self._values else text_expression
            self._add(f"{indent}k{index} = {key_expression(output.in_key, v, self.bind)}")
        if self._values:
            expression = value_expression(output, v, self.bind)
        elif output.type is TEXT and output.change is None and column.decoding.text_decoder is None:
            self._fix_escapes = True
            expression = f"{self.bind(orjson.dumps)}({v}).decode()"
        else:
            expression = text_expression(output, v, self.bind)
        if expression != v:
            self._add(f"{indent}{v} = {expression}")


def stored_text_lines(column: Column, output: ColumnOutput, bind: Bind) -> list[str]:
    """Return source lines that convert the bytes in the variable ``v``, without a length, to the JSON text."""
    return [*_canonical_lines(column, bind), f"v = str({text_expression(output, 'v', bind)})"]


def stored_value_lines(column: Column, output: ColumnOutput, bind: Bind) -> list[str]:
    """Return source lines that convert the bytes in the variable ``v``, without a length, to the value."""
    return [*_canonical_lines(column, bind), f"v = {value_expression(output, 'v', bind)}"]


def _canonical_lines(column: Column, bind: Bind) -> list[str]:
    if not column.layout.fixed:
        return variable_source(column.layout, column.decoding, "v", bind)
    code = struct_code(column.layout, column.decoding)
    lines = [] if code.endswith("s") else [f"v, = {bind(struct.Struct('<' + code).unpack)}(v)"]
    return [*lines, *fixed_source(column.layout, column.decoding, "v", bind)]


def _overrun(position: int, end: int) -> ValueError:
    return ValueError(
        f"the row images end at byte {end} of the event, but decoding them with the table's structure ends at byte "
        f"{position}: the structure does not fit, or the event is damaged"
    )
