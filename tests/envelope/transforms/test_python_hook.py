"""Transforms that are functions and classes of the user's."""

import sys
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

import rowtide
from rowtide.envelope.schema import BYTES, DECIMAL, FLOAT32, FLOAT64, INT32, INT64, STRING, Schema, struct
from rowtide.envelope.transforms import ConnectRecord, Header, TransformConfigurationError, TransformError
from rowtide.envelope.transforms.python_hook import PythonTransform
from rowtide.envelope.transforms.record import SchemaCache, described
from rowtide.envelope.transforms.validation import check_record
from tests.support.transforms import chain_from_properties

SCHEMA = struct("s.d.t.Value", {"id": INT32})
RECORD = ConnectRecord("s.d.t", None, None, None, SCHEMA, {"id": 1})
HERE = f"python:{__name__}."


def renamed(record: ConnectRecord) -> ConnectRecord:
    return replace(record, topic=f"{record.topic}.copy")


def dropped(_record: ConnectRecord) -> None:
    return None


def twice(record: ConnectRecord) -> Iterator[ConnectRecord]:
    yield record
    yield record.with_content("value", record.value_schema, {"id": record.value["id"] + 1})


def raising(record: ConnectRecord) -> ConnectRecord:
    return record.value["missing"]  # type: ignore[no-any-return]


def exiting(_record: ConnectRecord) -> ConnectRecord:
    sys.exit("done")


class Exiting:
    def __init__(self, _options: dict[str, str]) -> None:
        sys.exit("done")


def wrong(_record: ConnectRecord) -> Any:
    return ["text"]


def changing(record: ConnectRecord) -> ConnectRecord:
    record.value["id"] = 1.9
    return record


def copying(record: ConnectRecord) -> ConnectRecord:
    value = deepcopy(record.value)
    value["tags"].append("b")
    value["inner"]["x"] += 1
    return record.with_content("value", record.value_schema, value)


def number(_record: ConnectRecord) -> Any:
    return 5


class Prefixed:
    def __init__(self, options: dict[str, str]) -> None:
        self.prefix = options["prefix"]

    def apply(self, record: ConnectRecord) -> ConnectRecord:
        return replace(record, topic=self.prefix + record.topic)


not_callable = 5


def records(*types: str, **options: str) -> list[ConnectRecord]:
    names = [f"t{number}" for number in range(len(types))]
    properties = {"transforms": ",".join(names)}
    properties |= {f"transforms.{name}.type": HERE + kind for name, kind in zip(names, types, strict=True)}
    properties |= {f"transforms.t0.{name}": value for name, value in options.items()}
    return chain_from_properties(properties).records(RECORD)


HEADERS = (Header("h", INT32, 1),)
FULL = struct(
    "s.d.t.Value",
    {
        "id": INT32,
        "name": STRING.with_optional(True),
        "big": INT64,
        "ok": Schema("boolean", default=False),
        "price": Schema("bytes", name=DECIMAL, parameters=(("scale", "2"),)),
        "raw": BYTES,
        "rate": FLOAT64,
        "small": FLOAT32,
        "tags": Schema("array", items=STRING),
        "more": Schema("map", keys=STRING, items=INT32),
        "inner": struct("i", {"x": INT32}, optional=True),
    },
)
ROW = {
    "id": 1, "name": None, "big": -(2**63), "ok": None, "price": 150, "raw": b"a", "rate": 0.5, "small": float("inf"),
    "tags": ["a"], "more": {"a": 1}, "inner": {"x": 1},
}  # fmt: skip


def test_values_that_fit_pass() -> None:
    record = RECORD.with_content("value", FULL, ROW).with_headers(HEADERS)
    check_record(record, RECORD, SchemaCache())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"id": 1.9}, "a float for value.id, which is int32"),
        ({"id": True}, "a bool for value.id, which is int32"),
        ({"id": 2**31}, "a number out of range for value.id, which is int32"),
        ({"id": None}, "null for value.id, which is neither optional nor has a default"),
        ({"big": 2**63}, "a number out of range for value.big, which is int64"),
        ({"name": 5}, "an int for value.name, which is string"),
        ({"ok": "false"}, "a str for value.ok, which is boolean"),
        ({"price": 1.5}, "a float for value.price, which is the unscaled number of a Decimal"),
        ({"raw": "a"}, "a str for value.raw, which is bytes"),
        ({"small": 1e39}, "a number out of range for value.small, which is float"),
        ({"rate": 1}, "an int for value.rate, which is double"),
        ({"tags": ["a", 1]}, r"an int for value.tags\[\], which is string"),
        ({"more": {"a": None}}, r"null for value.more\[\], which is neither"),
        ({"inner": {"x": "1"}}, "a str for value.inner.x, which is int32"),
        ({"inner": [1]}, "a list for value.inner, which is struct"),
        ({"new": 1}, "value with new, which its schema lacks"),
    ],
)
def test_a_value_that_would_be_changed_without_a_word_is_an_error(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_record(RECORD.with_content("value", FULL, {**ROW, **changed}), RECORD, SchemaCache())


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"topic": None}, "a record whose topic is not text, or is empty"),
        ({"topic": ""}, "a record whose topic is not text, or is empty"),
        ({"partition": "1"}, "a record whose partition is neither None nor a number"),
        ({"timestamp": -1}, "a record whose timestamp is neither None nor a number"),
        ({"value_schema": None}, r"a record with a value, but without its schema \(value_schema\)"),
        ({"key": 1}, r"a record with a key, but without its schema \(key_schema\)"),
        ({"value_schema": "struct"}, "a record whose value has a str instead of a Schema"),
        ({"headers": {"a": "b"}}, "a record whose headers are a dict instead of a tuple"),
        ({"headers": (("h", None, 1, 2),)}, "something other than Header"),
        ({"headers": (Header("h", INT32, "1"),)}, "a str for header h, which is int32"),
        ({"headers": (Header("h", None, "1"),)}, "a record with a header h, but without its schema"),
    ],
)
def test_a_record_that_cannot_be_written_is_an_error(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        check_record(replace(RECORD, **changed), RECORD, SchemaCache())


def test_the_record_of_a_hook_is_public() -> None:
    assert rowtide.ConnectRecord is ConnectRecord


def test_a_function_returns_one_record_none_or_several() -> None:
    assert [record.topic for record in records("renamed")] == ["s.d.t.copy"]
    assert records("dropped") == []
    assert [record.value for record in records("twice")] == [{"id": 1}, {"id": 2}]
    assert [record.value["id"] for record in records("twice", "twice")] == [1, 2, 2, 3]
    assert records("dropped", "twice") == []


def test_a_record_is_not_changed_in_place() -> None:
    with pytest.raises(TransformError, match="changing raised TypeError") as caught:
        records("changing")
    assert "return another one" in described(caught.value, show_values=True)
    assert RECORD.value == {"id": 1}


@pytest.mark.parametrize(
    "change",
    [
        lambda value: value.update(id=2),
        lambda value: value.setdefault("z", 1),
        lambda value: value.pop("id"),
        lambda value: value.__ior__({"id": 2}),
        lambda value: value["inner"].clear(),
        lambda value: value["tags"].append("b"),
        lambda value: value["tags"].sort(),
        lambda value: value["more"].__delitem__("a"),
    ],
)
def test_nothing_in_a_record_is_changed_in_place(change: Any) -> None:
    with pytest.raises(TransformError, match="raised TypeError"):
        PythonTransform("t", lambda record: change(record.value)).apply(RECORD.with_content("value", FULL, ROW))


def test_a_copy_of_a_value_is_changed() -> None:
    (made,) = PythonTransform("t", copying).apply(RECORD.with_content("value", FULL, ROW)) or ()
    assert made.value == {**ROW, "tags": ["a", "b"], "inner": {"x": 2}}
    assert [type(made.value[name]) for name in ("tags", "inner", "more")] == [list, dict, dict]


def test_a_class_gets_the_options() -> None:
    assert [record.topic for record in records("Prefixed", prefix="x-")] == ["x-s.d.t"]


def test_a_predicate_chooses_the_records_of_a_hook() -> None:
    properties = {
        "transforms": "t",
        "transforms.t.type": f"{HERE}dropped",
        "transforms.t.predicate": "gone",
        "predicates": "gone",
        "predicates.gone.type": "org.apache.kafka.connect.transforms.predicates.RecordIsTombstone",
    }
    chain = chain_from_properties(properties)
    assert chain.records(RECORD) == [RECORD]
    assert chain.records(replace(RECORD, value=None)) == []


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("raising", r"transforms\.t0: a record of topic s\.d\.t: python:.*raising raised KeyError$"),
        ("exiting", r"python:.*exiting raised SystemExit$"),
        ("wrong", r"python:.*wrong returned a str instead of a ConnectRecord"),
        ("number", r"python:.*number returned a int: return a ConnectRecord, several, or None"),
    ],
)
def test_a_hook_that_fails_names_itself_and_the_record(kind: str, message: str) -> None:
    with pytest.raises(TransformError, match=message):
        records(kind)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("nowhere", {}, "cannot be used: AttributeError"),
        ("Exiting", {}, "cannot be used: SystemExit: done"),
        ("Prefixed", {}, "cannot be used: KeyError: 'prefix'"),
        ("not_callable", {}, "is neither a function nor a class"),
        ("renamed", {"a": "b"}, "is a function, which takes no options: a"),
    ],
)
def test_a_wrong_configuration_is_a_problem_of_the_type(kind: str, options: dict[str, str], message: str) -> None:
    with pytest.raises(TransformConfigurationError) as caught:
        records(kind, **options)
    (problem,) = caught.value.problems
    assert problem.property == "transforms.t0.type"
    assert message in problem.message
