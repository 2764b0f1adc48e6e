"""The payloads of outbox events, expanded to structs."""

import json
from typing import Any

import pytest

from rowtide.envelope.name_adjustment import field_name_adjuster
from rowtide.envelope.schema import BYTES, INT32, STRING
from rowtide.envelope.transforms.json_payload import JsonExpander, NotExpandableError

STRINGS = STRING.with_optional(True)


def expanded(text: str, *, exact: bool, keep_nulls: bool = False) -> tuple[dict[str, Any], Any]:
    """The schemas of the fields, of arrays those of their elements, and the value."""
    schema, value = JsonExpander(keep_nulls, str, exact).expand("p", text)
    return {field.name: field.schema.items or field.schema for field in schema.fields}, value


def test_exact_values_keep_arrays_without_a_value() -> None:
    fields, value = expanded('{"a": [], "b": {}, "c": [null, null], "d": ["x"]}', exact=True)
    assert value == {"a": [], "b": {}, "c": [None, None], "d": ["x"]}
    assert (fields["a"], fields["c"], fields["d"]) == (STRINGS, STRINGS, STRINGS)
    assert fields["b"].type == "struct"
    fields, value = expanded('{"a": [null]}', exact=True, keep_nulls=True)
    assert (fields["a"], value) == (BYTES.with_optional(True), {"a": [None]})


@pytest.mark.parametrize("text", ['{"a": [{"n": []}, {"n": [1]}]}', '{"a": [{"n": [1]}, {"n": [null]}, {"n": []}]}'])
def test_another_element_shows_the_type_of_an_array_without_a_value(text: str) -> None:
    fields, value = expanded(text, exact=True)
    (field,) = fields["a"].fields
    assert field.schema.items == INT32.with_optional(True)
    assert [1] in [one["n"] for one in value["a"]]


def without_nulls(value: Any) -> Any:
    """The value without the fields that other objects of the array have."""
    if isinstance(value, dict):
        return {name: without_nulls(one) for name, one in value.items() if one is not None}
    return [without_nulls(one) for one in value] if isinstance(value, list) else value


@pytest.mark.parametrize("keep_nulls", [True, False])
@pytest.mark.parametrize(
    "text",
    [
        '{"a": [{"n": {"x": 1}}, {"n": {"y": "s"}}, {"n": {"x": 2, "z": {}}}, {}]}',
        '{"a": [[{"x": 1}], [], [{"y": [2.5]}, {"y": []}]]}',
        '{"a": [{"n": [{"x": true}]}, {"n": [{"y": 5000000000}]}]}',
        '{"a": [[], [1]], "b": [[[]], [[[]], [["x"]]]], "c": [{"n": []}, {"n": [[1]]}, {"n": [[]]}]}',
    ],
)
def test_exact_values_keep_the_fields_of_all_objects(text: str, *, keep_nulls: bool) -> None:
    _, value = expanded(text, exact=True, keep_nulls=keep_nulls)
    assert without_nulls(value) == json.loads(text)


def test_an_array_of_different_objects_may_have_nulls() -> None:
    fields, value = expanded('{"a": [{"x": 1}, null, {"y": 1}], "b": [{"x": 1}, {"y": 1}]}', exact=True)
    assert (fields["a"].optional, fields["b"].optional) == (True, False)
    assert value["a"] == [{"x": 1, "y": None}, None, {"x": None, "y": 1}]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 12345678901234567890.12}', "more digits than a double"),
        ('{"a": [1e400]}', "more digits than a double"),
        ('{"a": 1} {"b": 2}', "text after"),
        ('{"a-b": 1, "a.b": 2}', "become the field a_b"),
        ('{"a": [{"n": [1]}, {"n": ["s"]}]}', "different types"),
    ],
)
def test_exact_values_keep_a_payload_as_text_that_would_lose_one(text: str, reason: str) -> None:
    with pytest.raises(NotExpandableError, match=reason):
        JsonExpander(False, field_name_adjuster("avro"), True).expand("p", text)


def test_adjusted_names_have_their_values() -> None:
    text = '{"a-b": {"c.d": 1.50}, "l": [{"x-y": 1e2}]}'
    _, value = JsonExpander(False, field_name_adjuster("avro"), True).expand("p", text)
    assert value == {"a_b": {"c_d": 1.5}, "l": [{"x_y": 100.0}]}
    _, value = JsonExpander(False, field_name_adjuster("avro"), False).expand("p", text)
    assert value["a_b"] is None


def test_arrays_without_a_value_as_in_debezium() -> None:
    fields, value = expanded('{"a": [], "b": {}}', exact=False)
    assert (list(fields), value) == (["b"], {"b": {}})
    with pytest.raises(NotExpandableError, match="unknown type"):
        expanded('{"a": [null, null]}', exact=False)
