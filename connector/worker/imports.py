"""Imports PyMySQL without cryptography, which takes 7 MB of memory and is needed only to encrypt a password with RSA.

The server requests that if TLS is off and it has not cached the user's password (``caching_sha2_password``).
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_POSTPONED = (
    "cryptography.hazmat.primitives.hashes",
    "cryptography.hazmat.primitives.serialization",
    "cryptography.hazmat.primitives.asymmetric.padding",
)


class PostponedModule(ModuleType):
    """Stands for a module, and imports it when an attribute is first used; threads may do so at the same time."""

    def __getattr__(self, name: str) -> Any:
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)

    def step_aside(self) -> None:
        """Let imports of the name find the module itself."""
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]


def import_pymysql() -> None:
    """Import PyMySQL, unless it is imported already. Only PyMySQL gets the stand-ins for modules of cryptography."""
    stand_ins = [PostponedModule(name) for name in _POSTPONED if name not in sys.modules]
    sys.modules.update({module.__name__: module for module in stand_ins})
    try:
        importlib.import_module("pymysql")
    finally:
        for module in stand_ins:
            module.step_aside()
