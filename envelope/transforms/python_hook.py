"""Transforms written in Python: ``transforms.<name>.type=python:package.module.function``.

A function receives a :class:`~rowtide.envelope.transforms.ConnectRecord` and returns one, several, or ``None`` to drop
it. A class is instantiated once with the options of the transform as a dictionary of texts, and its ``apply`` does the
same.
"""

import importlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from rowtide.envelope.transforms.options import Options, suggestion
from rowtide.envelope.transforms.record import ConnectRecord, Header, SchemaCache, TransformError
from rowtide.envelope.transforms.validation import Check, check_record

PREFIX = "python:"


class HookNotFoundError(ValueError):
    """A function or class cannot be found."""


def imported(name: str) -> Any:
    """Import ``package.module.name``.

    Raises:
        HookNotFoundError: the name has no module, or the module does not exist.
        Exception: whatever the module raises.
    """
    module_name, _, attribute = name.rpartition(".")
    if not module_name:
        raise HookNotFoundError(f"{PREFIX}{name} has no module: write {PREFIX}module.{name or 'function'}")
    try:
        return getattr(importlib.import_module(module_name), attribute)
    except ModuleNotFoundError as error:
        raise HookNotFoundError(f"{PREFIX}{name}: {error}. Install it, or add its folder to PYTHONPATH") from error


def configured_object(type_: str, options: Options, method: str, known: Iterable[str]) -> Any:
    """Create an object of a custom class, and configure it; errors become problems of ``type``.

    Args:
        type_: the class, with :data:`PREFIX`.
        options: the options; those not read yet are passed to its method ``configure``, if it has one.
        method: the method that it must have, with its arguments, such as ``apply(key, value)``.
        known: the names of Debezium's classes, for suggestions.

    Returns:
        The object; ``None`` if there is a problem.
    """
    if not type_.startswith(PREFIX):
        similar = suggestion(type_, known, of_class=True) if type_ else ""
        problem = f"rowtide has no {type_}, and runs no classes in Java" if type_ else "is required"
        options.problem("type", f"{problem}: write a class in Python, and name it by {PREFIX}module.Class{similar}")
        return None
    try:
        found = imported(type_.removeprefix(PREFIX))
        made = found() if isinstance(found, type) else found
        configure, given = getattr(made, "configure", None), options.others()
        if configure is not None:
            configure(given)
        elif given:
            options.problem("type", f"{type_} has no method configure, which takes {', '.join(sorted(given))}")
    except HookNotFoundError as error:
        options.problem("type", str(error))
        return None
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
        options.problem("type", f"{type_} cannot be used: {type(error).__name__}: {error}")
        return None
    if not callable(getattr(made, method.partition("(")[0], None)):
        options.problem("type", f"{type_} is not a class with a method {method}")
        return None
    return made


def _refuse(*_: object, **__: object) -> NoReturn:
    raise TypeError("a record is not changed in place: return another one, see record.with_content")


class _GivenDict(dict[Any, Any]):
    """A struct or map of a given record. Copies of it can be changed."""

    __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = setdefault = update = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        """Make copies dictionaries that can be changed."""
        return dict, (dict(self),)


class _GivenList(list[Any]):
    """An array of a given record. Copies of it can be changed."""

    __setitem__ = __delitem__ = __iadd__ = __imul__ = append = clear = extend = insert = pop = _refuse
    remove = reverse = sort = _refuse

    def __reduce__(self) -> tuple[object, ...]:
        """Make copies lists that can be changed."""
        return list, (list(self),)


def unchangeable(value: Any) -> Any:
    """Return a value whose structs, maps and arrays refuse changes, which would bypass the check."""
    if isinstance(value, dict):
        return _GivenDict(
            {name: unchangeable(item) if type(item) in (dict, list) else item for name, item in value.items()}
        )
    if isinstance(value, list):
        return _GivenList(map(unchangeable, value))
    return value


def _given(record: ConnectRecord) -> ConnectRecord:
    headers = tuple(Header(name, schema, unchangeable(value)) for name, schema, value in record.headers)
    return replace(record, key=unchangeable(record.key), value=unchangeable(record.value), headers=headers)


@dataclass(frozen=True, slots=True)
class PythonTransform:
    """Calls a custom function for each record.

    Attributes:
        name: the function, as it was configured.
        function: the function.
    """

    name: str
    function: Callable[[ConnectRecord], Any]
    _checks: SchemaCache[Check] = field(default_factory=SchemaCache, repr=False, compare=False)

    @classmethod
    def from_type(cls, name: str, options: Options) -> "PythonTransform | None":
        """Import a function or a class; errors become problems of ``type``."""
        given = options.others()
        try:
            found = imported(name)
            made = found(given) if isinstance(found, type) else found
        except HookNotFoundError as error:
            options.problem("type", str(error))
            return None
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's code may raise anything
            options.problem("type", f"{PREFIX}{name} cannot be used: {type(error).__name__}: {error}")
            return None
        function = getattr(made, "apply", made)
        if not callable(function):
            options.problem("type", f"{PREFIX}{name} is neither a function nor a class with a method apply")
            return None
        if given and not isinstance(found, type):
            options.problem("type", f"{PREFIX}{name} is a function, which takes no options: {', '.join(sorted(given))}")
        return cls(name, function)

    def apply(self, record: ConnectRecord) -> "ConnectRecord | Iterable[ConnectRecord] | None":
        """Return the function's result for a record.

        Raises:
            TransformError: the function raised an error, or its result cannot be written.
        """
        record = _given(record)
        try:
            result = self.function(record)
            if result is None or isinstance(result, ConnectRecord):
                several = [] if result is None else [result]
            elif isinstance(result, Iterable) and not isinstance(result, str | bytes | Mapping):
                several = list(result)
            else:
                several = None
        except (Exception, SystemExit) as error:
            raise TransformError(f"{PREFIX}{self.name} raised {type(error).__name__}", str(error)) from error
        if several is None:
            raise TransformError(
                f"{PREFIX}{self.name} returned a {type(result).__name__}: return a ConnectRecord, several, or None"
            )
        try:
            for one in several:
                check_record(one, record, self._checks)
        except ValueError as error:
            raise TransformError(f"{PREFIX}{self.name} returned {error}") from error
        return several
