"""The row compiler: from the images of a row event straight to what a record needs, one generated function per table.

A function is generated for a table's structure, its TABLE_MAP and the columns that an event's images hold. It reads
whole events: runs of fixed NOT NULL columns with a single :mod:`struct` call, each value once, and gives for every
image the key and the row, as JSON text or as Connect values. Generated source is what makes Python fast enough here:
no call per column, no dict per row.
"""

import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from json.encoder import encode_basestring  # the compiled one where there is one
from typing import Any

import orjson

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
    Meaning,
    Wire,
    fixed_source,
    struct_code,
    variable_source,
)
from rowtide.connector.rows.text_cache import remembered
from rowtide.envelope.json.text import JsonFormat, normalize_escapes, string_text, value_text
from rowtide.envelope.schema import Schema
from rowtide.envelope.types.column_type import Bind, ColumnType, Fallback
from rowtide.envelope.types.text import TEXT

SLOW = frozenset({FLOAT, DOUBLE, NEWDECIMAL, DATE, NEWDATE, BIT, TIMESTAMP2, DATETIME2, TIME2, OLD_TIMESTAMP, OLD_TIME,
                  OLD_DATETIME, ENUM, SET})  # fmt: skip
"""Binlog types whose texts are worth remembering."""

TIDY = [f"if '\\\\' in {v} or not {v}.isascii(): {v} = normalize_escapes({v})" for v in "kr"]
"""Strings are escaped by the quickest way there is; what Jackson does otherwise is put right once for all of a row."""

TextRows = Callable[[bytes, int, int], list[tuple[str, str]]]
"""Event bytes, start and end of the images to (JSON of the key, JSON of the row) for each image."""

ValueRows = Callable[[bytes, int, int], list[tuple[Any, ...]]]
"""Event bytes, start and end of the images to a tuple of Connect values, in the columns' order, for each image."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a column gives to the record.

    Attributes:
        field: the field's name.
        type: the form of its values.
        fallback: what stands there for null and for a value without a form.
        fallback_value: the same as a Connect value.
        schema: the full schema of the values.
        form: how values are written as JSON.
        in_value: false if only the key has the column.
        change: masking or truncating of Connect values, if any.
        key: the same for the record's key, if its converter writes values in another form.
    """

    field: str
    type: ColumnType
    fallback: Fallback
    fallback_value: Any
    schema: Schema
    form: JsonFormat
    in_value: bool = True
    change: Callable[[Any], Any] | None = None
    key: "Output | None" = None

    @property
    def in_key(self) -> "Output":
        """What the column gives to the key, which masks do not concern."""
        return self.key if self.key is not None else replace(self, change=None)

    @property
    def differs_in_key(self) -> bool:
        """Whether the key has another text than the value."""
        return self.key is not None or self.change is not None


@dataclass(frozen=True, slots=True)
class Column:
    """A column of the images.

    Attributes:
        wire: its layout.
        meaning: what its bytes mean.
        nullable: whether the null bitmap has to be asked.
        output: its place in the record; ``None`` for a column that is only skipped.
        absent_text: JSON text when the image leaves the column out.
        absent_value: the same as a Connect value.
        inserted_text: JSON text when the image of a new row leaves the column out, if its default tells.
    """

    wire: Wire
    meaning: Meaning
    nullable: bool
    output: Output | None
    absent_text: str = "null"
    absent_value: Any = None
    inserted_text: str | None = None


def text_rows(
    columns: Sequence[Column],
    key: Sequence[int],
    *present: Sequence[bool],
    key_constants: Sequence[tuple[str, str]] = (),
    carry: bool = False,
) -> TextRows:
    """Compile the function that gives JSON text.

    Args:
        columns: all columns of the table in their order.
        key: indexes of the columns of the record's key, in the key's order.
        present: for each column whether the images hold it (the columns-present bitmap); two of them if images come
            in pairs that do not hold the same columns.
        key_constants: further fields of the key, the same for all rows, with their JSON text.
        carry: whether a column that the second image of a pair leaves out has its value from the first one.
    """
    unchanged = frozenset(i for i in key if (c := columns[i]).output and c.output.differs_in_key)
    source = _Source(columns, unchanged)
    row = template([(c.output.field, f"t{i}") for i, c in enumerate(columns) if c.output and c.output.in_value])
    key_fields = [(c.output.field, f"k{i}" if i in unchanged else f"t{i}") for i in key if (c := columns[i]).output]
    key_fields += [(name, source.bind(text)) for name, text in key_constants]
    return source.function([f"k, r = {template(key_fields)}, {row}"], "(k, r)", present, carry=carry)


def value_rows(columns: Sequence[Column], *present: Sequence[bool]) -> ValueRows:
    """Compile the function that gives Connect values, for everything that must look into a record."""
    source = _Source(columns, values=True)
    names = "".join(f"t{i}, " for i, column in enumerate(columns) if column.output)
    return source.function([], f"({names})", present)


def template(fields: Sequence[tuple[str, str]]) -> str:
    """Source of an f-string that is a JSON object: pairs of a field and the variable that holds its JSON text."""
    inner = ",".join(f"{_literal(string_text(name))}:{{{variable}}}" for name, variable in fields)
    return f"f'{{{{{inner}}}}}'"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")
    # Names may hold anything, line ends included; those would end the f-string.
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped)


class _Source:
    """The source of one function while it is put together.

    Args:
        columns: all columns of the table.
        unchanged: indexes of the key's columns with another text there: the variable ``k…`` has it.
        values: whether variables hold Connect values instead of texts.
    """

    def __init__(
        self, columns: Sequence[Column], unchanged: frozenset[int] = frozenset(), *, values: bool = False
    ) -> None:
        self._columns = columns
        self._unchanged = unchanged
        self._values = values
        self._names: dict[str, object] = {}
        self._lines: list[str] = []
        self._loose = False

    def bind(self, value: object) -> str:
        """A variable of the function that has this value."""
        if value is string_text and not self._values:
            self._loose, value = True, encode_basestring
        name = f"c{len(self._names)}"
        self._names[name] = value
        return name

    def function(
        self, finish: Sequence[str], result: str, images: Sequence[Sequence[bool]], *, carry: bool = False
    ) -> Callable[..., Any]:
        """Compile ``rows(b, p, end)`` that gives ``result`` for every image, whose layouts take turns.

        Args:
            finish: lines behind those that read an image.
            result: what is given for it.
            images: for each column whether the images hold it.
            carry: whether a column that an image leaves out keeps the value of the one before.
        """
        kept: Sequence[bool] = ()
        for present in images:
            self._image(present, kept)
            kept = present if carry else ()
            self._add(*finish)
            if self._loose and not self._values:
                self._add(*TIDY)
            self._add(f"add({result})")
        body = "\n".join(f"        {line}" for line in self._lines)
        source = (
            f"def rows(b, p, end):\n    out = []\n    add = out.append\n    while p < end:\n{body}\n"
            "    if p != end:\n        raise overrun(p, end)\n    return out\n"
        )
        names = {**self._names, "overrun": _overrun, "normalize_escapes": normalize_escapes}
        exec(compile(source, "<row decoder>", "exec"), names)
        rows: Callable[..., Any] = names["rows"]  # type: ignore[assignment]
        return rows

    def _image(self, present: Sequence[bool], kept: Sequence[bool]) -> None:
        """Read one image: a bitmap of nulls for the columns that it holds, then their values."""
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
            if column.wire.fixed and not column.nullable:
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
            if index in self._unchanged:
                self._add(f"k{index} = t{index}")

    def _flush(self, run: list[int]) -> None:
        """Read a run of fixed columns that cannot be null with one call."""
        if not run:
            return
        columns = [self._columns[index] for index in run]
        size = sum(column.wire.size for column in columns)
        wanted = [index for index in run if self._columns[index].output]
        codes = "".join(self._code(index) for index in run)
        if wanted:
            unpack = self.bind(struct.Struct("<" + codes).unpack_from)
            self._add(f"{''.join(f't{index}, ' for index in wanted)}= {unpack}(b, p)")
        self._add(f"p += {size}")
        for index in wanted:
            column = self._columns[index]
            if self._repeats(index):
                self._add(f"t{index} = {self.bind(remembered(partial(_text_lines, column)))}[t{index}]")
            else:
                self._add(*fixed_source(column.wire, column.meaning, f"t{index}", self.bind))
                self._output(index, column, "")
        run.clear()

    def _repeats(self, index: int) -> bool:
        """Whether the texts of a column's values are remembered."""
        column = self._columns[index]
        wanted = column.output is not None and index not in self._unchanged and not self._values
        return wanted and column.wire.fixed and column.wire.type in SLOW

    def _code(self, index: int) -> str:
        column = self._columns[index]
        if column.output is None:
            return f"{column.wire.size}x"
        return f"{column.wire.size}s" if self._repeats(index) else struct_code(column.wire, column.meaning)

    def _single(self, index: int, column: Column, bit: int) -> None:
        indent = ""
        if column.nullable:
            indent = "    "
            if column.output:
                self._add(f"if n & {1 << bit}:", f"    t{index} = {self._null(column.output)}")
                if index in self._unchanged:
                    self._add(f"    k{index} = {column.output.in_key.fallback.text!r}")
                self._add("else:")
            else:
                self._add(f"if not n & {1 << bit}:")
        if self._repeats(index):
            size, texts = column.wire.size, self.bind(remembered(partial(_text_lines, column)))
            self._add(f"{indent}t{index} = {texts}[b[p:p + {size}]]", f"{indent}p += {size}")
            return
        read = self._fixed_read if column.wire.fixed else self._variable_read
        self._add(*(indent + line for line in read(column, f"t{index}")))
        if column.output:
            self._output(index, column, indent)

    def _null(self, output: Output) -> str:
        if not self._values:
            return repr(null_text(output))
        return self.bind(output.change(output.fallback_value) if output.change else output.fallback_value)

    def _fixed_read(self, column: Column, v: str) -> list[str]:
        size = column.wire.size
        if not column.output:
            return [f"p += {size}"]
        code = struct_code(column.wire, column.meaning)
        if code.endswith("s"):
            read = f"{v} = b[p:p + {size}]"
        elif code == "B":
            read = f"{v} = b[p]"
        else:
            read = f"{v}, = {self.bind(struct.Struct('<' + code).unpack_from)}(b, p)"
        return [read, f"p += {size}", *fixed_source(column.wire, column.meaning, v, self.bind)]

    def _variable_read(self, column: Column, v: str) -> list[str]:
        size = column.wire.size
        length = {1: "b[p]", 2: "b[p] | b[p + 1] << 8"}.get(size) or f"int.from_bytes(b[p:p + {size}], 'little')"
        lines = [f"q = p + {size} + ({length})"]
        if column.output:
            lines.append(f"{v} = b[p + {size}:q]")
        lines.append("p = q")
        if column.output:
            lines.extend(variable_source(column.wire, column.meaning, v, self.bind))
        return lines

    def _output(self, index: int, column: Column, indent: str) -> None:
        output, v = column.output, f"t{index}"
        assert output is not None
        if index in self._unchanged:
            self._add(f"{indent}k{index} = {text_expression(output.in_key, v, self.bind)}")
        if self._values:
            expression = f"{self.bind(_converter(output))}({v})"
        elif output.type is TEXT and output.change is None and column.meaning.decode is None:
            self._loose = True
            expression = f"{self.bind(orjson.dumps)}({v}).decode()"
        else:
            expression = text_expression(output, v, self.bind)
        if expression != v:
            self._add(f"{indent}{v} = {expression}")


def _text_lines(column: Column, bind: Bind) -> list[str]:
    """Source lines that turn the variable ``v`` from the bytes of a fixed column into the text of its value."""
    assert column.output is not None
    code = struct_code(column.wire, column.meaning)
    lines = [] if code.endswith("s") else [f"v, = {bind(struct.Struct('<' + code).unpack)}(v)"]
    lines += fixed_source(column.wire, column.meaning, "v", bind)
    return [*lines, f"v = str({text_expression(column.output, 'v', bind)})"]


def text_expression(output: Output, v: str, bind: Bind) -> str:
    """Source of the JSON text of the canonical value in the variable ``v``."""
    if output.change is not None or (output.schema.is_decimal and output.form.decimal_format == "NUMERIC"):
        return f"{bind(_changed_text(output))}({v})"
    return output.type.expression(v, bind, output.fallback)


def null_text(output: Output) -> str:
    """JSON text of null in the record's value: a mask hides null too."""
    if output.change is None:
        return output.fallback.text
    return value_text(output.schema.with_optional(True), output.change(output.fallback_value), output.form)


def _converter(output: Output) -> Callable[[Any], Any]:
    convert, change = output.type.convert, output.change

    def converted(value: Any) -> Any:
        try:
            result = convert(value)
        except ValueError as error:
            output.fallback.on_error(value, error)
            result = None
        if result is None:
            result = output.fallback_value
        return change(result) if change else result

    return converted


def _changed_text(output: Output) -> Callable[[Any], str]:
    converted, schema = _converter(output), output.schema.with_optional(True)

    def text(value: Any) -> str:
        return value_text(schema, converted(value), output.form)

    return text


def _overrun(position: int, end: int) -> ValueError:
    return ValueError(
        f"the row images end at byte {end} of the event, but decoding them with the table's structure ends at byte "
        f"{position}: the structure does not fit, or the event is damaged"
    )
