"""Transforms written in Python: ``transforms.<name>.type=python:package.module.function``.

A function gets a :class:`~rowtide.envelope.transforms.ConnectRecord` and returns one, several, or ``None`` to drop it.
A class is made once with the options of the transform as a dictionary of texts, and its ``apply`` does the same.
"""

import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from rowtide.envelope.transforms.options import Options
from rowtide.envelope.transforms.record import ConnectRecord, TransformError

PREFIX = "python:"


@dataclass(frozen=True, slots=True)
class PythonTransform:
    """Calls a function of the user's for each record.

    Attributes:
        name: the function, as it was configured.
        function: the function.
    """

    name: str
    function: Callable[[ConnectRecord], Any]

    @classmethod
    def from_type(cls, name: str, options: Options) -> "PythonTransform | None":
        """Import a function or a class; what is wrong becomes a problem of ``type``."""
        module_name, _, attribute = name.rpartition(".")
        given = options.others()
        try:
            found = getattr(importlib.import_module(module_name), attribute)
            made = found(given) if isinstance(found, type) else found
        except Exception as error:  # noqa: BLE001 - the user's code may raise anything
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
        """Return what the function makes of a record."""
        try:
            result = self.function(record)
            if result is None or isinstance(result, ConnectRecord):
                return result
            several = list(result)
        except Exception as error:
            raise TransformError(f"{PREFIX}{self.name} raised {type(error).__name__}: {error}") from error
        wrong = next((one for one in several if not isinstance(one, ConnectRecord)), None)
        if wrong is not None:
            raise TransformError(f"{PREFIX}{self.name} returned a {type(wrong).__name__} instead of a ConnectRecord")
        return several
