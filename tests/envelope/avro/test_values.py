"""Avro's schemas and bytes of any Connect schema and value, read back by fastavro."""

import io
import json
from decimal import Decimal
from typing import Any

import fastavro
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.envelope.avro.schemas import AvroFormat, avro_schema_text
from rowtide.envelope.avro.values import avro_encoder
from rowtide.envelope.schema import DECIMAL, INT32, OPTIONAL_STRING, STRING, Field, Schema, struct

RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}
NAMES = st.from_regex(r"[a-z_][a-z0-9_]{0,6}", fullmatch=True)


def read(schema: Schema, data: bytes, form: AvroFormat = AvroFormat()) -> Any:  # noqa: B008 - immutable
    parsed = fastavro.parse_schema(json.loads(avro_schema_text(schema, form)))
    return fastavro.schemaless_reader(io.BytesIO(data), parsed, None)


@st.composite
def typed(draw: st.DrawFn, depth: int = 2) -> tuple[Schema, Any]:
    """A schema and a value of it."""
    optional = draw(st.booleans())
    kind = draw(
        st.sampled_from([*RANGES, "boolean", "string", "bytes", "double", "decimal", *(["struct", "array"] * depth)])
    )
    if kind in RANGES:
        schema = Schema(kind, optional=optional)
        value = draw(st.integers(-(1 << RANGES[kind]), (1 << RANGES[kind]) - 1))
    elif kind == "decimal":
        schema = Schema("bytes", optional, DECIMAL, 1, (("scale", "2"), ("connect.decimal.precision", "65")))
        value = draw(st.integers(-(10**64), 10**64))
    elif kind == "struct":
        members = draw(st.dictionaries(NAMES, typed(depth=depth - 1), max_size=4))  # type: ignore[arg-type]
        name = f"a.b{draw(st.integers(0, 10**9))}.S{draw(st.integers(0, 10**9))}"
        schema = Schema("struct", optional, name, fields=tuple(Field(one, of) for one, (of, _) in members.items()))
        value = {one: member for one, (_, member) in members.items()}
    elif kind == "array":
        items, one = draw(typed(depth=0))
        schema, value = Schema("array", optional, items=items), [one] * draw(st.integers(0, 3))
    else:
        schema = Schema(kind, optional)
        texts = st.text(st.characters(exclude_categories=["Cs"]))
        value = draw(
            {"boolean": st.booleans(), "string": texts, "bytes": st.binary(), "double": st.floats(allow_nan=False)}[
                kind
            ]
        )
    return schema, None if optional and draw(st.booleans()) else value


def expected(schema: Schema, value: Any) -> Any:
    if value is None:
        return None
    if schema.is_decimal:
        return Decimal(value).scaleb(-2)
    if schema.type == "struct":
        return {field.name: expected(field.schema, value[field.name]) for field in schema.fields}
    if schema.type == "array":
        assert schema.items is not None
        return [expected(schema.items, item) for item in value]
    return value


@given(typed())
@settings(max_examples=300, deadline=None)
def test_another_reader_gets_the_same_value(case: tuple[Schema, Any]) -> None:
    import decimal

    schema, value = case
    with decimal.localcontext(prec=100):
        assert read(schema, avro_encoder(schema)(value)) == expected(schema, value)


WITH_DEFAULT = struct("t", {"n": Schema("int32", optional=True, default=7), "m": Schema("int32", default=8)})


def test_null_stays_null_unless_the_default_replaces_it() -> None:
    assert read(WITH_DEFAULT, avro_encoder(WITH_DEFAULT)({"n": None, "m": None})) == {"n": None, "m": 8}
    replacing = AvroFormat(replace_null_with_default=True)
    assert read(WITH_DEFAULT, avro_encoder(WITH_DEFAULT, replacing)({"n": None, "m": 1}), replacing) == {"n": 7, "m": 1}


def test_a_null_that_is_not_allowed_names_its_field() -> None:
    nested = struct("o", {"row": struct("r", {"id": INT32})})
    with pytest.raises(ValueError, match="field 'row' of o: field 'id' of r: null for a value of type int32"):
        avro_encoder(nested)({"row": {"id": None}})


def test_a_lone_surrogate_becomes_a_question_mark_as_in_java() -> None:
    one = struct("t", {"s": STRING})
    assert read(one, avro_encoder(one)({"s": "a\ud800b"})) == {"s": "a?b"}


def test_an_optional_field_has_null_as_its_default() -> None:
    (field,) = json.loads(avro_schema_text(struct("t", {"s": OPTIONAL_STRING})))["fields"]
    assert field == {"name": "s", "type": ["null", "string"], "default": None}


def test_two_structs_of_one_name_are_refused() -> None:
    twice = struct("o", {"a": struct("x.r", {"id": INT32}), "b": struct("x.r", {"id": STRING})})
    with pytest.raises(ValueError, match=r"two different structs have the name x\.r"):
        avro_schema_text(twice)


def test_comments_can_be_those_of_fields_too() -> None:
    one = struct("t", {"s": Schema("string", optional=True, default="x", doc="a comment")})
    (field,) = json.loads(avro_schema_text(one, AvroFormat(discard_type_doc_default=True)))["fields"]
    kind = {"type": "string", "connect.doc": "a comment", "connect.default": "x"}
    assert field == {"name": "s", "type": [kind, "null"], "doc": "a comment", "default": "x"}
