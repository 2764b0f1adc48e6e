"""Rows as dataclasses and pydantic models: what fits, and what is refused with a way out."""

from __future__ import annotations

import dataclasses
import datetime as dt
import decimal
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Literal, NewType

import pydantic
import pytest

import rowtide
from rowtide.connector.records.typed_rows import typed_row

if TYPE_CHECKING:
    from somewhere import Unknown

ROW: dict[str, Any] = {"id": 7, "name": "Anna", "born": dt.date(1980, 1, 2), "class": "a", "added": 1}


@dataclasses.dataclass
class Person:
    id: int
    name: str | None
    born: dt.date | None
    class_: Annotated[Literal["a", "b"], "a comment"] = dataclasses.field(metadata={"column": "class"})
    score: float = 0.5
    tags: list[str] = dataclasses.field(default_factory=list)
    seen: bool = dataclasses.field(init=False, default=False)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(populate_by_name=True)

    id: int
    name: str | None
    born: dt.date | None
    class_: Literal["a", "b"] = pydantic.Field(alias="class")
    score: float = 0.5


@dataclasses.dataclass
class Strict:
    id: int
    born: dt.date


class StrictModel(pydantic.BaseModel):
    id: int
    born: dt.date


@dataclasses.dataclass
class Loose:
    id: int | rowtide.Unavailable
    born: dt.date | str
    name: Any


def made(cls: type[Any], **changes: Any) -> Any:
    return typed_row(cls, ROW | changes, "shop.people")


def refused(cls: type[Any], row: Mapping[str, Any] | None = None, **changes: Any) -> str:
    with pytest.raises(rowtide.RowTypeError) as error:
        typed_row(cls, ROW | changes if row is None else row, "shop.people")
    return str(error.value)


@pytest.mark.parametrize("cls", [Person, Model])
def test_a_row_becomes_an_object(cls: type[Any]) -> None:
    person = made(cls, score=2)
    assert (person.id, person.name, person.born, person.class_) == (7, "Anna", dt.date(1980, 1, 2), "a")
    assert person.score == 2
    assert made(cls).score == 0.5, "a column that was added later has the field's default"


@pytest.mark.parametrize("cls", [Person, Model])
def test_null_and_dates_that_python_lacks_are_none(cls: type[Any]) -> None:
    assert made(cls, name=None).name is None
    assert made(cls, born="0000-00-00").born is None


@pytest.mark.parametrize("cls", [Strict, StrictModel])
def test_a_field_that_takes_no_none_refuses_dates_that_python_lacks(cls: type[Any]) -> None:
    text = refused(cls, born="0000-00-00")
    assert "column born of shop.people is 0000-00-00 in this row, a date that Python cannot represent" in text
    assert "Declare born so that it accepts None, or str for the text" in text


@pytest.mark.parametrize("cls", [Strict, StrictModel])
def test_an_unavailable_column_is_not_a_value(cls: type[Any]) -> None:
    text = refused(cls, id=rowtide.UNAVAILABLE)
    assert "not in the binlog for this row (rowtide.UNAVAILABLE)" in text
    assert "binlog_row_image=FULL" in text


def test_a_field_may_take_them() -> None:
    row = typed_row(Loose, {"id": rowtide.UNAVAILABLE, "born": "0000-00-00", "name": 5}, "t")
    assert (row.id, row.born, row.name) == (rowtide.UNAVAILABLE, "0000-00-00", 5)


def test_values_of_other_types_are_refused() -> None:
    assert "is NULL in this row, which Person does not accept. Declare id so that it accepts None" in refused(
        Person, id=None
    )
    assert "is a str in this row" in refused(Person, id="7")
    assert "is a Decimal in this row" in refused(Person, score=decimal.Decimal(1))
    text = refused(Model, id=None)
    assert "a row of shop.people is not a Model" in text
    assert "valid integer" in text


@pytest.mark.parametrize("cls", [Person, Model])
def test_a_column_that_is_gone_needs_a_default(cls: type[Any]) -> None:
    text = refused(cls, {"id": 7, "born": None, "class": "a"})
    assert f"shop.people has no column name here, which {cls.__name__} needs; it has id, born, class" in text
    assert "give its field a default" in text


@pytest.mark.parametrize("cls", [dict, int, "Person", Person(1, "a", None, "a")])
def test_other_classes_are_refused(cls: Any) -> None:
    with pytest.raises(rowtide.EngineTypeError, match="a dataclass or a pydantic model is needed, not "):
        typed_row(cls, ROW, "t")


def test_the_errors_of_a_class_stay_as_they_are() -> None:
    @dataclasses.dataclass
    class Checked:
        id: int

        def __post_init__(self) -> None:
            raise ArithmeticError(self.id)

    with pytest.raises(ArithmeticError):
        typed_row(Checked, ROW, "t")


Identifier = NewType("Identifier", int)


@dataclasses.dataclass
class Postponed:
    """Its annotations are texts, of which one cannot be evaluated."""

    id: Identifier
    name: Unknown | None = None
    born: dataclasses.InitVar[dt.date | None] = None

    def __post_init__(self, born: dt.date | None) -> None:
        self.year = None if born is None else born.year


def test_every_annotation_counts_that_can_be_evaluated() -> None:
    assert (made(Postponed).name, made(Postponed).year) == ("Anna", 1980)
    for changes in ({"id": None}, {"id": "7"}, {"born": 5}):
        with pytest.raises(rowtide.RowTypeError, match=f"column {next(iter(changes))} of shop.people is"):
            made(Postponed, **changes)


def test_a_literal_takes_its_values_only() -> None:
    with pytest.raises(rowtide.RowTypeError, match="is a str in this row that is not one of the literals"):
        made(Person, **{"class": "c"})
    with pytest.raises(rowtide.RowTypeError, match="Input should be 'a' or 'b'"):
        made(Model, **{"class": "c"})


def test_an_annotation_that_is_wrong_is_an_error_of_the_class() -> None:
    @dataclasses.dataclass
    class Wrong:
        id: dt.nothing  # type: ignore[name-defined]

    with pytest.raises(rowtide.EngineTypeError, match=r"annotations of Wrong cannot be evaluated: .* 'nothing'"):
        made(Wrong)


class ByName(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(validate_by_alias=False, validate_by_name=True)

    number: int = pydantic.Field(0, alias="id")


class Generated(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(alias_generator=str.upper)

    number: int = pydantic.Field(0, validation_alias=pydantic.AliasChoices("id2", "id"))
    name: str = ""
    a: int = pydantic.Field(0, validation_alias=pydantic.AliasPath("document", "a"))


def test_a_default_never_hides_the_column_of_an_alias() -> None:
    assert made(ByName).number == 7
    row = made(Generated, document={"a": 5})
    assert (row.number, row.name, row.a) == (7, "Anna", 5)
