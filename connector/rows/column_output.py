"""The form of a column's values in a record, and the Python source that turns them into JSON text.

Both row compilers build on this module: :mod:`rowtide.connector.rows.row_compiler` for the binlog and
:mod:`rowtide.connector.rows.text_protocol_rows` for snapshots.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rowtide.envelope.json.text import JsonFormat, string_text, value_text
from rowtide.envelope.schema import Schema
from rowtide.envelope.types.column_type import Bind, ColumnType, Fallback, identity

ESCAPE_FIXES = [f"if '\\\\' in {v} or not {v}.isascii(): {v} = normalize_escapes({v})" for v in "kr"]
"""Source lines after a row's values. Strings are escaped by the fastest function available; where Jackson escapes
differently, the texts of the whole key (``k``) and row (``r``) are corrected together."""


@dataclass(frozen=True, slots=True)
class ColumnOutput:
    """The field of a record that a column becomes.

    Attributes:
        field: the field's name.
        type: converts values to Connect values and JSON text.
        fallback: the text for null and for values that cannot be converted.
        fallback_value: the same as a Connect value.
        schema: the schema of the field.
        form: the JSON converter's format.
        in_value: false if the column is only in the key.
        change: masks or truncates Connect values.
        key: the field in the record's key, if the key's converter has a different format.
    """

    field: str
    type: ColumnType
    fallback: Fallback
    fallback_value: Any
    schema: Schema
    form: JsonFormat
    in_value: bool = True
    change: Callable[[Any], Any] | None = None
    key: "ColumnOutput | None" = None

    @property
    def in_key(self) -> "ColumnOutput":
        """The field in the record's key, where values are not masked."""
        return self.key if self.key is not None else replace(self, change=None)

    @property
    def differs_in_key(self) -> bool:
        """Whether the JSON text in the key can differ from that in the value."""
        return self.key is not None or self.change is not None


def template(fields: Sequence[tuple[str, str]]) -> str:
    """Return the source of an f-string that builds a JSON object.

    Args:
        fields: pairs of a field's name and the variable that holds its JSON text.
    """
    inner = ",".join(f"{_literal(string_text(name))}:{{{variable}}}" for name, variable in fields)
    return f"f'{{{{{inner}}}}}'"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")
    # Names may contain any character; a line end would end the f-string.
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in escaped)


def text_expression(output: ColumnOutput, v: str, bind: Bind) -> str:
    """Return the source of an expression: the JSON text of the canonical value in the variable ``v``."""
    if (
        output.change is not None
        or output.type.is_custom  # its schema may have a decimal anywhere
        or (output.schema.is_decimal and output.form.decimal_format == "NUMERIC")
    ):
        return f"{bind(_changed_text(output))}({v})"
    return output.type.expression(v, bind, output.fallback)


def null_text(output: ColumnOutput) -> str:
    """Return the JSON text of null in the record's value, masked like any other value."""
    if output.change is None:
        return output.fallback.text
    return value_text(output.schema.with_optional(True), output.change(output.fallback_value), output.form)


def column_converter(output: ColumnOutput) -> Callable[[Any], Any]:
    """Return a function from a canonical value to the Connect value of the field, with fallback and masking."""
    convert, change = output.type.convert, output.change

    def converted(value: Any) -> Any:
        try:
            result = convert(value)
        except ValueError as error:
            result = output.fallback.on_error(value, error)
        if result is None:
            result = output.fallback_value
        return change(result) if change else result

    return converted


def value_expression(output: ColumnOutput, v: str, bind: Bind) -> str:
    """Return the source of an expression: the converted value of the canonical value in the variable ``v``."""
    if output.type.convert is identity and output.change is None and output.fallback_value is None:
        return v
    return f"{bind(column_converter(output))}({v})"


def null_value(output: ColumnOutput) -> Any:
    """Return the value of null, masked like any other value."""
    return output.change(output.fallback_value) if output.change else output.fallback_value


def tuple_source(variables: Sequence[str]) -> str:
    """Return the source of a tuple of variables."""
    return f"({''.join(f'{variable}, ' for variable in variables)})"


def _changed_text(output: ColumnOutput) -> Callable[[Any], str]:
    converted, schema = column_converter(output), output.schema.with_optional(True)

    def text(value: Any) -> str:
        return value_text(schema, converted(value), output.form)

    return text
