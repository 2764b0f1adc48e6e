"""The text of a Protobuf schema as Square's Wire writes it, which Confluent's converter registers."""

from rowtide.envelope.json.text import decimal_scale
from rowtide.envelope.protobuf.messages import FieldType, MessageType, ProtobufFile
from rowtide.envelope.schema import DECIMAL

_PRECISION = "64"

WRAPPERS_FILE = """syntax = "proto3";
package google.protobuf;

option java_package = "com.google.protobuf";
option java_outer_classname = "WrappersProto";
option java_multiple_files = true;
option go_package = "google.golang.org/protobuf/types/known/wrapperspb";
option cc_enable_arenas = true;
option objc_class_prefix = "GPB";
option csharp_namespace = "Google.Protobuf.WellKnownTypes";

""" + "".join(
    f'message {name}Value {{\n  {kind} value = 1 [json_name = "value"];\n}}\n'
    for name, kind in (
        ("Double", "double"),
        ("Float", "float"),
        ("Int64", "int64"),
        ("UInt64", "uint64"),
        ("Int32", "int32"),
        ("UInt32", "uint32"),
        ("Bool", "bool"),
        ("String", "string"),
        ("Bytes", "bytes"),
    )
)
"""The schema of keys and values that are not structs: Google's file of wrapper messages."""


def protobuf_text(file: ProtobufFile) -> str:
    """Return the text of a schema."""
    parts = ['syntax = "proto3";\n']
    if file.package:
        parts.append(f"package {file.package};\n")
    if file.imports:
        parts += ["\n", *(f'import "{name}";\n' for name in file.imports)]
    parts += ["\n", _message(file.message)]
    return "".join(parts)


def _message(message: MessageType) -> str:
    body = "".join(map(_field, message.fields))
    inner = "".join(map(_message, message.messages))
    if inner:
        body += f"\n{inner}"
    return f"message {message.name} {{\n{_indented(body)}}}\n" if body else f"message {message.name} {{}}\n"


def _indented(text: str) -> str:
    return "".join(f"  {line}\n" for line in text.splitlines())


def _field(field: FieldType) -> str:
    label = "repeated " if field.repeated else "optional " if field.explicit else ""
    options = _options(field)
    lines = _indented(",\n".join(options))
    shown = f" [{options[0]}]" if len(options) == 1 else f" [\n{lines}]" if options else ""
    return f"{label}{field.type} {field.name} = {field.number}{shown};\n"


def _options(field: FieldType) -> list[str]:
    found = ["deprecated = false"] if field.explicit else []
    element = field.element
    if element.name == DECIMAL and field.scalar is None:
        precision = dict(element.parameters).get("connect.decimal.precision", _PRECISION)
        pairs = (("value", precision, "key", "precision"), ("value", str(decimal_scale(element)), "key", "scale"))
        found.append(_params(pairs))
    elif element.type in {"int8", "int16"}:
        found.append(_params((("key", "connect.type", "value", element.type),)))
    return found


def _params(pairs: tuple[tuple[str, str, str, str], ...]) -> str:
    entries = ",\n".join(f'    {{\n      {a}: "{b}",\n      {c}: "{d}"\n    }}' for a, b, c, d in pairs)
    return f"(confluent.field_meta) = {{\n  params: [\n{entries}\n  ]\n}}"
