"""Properties as Python values, for programs: converts numbers, paths and lists to strings as in a file."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.errors import ConfigurationError
from rowtide.connector.config.files.environment import property_name
from rowtide.topics.filters import joined_list


@runtime_checkable
class FilePath(Protocol):
    """A path, such as one of ``pathlib``."""

    def __fspath__(self) -> str:
        """Return the path as text."""
        ...


PropertyValue = str | int | float | FilePath | Sequence[str]
"""A property in a program: a string, number, boolean, path, or a list if the property is one."""


def property_texts(
    properties: Mapping[str, PropertyValue], by_keyword: Mapping[str, PropertyValue] | None = None
) -> dict[str, str]:
    """Return properties in the form of a configuration file.

    Args:
        properties: the properties by name.
        by_keyword: further properties, which override them; in their names, ``_`` stands for a dot, ``__`` for an
            underscore, ``___`` for a dash.

    Raises:
        ConfigurationError: with all values that do not belong to a property.
    """
    named = {property_name(name, PROPERTIES): value for name, value in (by_keyword or {}).items()}
    texts: dict[str, str] = {}
    problems: list[tuple[str, str]] = []
    for name, value in {**properties, **named}.items():
        try:
            texts[_checked(name)] = _text(name, value)
        except ValueError as error:
            problems.append((str(name), str(error)))
    if problems:
        raise ConfigurationError(problems)
    return texts


def _text(name: str, value: PropertyValue) -> str:
    if isinstance(value, list | tuple | set | frozenset):
        return _list(name, value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, FilePath):
        return _checked(value.__fspath__())
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        raise ValueError("is None; omit the property to use its default")
    return _checked(value)


def _checked(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(  # noqa: TRY004 - one kind of error for all that is wrong with a configuration
            f"is of the type {type(value).__name__}; give a string, number, boolean, path, or a list of strings"
        )
    return str(value)


def _list(name: str, value: Sequence[str] | set[str] | frozenset[str]) -> str:
    known = PROPERTIES.get(name)
    join = joined_list if known is None else known.kind.join  # families, such as column.mask.…, have lists, too
    if join is None:
        raise ValueError("is a list, but the property has one value")
    if not value:
        raise ValueError("is an empty list; omit the property to use its default")
    items = [_checked(item) for item in value]
    return join(sorted(items) if isinstance(value, set | frozenset) else items)
