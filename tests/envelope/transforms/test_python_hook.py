"""Transforms that are functions and classes of the user's."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import rowtide
from rowtide.envelope.schema import INT32, struct
from rowtide.envelope.transforms import ConnectRecord, TransformConfigurationError, TransformError
from rowtide.envelope.transforms.chain import chain_from_properties

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


def wrong(_record: ConnectRecord) -> Any:
    return ["text"]


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


def test_the_record_of_a_hook_is_public() -> None:
    assert rowtide.ConnectRecord is ConnectRecord


def test_a_function_returns_one_record_none_or_several() -> None:
    assert [record.topic for record in records("renamed")] == ["s.d.t.copy"]
    assert records("dropped") == []
    assert [record.value for record in records("twice")] == [{"id": 1}, {"id": 2}]
    assert [record.value["id"] for record in records("twice", "twice")] == [1, 2, 2, 3]
    assert records("dropped", "twice") == []


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
        ("raising", r"transforms\.t0: a record of topic s\.d\.t: python:.*raising raised KeyError: 'missing'"),
        ("wrong", r"python:.*wrong returned a str instead of a ConnectRecord"),
    ],
)
def test_a_hook_that_fails_names_itself_and_the_record(kind: str, message: str) -> None:
    with pytest.raises(TransformError, match=message):
        records(kind)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("nowhere", {}, "cannot be used: AttributeError"),
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
