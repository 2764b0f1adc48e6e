"""Post-processors in Python, and the configuration of all."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from rowtide.envelope.post_processors import (
    RESELECT,
    PythonPostProcessor,
    ReselectOptions,
    first_failures,
    post_processors,
)
from rowtide.envelope.schema import INT32, STRING
from rowtide.envelope.transforms import ConnectRecord, Plugin, TransformConfigurationError
from rowtide.envelope.transforms.record import described
from rowtide.testing import change


class Upper:
    """Changes the case of a column, and remembers what it was told."""

    options: dict[str, str]
    closed = 0

    def configure(self, options: dict[str, str]) -> None:
        self.options = options

    def apply(self, key: Any, value: dict[str, Any]) -> None:
        assert key is None or "id" in key
        if value["after"] is not None:
            value["after"]["name"] = value["after"]["name"].upper()

    def close(self) -> None:
        Upper.closed += 1


class Wrong:
    """Does what it must not."""

    def apply(self, key: Any, value: dict[str, Any]) -> Any:
        match value["after"]["name"]:
            case "raises":
                raise KeyError("raises")
            case "returns":
                return value
            case "type":
                value["after"]["name"] = 7
            case "field":
                value["after"]["other"] = "x"
            case "key":
                key["id"] = 2
        return None

    def close(self) -> None:
        sys.exit("cannot be closed")


class Nothing:
    """Has no method of a post-processor."""


def processor(of: type, options: dict[str, str] | None = None) -> PythonPostProcessor:
    (made,) = post_processors([Plugin("p", f"python:{__name__}.{of.__name__}", options or {})])
    assert isinstance(made, PythonPostProcessor)
    return made


def record(name: str, *, deleted: bool = False) -> ConnectRecord:
    row = {"id": 1, "name": name}
    return change({"id": INT32, "name": STRING}, key=("id",), **{"before" if deleted else "after": row})  # type: ignore[arg-type]


def test_a_class_in_python_changes_the_value_in_place() -> None:
    made, given = processor(Upper, {"a.b": "c"}), [record("a"), record("b"), record("c", deleted=True)]
    assert first_failures([made], given) == {}
    assert [one.value["after"] for one in given] == [{"id": 1, "name": "A"}, {"id": 1, "name": "B"}, None]
    made.close()
    assert Upper.closed == 1


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "raises",
            f"p: a record of topic server.shop.orders: python:{__name__}.Wrong raised KeyError",
        ),
        ("returns", "returned a dict: change the value in place instead"),
        ("type", "left an int for value.after.name, which is string"),
        ("field", "other"),
        ("key", "raised TypeError"),
    ],
)
def test_what_a_class_does_wrong_is_an_error_of_that_record_only(name: str, message: str) -> None:
    given = [record("right"), record(name), record("right")]
    failures = first_failures([processor(Wrong), processor(Upper)], given)
    assert list(failures) == [1]
    assert message in described(failures[1], show_values=True)
    assert [one.value["after"]["name"] for one in given[::2]] == ["RIGHT", "RIGHT"]


def test_a_failing_close_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    processor(Wrong).close()
    assert f"p: close() of python:{__name__}.Wrong failed" in caplog.text


def test_records_without_rows_are_not_processed() -> None:
    heartbeat = ConnectRecord("heartbeat", None, None, None, STRING, "x")
    tombstone = ConnectRecord("server.shop.orders", None, INT32, 1, None, None)
    assert first_failures([processor(Wrong)], [heartbeat, tombstone]) == {}


@pytest.mark.parametrize(
    ("type_", "options", "problem", "message"),
    [
        ("", {}, "p.type", "is required"),
        ("com.acme.Mine", {}, "p.type", "runs no classes in Java: write a class in Python"),
        ("a.ReselectColumnsPostProcesor", {}, "p.type", f"did you mean {RESELECT}?"),
        ("python:nosuchmodule.Class", {}, "p.type", "No module named 'nosuchmodule'"),
        (f"python:{__name__}.Nothing", {}, "p.type", "is not a class with a method apply(key, value)"),
        (f"python:{__name__}.Wrong", {"x": "y"}, "p.type", "has no method configure, which takes x"),
        (RESELECT, {"reselect.null.values": "yes"}, "p.reselect.null.values", "must be true or false"),
        (RESELECT, {"reselect.columns.include.list": "("}, "p.reselect.columns.include.list", "("),
        (
            RESELECT,
            {"reselect.error.handling.mode": "x"},
            "p.reselect.error.handling.mode",
            "one of warn, fail",
        ),
        (RESELECT, {"reselect.cache.enabled": "true"}, "p.reselect.cache.enabled", "this option does not exist"),
    ],
)
def test_mistakes_are_problems_of_their_properties(
    type_: str, options: dict[str, str], problem: str, message: str
) -> None:
    with pytest.raises(TransformConfigurationError) as caught:
        post_processors([Plugin("p", type_, options)])
    assert [one.property for one in caught.value.problems] == [problem]
    assert message in caught.value.problems[0].message


def test_the_options_of_reselect_columns_have_debeziums_defaults() -> None:
    (made,) = post_processors([Plugin("p", RESELECT, {})])
    assert isinstance(made, ReselectOptions)
    assert (made.unavailable_values, made.null_values, made.use_event_key, made.fails) == (True, True, False, False)
    assert made.columns.selects("shop.orders:note")
    (made,) = post_processors([Plugin("p", RESELECT, {"reselect.columns.exclude.list": "shop.orders:NOTE,a.b:c"})])
    assert isinstance(made, ReselectOptions)
    assert not made.columns.selects("shop.orders:note")
