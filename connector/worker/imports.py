"""Imports libraries without what they load at once for features that a worker uses rarely or never.

* PyMySQL needs cryptography (7 MB of memory) to encrypt a password with RSA. The server requests that if TLS is off and
  it has not cached the user's password (``caching_sha2_password``).
* Faust imports a YAML parser for its codecs (1 MB).
"""

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterator
from types import ModuleType
from typing import Any

_OF_PYMYSQL = (
    "cryptography.hazmat.primitives.hashes",
    "cryptography.hazmat.primitives.serialization",
    "cryptography.hazmat.primitives.asymmetric.padding",
)
_OF_FAUST = ("yaml",)

_STEPPING_ASIDE = threading.Lock()
"""Without it, a thread could remove the module itself, which another one imports behind the stand-in."""


class PostponedModule(ModuleType):
    """Stands for a module, and imports it when an attribute is first used; threads may do so at the same time."""

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)

    def step_aside(self) -> None:
        """Let imports of the name find the module itself."""
        with _STEPPING_ASIDE:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]


def import_pymysql() -> None:
    """Import PyMySQL, unless it is imported already."""
    with _postponed(*_OF_PYMYSQL):
        importlib.import_module("pymysql")


def import_faust() -> None:
    """Import Faust, unless it is imported already."""
    with _postponed(*_OF_FAUST):
        importlib.import_module("faust.app")


@contextlib.contextmanager
def _postponed(*names: str) -> Iterator[None]:
    """Let imports meanwhile get stand-ins for modules; later ones get the modules themselves."""
    stand_ins = [PostponedModule(name) for name in names]
    for module in stand_ins:
        sys.modules.setdefault(module.__name__, module)  # another thread may begin to import the module now
    try:
        yield
    finally:
        for module in stand_ins:
            module.step_aside()
