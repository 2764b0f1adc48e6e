"""The Connect types of text, bytes, ENUM, SET, JSON, UUID and INET."""

import base64
import re
from binascii import b2a_base64

from rowtide.envelope.json.text import base64_text, string_text
from rowtide.envelope.schema import BYTES, STRING, Schema
from rowtide.envelope.settings import Stage, ValueSettings
from rowtide.envelope.types.column_type import (
    Bind,
    ColumnDescription,
    ColumnType,
    Fallback,
    Form,
    Kind,
    call_expression,
    identity,
    via_connect_value,
)

TEXT = ColumnType(STRING, "text", identity, call_expression(string_text), form=Form("string"))


def _base64(value: bytes) -> str:
    return b2a_base64(value, newline=False).decode()


def base64_url_safe(value: bytes) -> str:
    """Return Base64 with ``-``, ``_`` and padding (``binary.handling.mode=base64-url-safe``)."""
    return base64.urlsafe_b64encode(value).decode()


_BINARY = {
    "bytes": ColumnType(BYTES, "bytes", identity, call_expression(base64_text), form=Form("base64")),
    "base64": ColumnType(STRING, "bytes", _base64, call_expression(base64_text), form=Form("base64")),
    "base64-url-safe": ColumnType(
        STRING, "bytes", base64_url_safe, via_connect_value(STRING, base64_url_safe), form=Form("base64 url")
    ),
    "hex": ColumnType(STRING, "bytes", bytes.hex, lambda v, bind, _: f"'\"' + {v}.hex() + '\"'", form=Form("hex")),
}


def binary_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of bytes by ``binary.handling.mode``."""
    return _BINARY[settings.binary_handling_mode]


def labels(column: ColumnDescription) -> tuple[str, ...]:
    """Return the labels of an ENUM or SET without quotes and escapes."""
    return tuple(_unquoted(label) for label in column.enum_values)


_LABEL_ESCAPE = re.compile(r"\\.|''", re.DOTALL)


def _unquoted(label: str) -> str:
    if len(label) >= 2 and label[0] == label[-1] == "'":
        label = label[1:-1]
    return _LABEL_ESCAPE.sub(lambda match: match[0][1], label)


def escaped_label(label: str) -> str:
    """Escape a label for the ``allowed`` parameter, which separates labels by commas."""
    return label.replace("\\", "\\\\").replace(",", "\\,")


def enum_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of ENUM, whose value is a label."""
    allowed = ",".join(escaped_label(label) for label in labels(column))
    schema = Schema("string", name="io.debezium.data.Enum", version=1, parameters=(("allowed", allowed),))
    if stage == "stream" and not settings.canonical:
        # In the stream, Debezium looks up the escaped label by the index in the row event.
        return ColumnType(
            schema,
            "enum",
            escaped_label,
            lambda v, bind, _: f"{bind(string_text)}({bind(escaped_label)}({v}))",
            form=Form("escaped label"),
        )
    return ColumnType(schema, "enum", identity, call_expression(string_text), form=Form("string"))


def set_type(column: ColumnDescription, settings: ValueSettings, stage: Stage) -> ColumnType:
    """Return the type of SET, whose value is a comma-separated list of labels."""
    allowed = ",".join(escaped_label(label) for label in labels(column))
    schema = Schema("string", name="io.debezium.data.EnumSet", version=1, parameters=(("allowed", allowed),))
    return ColumnType(schema, "set", identity, call_expression(string_text), form=Form("string"))


def _semantic_text(name: str, kind: Kind) -> ColumnType:
    return ColumnType(Schema("string", name=name, version=1), kind, identity, call_expression(string_text))


def _json_or_fallback(variable: str, bind: Bind, fallback: Fallback) -> str:
    # Rows that are older than their NOT NULL column have an empty value, which decoders return as None.
    return f"({bind(string_text)}({variable}) if {variable} is not None else {bind(fallback.text)})"


JSON = ColumnType(
    Schema("string", name="io.debezium.data.Json", version=1),
    "json",
    identity,
    _json_or_fallback,
    epoch="{}",
    form=Form("document"),
)
UUID = _semantic_text("io.debezium.data.Uuid", "uuid")
INET = ColumnType(STRING, "inet", identity, call_expression(string_text))
