"""Converts rows to objects of a user's class: a dataclass or a pydantic model."""

import dataclasses
import datetime as dt
import inspect
import types
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from rowtide.connector.errors import EngineTypeError, RowTypeError
from rowtide.connector.records.unavailable import Unavailable

T = TypeVar("T")

COLUMN = "column"
"""The key of a dataclass field's metadata with the name of its column, if that is not the field's name."""
_DATES = (dt.date, dt.datetime)
_WRONG_CLASS = "a dataclass or a pydantic model is needed, not {!r}"


class _Field(NamedTuple):
    """A field of a class.

    Attributes:
        name: the keyword of its value.
        columns: the possible columns; the first one in the row applies.
        required: whether it has no default.
        takes: the classes of values that it accepts; ``None`` for all.
        literals: the values of other classes that it takes.
        nullable: whether it takes ``None``.
        checked: whether the class itself checks the value.
    """

    name: str
    columns: tuple[str, ...]
    required: bool
    takes: tuple[type, ...] | None
    literals: tuple[Any, ...]
    nullable: bool
    checked: bool

    @property
    def invalid_dates(self) -> bool:
        """Whether it has dates, but no text for those that do not exist."""
        return self.takes is not None and str not in self.takes and any(kind in self.takes for kind in _DATES)


def typed_row(cls: type[T], row: Mapping[str, Any], table: str) -> T:
    """Make an object of a class from the columns of a row.

    Args:
        cls: a dataclass, or a pydantic model. Columns that it lacks are ignored.
        row: the values by column.
        table: the name of the table, for errors.

    Raises:
        EngineTypeError: the class is neither.
        RowTypeError: the row lacks a column, or has a value that a field does not accept.
    """
    if not isinstance(cls, type):
        raise EngineTypeError(_WRONG_CLASS.format(cls))
    is_model, fields = _plan(cls)  # type: ignore[arg-type]  # a class is hashable
    values: dict[str, Any] = {}
    for field in fields:
        for column in field.columns:
            if column in row:
                break
        else:
            if not field.required:
                continue
            raise RowTypeError(
                f"{table} has no column {' or '.join(field.columns)} here, which {cls.__name__} needs; it has "
                f"{', '.join(row)}. If the column was dropped or renamed, give its field a default"
            )
        value = row[column]
        if field.takes is not None and not isinstance(value, field.takes):
            value = _instead(field, column, value, cls, table)
        values[field.name] = value
    model: Any = cls
    if not is_model:
        made: T = model(**values)
        return made
    try:
        validated: T = model.model_validate(values)
    except ValueError as error:
        raise RowTypeError(f"a row of {table} is not a {cls.__name__}: {error}") from error
    return validated


def _instead(field: _Field, column: str, value: Any, cls: type, table: str) -> Any:
    """Return the replacement for a value that is not of a field's classes.

    It is null for a date that does not exist.
    """
    if any(value == one and type(value) is type(one) for one in field.literals):
        return value
    invalid_date = isinstance(value, str) and field.invalid_dates
    unavailable = isinstance(value, Unavailable)
    if invalid_date and field.nullable:
        return None
    if field.checked and not invalid_date and not unavailable:
        return value
    what = f"{value} in this row, a date that Python cannot represent" if invalid_date else f"{value!r} in this row"
    way_out = f"Declare {field.name} so that it accepts "
    if value is None:
        what, way_out = "NULL in this row", f"{way_out}None"
    elif invalid_date:
        way_out += "None, or str for the text"
    elif unavailable:
        what = "not in the binlog for this row (rowtide.UNAVAILABLE)"
        way_out += "rowtide.Unavailable, or let the server log all columns (binlog_row_image=FULL)"
    else:
        other = " that is not one of the literals" if type(value) in map(type, field.literals) else ""
        what = f"a {type(value).__name__} in this row{other}"
        way_out += "it; if the column was altered, write the classes again"
    raise RowTypeError(f"column {column} of {table} is {what}, which {cls.__name__} does not accept. {way_out}")


@lru_cache(maxsize=1024)
def _plan(cls: Any) -> tuple[bool, tuple[_Field, ...]]:
    """Return whether a class is a pydantic model, and its fields."""
    if hasattr(cls, "model_validate") and hasattr(cls, "model_fields"):
        return True, tuple(_model_fields(cls))
    if dataclasses.is_dataclass(cls):
        return False, tuple(_dataclass_fields(cls))
    raise EngineTypeError(_WRONG_CLASS.format(cls))


def _dataclass_fields(cls: Any) -> Iterator[_Field]:
    hints, known = _hints(cls), {field.name: field for field in dataclasses.fields(cls)}
    for name, parameter in inspect.signature(cls).parameters.items():  # an InitVar is not a field
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        required = parameter.default is parameter.empty
        column = known[name].metadata.get(COLUMN, name) if name in known else name
        yield _Field(name, (column,), required, *_taken(hints.get(name, Any)), checked=False)


def _hints(cls: Any) -> dict[str, Any]:
    """Return the annotations of a class, except those with a name imported only for type checkers.

    Raises:
        EngineTypeError: one cannot be evaluated.
    """
    try:
        return get_type_hints(cls, include_extras=True)
    except NameError:
        found: dict[str, Any] = {}
    except Exception as error:
        raise EngineTypeError(f"the annotations of {cls.__name__} cannot be evaluated: {error}") from error
    for base in reversed(cls.__mro__):
        for name, annotation in inspect.get_annotations(base).items():
            one = type(base.__name__, (), {"__annotations__": {name: annotation}, "__module__": base.__module__})
            try:
                found |= get_type_hints(one, include_extras=True)
            except NameError:
                found[name] = Any
    return found


def _model_fields(cls: Any) -> Iterator[_Field]:
    for name, field in cls.model_fields.items():
        aliases = _aliases(field.validation_alias) or _aliases(field.alias)
        generated = field.alias_priority == 1  # from the names of fields, which are those of columns
        keyword = aliases[0] if aliases and cls.model_config.get("validate_by_alias") is not False else name
        columns = aliases if aliases and not generated else (*aliases, name)
        # pydantic decides which values it accepts, but invalid dates and unavailable columns are not values for it
        is_part = hasattr(field.validation_alias, "path")
        yield _Field(keyword, columns, field.is_required(), *_taken(Any if is_part else field.annotation), checked=True)


def _aliases(alias: Any) -> tuple[str, ...]:
    """Return the names that a field may have.

    They come from a text, pydantic's AliasChoices, or the document of its AliasPath.
    """
    if isinstance(alias, str):
        return (alias,)
    choices = getattr(alias, "choices", None) or [one for one in getattr(alias, "path", ())[:1] if one]
    return tuple(one for one in choices if isinstance(one, str))


def _taken(annotation: Any) -> tuple[tuple[type, ...] | None, tuple[Any, ...], bool]:
    """Return the classes of values that an annotation accepts, ``None`` for all.

    Also return its literals, and whether it accepts ``None``.
    """
    kinds: set[type] = set()
    literals: list[Any] = []
    for one in _alternatives(annotation):
        if one is None or one is type(None):
            kinds.add(type(None))
            continue
        origin = get_origin(one) or one
        if origin is Literal:
            literals += get_args(one)
        elif isinstance(origin, type) and origin not in (object, Any) and not _structural(origin):
            kinds.add(origin)
        else:  # everything, or a form of which no value is an instance
            return None, (), True
    if float in kinds:
        kinds.add(int)  # as for type checkers
    return tuple(kinds), tuple(literals), type(None) in kinds or None in literals


def _structural(kind: type) -> bool:
    return is_typeddict(kind) or getattr(kind, "_is_protocol", False)


def _alternatives(annotation: Any) -> Iterator[Any]:
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif origin is Union or origin is types.UnionType:
        for one in get_args(annotation):
            yield from _alternatives(one)
    elif isinstance(annotation, dataclasses.InitVar):
        yield from _alternatives(annotation.type)
    elif isinstance(annotation, NewType):
        yield from _alternatives(annotation.__supertype__)
    elif type(annotation).__name__ == "TypeAliasType":  # of Python 3.12, or of typing_extensions
        yield from _alternatives(annotation.__value__)
    else:
        yield annotation
