"""Messages without schemas: columns from given schemas, and from a look at the JSON for the rest.

JSON tells numbers, text and truth values apart and no more. A date is a number of days, a decimal is base64 text: only
a given schema makes them what they are. What is not given is read as JSON shows it.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import DataFrame

from rowtide.spark_consumers.columns.conversion import Column, ConverterSettings
from rowtide.spark_consumers.errors import NotAnEnvelopeError
from rowtide.spark_consumers.messages.versions import KeyVersion, ValueVersion, key_version, value_version

_NUMBERS = {"BIGINT": ("bigint", "BIGINT"), "BOOLEAN": ("boolean", "BOOLEAN"), "DOUBLE": ("double", "DOUBLE")}
_TOKEN = re.compile(r"`(?:[^`]|``)*`|[<>(),:]|[^<>(),:`]+")


def key_without_schema(
    records: DataFrame, names: tuple[str, ...] | None, given: Mapping[str, Any] | None, form: ConverterSettings
) -> KeyVersion:
    """The schema of keys with these fields; of no key if there are none."""
    if names is None:
        return KeyVersion(None)
    known = {column.name: column for column in key_version(None, given, form).columns} if given else {}
    if not known.keys() >= set(names):
        same = f"json_object_keys(key) = array({', '.join(_text(name) for name in names)})"
        known = {**_inferred(records.where(f"key_version IS NULL AND {same}"), "key"), **known}
    return KeyVersion(None, tuple(known[name] for name in names if name in known))


def value_without_schema(
    records: DataFrame, given: Mapping[str, Any] | None, form: ConverterSettings, topic: str
) -> ValueVersion:
    """The schema of envelopes without one."""
    plain = records.where("value_version IS NULL AND value IS NOT NULL AND op <> 't'")
    found = _inferred(plain, "coalesce(get_json_object(value, '$.after'), get_json_object(value, '$.before'))")
    if not found:
        raise NotAnEnvelopeError(
            f"topic {topic}: the records have neither before nor after. Leave it out with --topics"
        )
    if given:
        known = value_version(None, given, form, topic).columns
        names = {column.name for column in known}
        return ValueVersion(None, (*known, *(column for name, column in found.items() if name not in names)))
    return ValueVersion(None, tuple(found.values()))


def _text(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"


def _inferred(records: DataFrame, expression: str) -> dict[str, Column]:
    row = records.selectExpr(f"schema_of_variant_agg(parse_json({expression})) AS found").collect()[0]
    return {name: _column(name, kind) for name, kind in object_fields(row["found"] or "") if kind != "VOID"}


def _column(name: str, kind: str) -> Column:
    if kind.startswith("DECIMAL"):
        # A number with a fraction: decimals travel as text, so it is floating point. Integers beyond 64 bits are rare.
        return Column(name, "double", "DOUBLE", inexact=True)
    column_type, wire = _NUMBERS.get(kind, ("string", "STRING"))
    return Column(name, column_type, wire)


def object_fields(text: str) -> Iterator[tuple[str, str]]:
    """Names and types in ``OBJECT<a: BIGINT, b: ARRAY<DOUBLE>>``, Spark's name for the shape of a variant."""
    tokens = _TOKEN.findall(text)
    if tokens[:2] != ["OBJECT", "<"]:
        return
    depth, name, kind = 0, "", ""
    for token in tokens[2:]:
        if depth == 0 and token == ":":
            name, kind = kind.strip(), ""
        elif depth == 0 and token in {",", ">"}:
            if name:
                yield _unquoted(name), kind.strip()
            name, kind = "", ""
        else:
            depth += (token in {"<", "("}) - (token in {">", ")"})
            kind += token


def _unquoted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
