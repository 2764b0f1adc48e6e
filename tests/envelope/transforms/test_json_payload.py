"""The payloads of outbox events, expanded to structs."""

from typing import Any

import pytest

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


def test_arrays_without_a_value_as_in_debezium() -> None:
    fields, value = expanded('{"a": [], "b": {}}', exact=False)
    assert (list(fields), value) == (["b"], {"b": {}})
    with pytest.raises(NotExpandableError, match="unknown type"):
        expanded('{"a": [null, null]}', exact=False)
