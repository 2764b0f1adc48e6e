"""JSON of schemas and values: recorded from Kafka Connect, and round trips of generated ones."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.envelope.json.java_numbers import to_float32
from rowtide.envelope.json.reader import NotConnectJsonError, parse_schema, parse_value
from rowtide.envelope.json.text import JsonFormat, enveloped_text, schema_text, string_text, value_text
from rowtide.envelope.schema import DECIMAL, FLOAT32, INT32, INT64, STRING, Field, Schema, struct
from tests.support.recordings.enveloped import parse_enveloped

RECORDED = sorted(Path(__file__).parents[2].glob("golden/*/golden/records.jsonl.gz"))


def enveloped_texts(path: Path) -> Iterator[str]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            for text in (record["key"], record["value"]):
                if text is not None and text.startswith('{"schema":{'):
                    yield text


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.parts[-3])
def test_recorded_keys_and_values_are_parsed_and_written_byte_for_byte(path: Path) -> None:
    config = json.loads((path.parents[1] / "case.json").read_text()).get("config", {})
    nulls = config.get("value.converter.replace.null.with.default") == "false"
    form = JsonFormat(replace_null_with_default=not nulls)
    for text in enveloped_texts(path):
        schema, value = parse_enveloped(text)
        assert schema is not None
        assert enveloped_text(schema, value, form) == text


# Recorded from Jackson 2.21.2 through JsonConverter 4.3.1.
@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("\x00\x07\b\t\n\x0b\f\r\x0e\x1f", r'"\u0000\u0007\b\t\n\u000B\f\r\u000E\u001F"'),
        ('"\\/\x7f\x80\x9f', '"\\"\\\\/\x7f\x80\x9f"'),
        ("\\u000b", '"\\\\u000b"'),
        ("\u2028\u2029é\ufeff\uffff", '"\u2028\u2029é\ufeff\uffff"'),
        ("😀", r'"\uD83D\uDE00"'),
        ("a\ud83db", r'"a\uD83Db"'),
        ("a\ude00\x0b", r'"a\uDE00\u000B"'),
        ("", '""'),
    ],
)
def test_a_string_is_escaped_like_jackson(text: str, literal: str) -> None:
    assert string_text(text) == literal


@given(st.text(st.characters(codec=None)))
def test_a_string_literal_is_parsed_to_the_same_string(text: str) -> None:
    paired = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    assert json.loads(string_text(text)) == paired
    string_text(text).encode()


NESTED = Schema(
    "map", optional=True, name="n", version=3, doc="d", parameters=(("z", "1"), ("a", "2")), keys=INT32, items=STRING,
    default={5: "a", 4: "b"},
)  # fmt: skip
DECIMAL_2 = Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", "2"),), default=150)


# Recorded from JsonConverter 4.3.1.
@pytest.mark.parametrize(
    ("schema", "value", "form", "text"),
    [
        (
            NESTED,
            {5: "a", 4: "b"},
            JsonFormat(),
            (
                '{"schema":{"type":"map","keys":{"type":"int32","optional":false},"values":{"type":"string","optional":false},'
                '"optional":true,"name":"n","version":3,"doc":"d","parameters":{"z":"1","a":"2"},"default":[[5,"a"],[4,"b"]]},'
                '"payload":[[5,"a"],[4,"b"]]}'
            ),
        ),
        (
            Schema("map", keys=STRING, items=INT32),
            {"b": 1, "a": 2},
            JsonFormat(),
            (
                '{"schema":{"type":"map","keys":{"type":"string","optional":false},"values":{"type":"int32","optional":false},'
                '"optional":false},"payload":{"b":1,"a":2}}'
            ),
        ),
        (
            DECIMAL_2,
            -200,
            JsonFormat(decimal_format="NUMERIC"),
            (
                '{"schema":{"type":"bytes","optional":false,"name":"org.apache.kafka.connect.data.Decimal","version":1,'
                '"parameters":{"scale":"2"},"default":1.50},"payload":-2.00}'
            ),
        ),
        (
            struct(None, {"a": Schema("int32", optional=True, default=5), "b": Schema("bytes", optional=True)}),
            {},
            JsonFormat(),
            (
                '{"schema":{"type":"struct","fields":[{"type":"int32","optional":true,"default":5,"field":"a"},'
                '{"type":"bytes","optional":true,"field":"b"}],"optional":false},"payload":{"a":5,"b":null}}'
            ),
        ),
    ],
)
def test_schemas_and_values_are_written_like_json_converter(
    schema: Schema, value: Any, form: JsonFormat, text: str
) -> None:
    assert enveloped_text(schema, value, form) == text
    read, payload = parse_enveloped(text)
    assert enveloped_text(read or schema, payload, form) == text


def test_null_stays_null_without_replace_null_with_default() -> None:
    schema = Schema("int32", optional=True, default=5)
    assert value_text(schema, None) == "5"
    assert value_text(schema, None, JsonFormat(replace_null_with_default=False)) == "null"


def test_null_in_a_required_field_is_an_error_with_its_name() -> None:
    schema = struct("s.Value", {"inner": struct("t", {"id": INT64})})
    with pytest.raises(ValueError, match=r"field 'inner' of s\.Value: field 'id' of t: null for a value of type int64"):
        value_text(schema, {"inner": {}})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", 'must be an object with a "type"'),
        ('{"type":"int128"}', "unknown schema type 'int128'"),
        ('{"type":"array"}', "type array lacks 'items'"),
        ('{"type":"struct"}', "type struct lacks 'fields'"),
        ('{"type":"int32","default":"x"}', "'x' is not an integer"),
        ("{", "not JSON"),
    ],
)
def test_an_invalid_schema_is_an_error(text: str, message: str) -> None:
    with pytest.raises(NotConnectJsonError, match=message):
        parse_schema(text)


@pytest.mark.parametrize(
    ("schema", "text", "message"),
    [
        (INT32, "1.5", "is not an integer"),
        (INT32, "true", "True is not an integer"),
        (STRING, "5", "5 is not a str"),
        (Schema("bytes"), '"?"', "not a value of type bytes"),
        (Schema("struct", fields=(Field("a", INT32),)), "[]", "not a value of type struct"),
        (DECIMAL_2, "1.234", "more than 2 fractional digits"),
    ],
)
def test_a_value_of_another_schema_is_an_error(schema: Schema, text: str, message: str) -> None:
    with pytest.raises(NotConnectJsonError, match=message):
        parse_value(schema, text)


def values_of(schema: Schema) -> st.SearchStrategy[Any]:
    kinds: dict[str, st.SearchStrategy[Any]] = {
        "int64": st.integers(-(2**63), 2**63 - 1),
        "double": st.floats(min_value=-1e15, max_value=1e15),
        "float": st.floats(min_value=-1e6, max_value=1e6).map(to_float32),
        "boolean": st.booleans(),
        "string": st.text(),
        "bytes": st.integers(-(10**70), 10**70) if schema.is_decimal else st.binary(),
    }
    if schema.type == "struct":
        values = st.fixed_dictionaries({field.name: values_of(field.schema) for field in schema.fields})
    elif schema.items is not None:
        items = values_of(schema.items)
        values = (
            st.lists(items, max_size=4)
            if schema.keys is None
            else st.dictionaries(values_of(schema.keys), items, max_size=4)
        )
    else:
        values = kinds[schema.type]
    return st.one_of(st.none(), values) if schema.optional else values


def schemas() -> st.SearchStrategy[Schema]:
    scalars = st.one_of(
        st.builds(
            Schema,
            st.sampled_from(["int64", "double", "float", "boolean", "string", "bytes"]),
            optional=st.booleans(),
            name=st.none() | st.text(),
            version=st.none() | st.integers(1, 9),
            parameters=st.dictionaries(st.text(), st.text(), max_size=2).map(lambda found: tuple(found.items())),
            doc=st.none() | st.text(),
        ),
        st.just(DECIMAL_2),
    )
    return st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.builds(Schema, st.just("array"), optional=st.booleans(), items=inner),
            st.builds(Schema, st.just("map"), keys=st.sampled_from([STRING, INT64]), items=inner),
            st.dictionaries(st.text(), inner, max_size=4).map(lambda fields: struct(None, fields, optional=True)),
        ),
        max_leaves=8,
    )


@given(st.data())
def test_every_schema_and_value_are_parsed_again(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    assert parse_schema(schema_text(schema)) == schema
    value = data.draw(values_of(schema))
    assert parse_value(schema, value_text(schema, value)) == value
    numeric = JsonFormat(decimal_format="NUMERIC")
    assert parse_value(schema, value_text(schema, value, numeric)) == value


def test_nan_and_infinity_are_parsed_again() -> None:
    assert parse_value(FLOAT32, '"Infinity"') == float("inf")
    assert value_text(FLOAT32, parse_value(FLOAT32, '"NaN"')) == '"NaN"'


def test_a_number_is_rounded_once_to_a_float() -> None:
    above = "1.00000005960464477539062501"  # rounded to a double first, this is a tie
    assert parse_value(FLOAT32, above) == 1 + 2**-23
