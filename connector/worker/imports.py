"""Imports libraries without what they load at once for features that a worker uses rarely or never.

* PyMySQL needs cryptography (7 MB of memory) to encrypt a password with RSA. The server requests that if TLS is off and
  it has not cached the user's password (``caching_sha2_password``).
* Faust imports a YAML parser (1 MB) and a disassembler of pickles for its codecs, croniter with dateutil and pytz for
  timers with cron expressions (1 MB), statistics for its monitor, colorama for logs on Windows, and difflib for hints
  after mistakes. aiohttp imports idna for names of hosts, HTML's entities for pages of errors, and argparse for its
  command line. It imports its client, too, which loads the system's certificates twice; a worker uses only its server.
"""

import contextlib
import importlib
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import Any

_OF_PYMYSQL = (
    "cryptography.hazmat.primitives.hashes",
    "cryptography.hazmat.primitives.serialization",
    "cryptography.hazmat.primitives.asymmetric.padding",
)
_OF_FAUST = (
    "argparse:ArgumentParser",
    "colorama",
    "croniter.croniter:croniter",
    "difflib:SequenceMatcher",
    "html:escape",
    "idna",
    "pickletools",
    "statistics:median",
    "yaml",
)
"""Behind a colon is a function or class that Faust or aiohttp takes from the module while it is imported."""
_CLIENT_OF_AIOHTTP = (
    "aiohttp.client",
    "aiohttp.client_middleware_digest_auth",
    "aiohttp.connector",
    "aiohttp.cookiejar",
    "aiohttp.resolver",
    "aiohttp.tracing",
)
"""Modules from which aiohttp's own module takes names for the users of its client."""

_STEPPING_ASIDE = threading.Lock()
"""Without it, a thread could remove the module itself, which another one imports behind the stand-in."""


class PostponedModule(ModuleType):
    """Stands for a module, and imports it when an attribute is first used; threads may do so at the same time.

    Args:
        name: the name of the module.
    """

    def __getattr__(self, name: str) -> Any:
        return self.imported(name)

    def imported(self, name: str) -> Any:
        """An attribute of the module itself."""
        self.step_aside()
        return getattr(importlib.import_module(self.__name__), name)

    def step_aside(self) -> None:
        """Let imports of the name find the module itself."""
        with _STEPPING_ASIDE:
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]


class PostponedFunction(PostponedModule):
    """Stands for a module, from which a function or class is imported by its name, until that is called.

    Args:
        name: the name of the module, and behind a colon that of the function or class.
    """

    def __init__(self, name: str) -> None:
        module, _, function = name.partition(":")
        super().__init__(module)
        setattr(self, function, PostponedName(self, function))

    def __getattr__(self, name: str) -> Any:
        if name == "__path__":  # an import of names looks for it
            raise AttributeError(name)
        return super().__getattr__(name)


class PostponedName:
    """Stands for a class or function of a module, which is imported when it is first called.

    Args:
        module: the stand-in for the module.
        name: the name of the class or function there.
    """

    def __init__(self, module: PostponedModule, name: str) -> None:
        self._module = module
        self._name = name

    def __call__(self, *given: Any, **named: Any) -> Any:
        return self.imported()(*given, **named)

    def imported(self) -> Any:
        """What it stands for."""
        return self._module.imported(self._name)


class PostponedNames(PostponedModule):
    """Stands for a module from which others take any number of names while they are imported.

    Args:
        name: the name of the module.
    """

    def __getattr__(self, name: str) -> PostponedName:
        if name.startswith("__"):  # an import of names looks for __path__
            raise AttributeError(name)
        return PostponedName(self, name)


def import_pymysql() -> None:
    """Import PyMySQL, unless it is imported already."""
    with _postponed(_stand_ins(_OF_PYMYSQL)):
        importlib.import_module("pymysql")


def import_faust() -> None:
    """Import Faust and its web server, unless they are imported already."""
    with _postponed(_stand_ins(_OF_FAUST)), _without_client_of_aiohttp():
        importlib.import_module("faust.app")
        importlib.import_module("faust.web.drivers.aiohttp")


@contextlib.contextmanager
def _without_client_of_aiohttp() -> Iterator[None]:
    """Let aiohttp import its client when it is used, unless aiohttp is imported already.

    Behind the import, ``aiohttp`` has no stand-ins: it looks up the names of the client when they are first used.
    """
    if "aiohttp" in sys.modules:
        yield
        return
    with _postponed([PostponedNames(name) for name in _CLIENT_OF_AIOHTTP]):
        yield
    _look_up_later(importlib.import_module("aiohttp"))


def _look_up_later(package: ModuleType) -> None:
    """Replace the stand-ins in a package by a look-up of what they stand for."""
    names = vars(package)
    postponed = {name: found for name, found in names.items() if isinstance(found, PostponedName)}
    for name in postponed:
        del names[name]
    others = names["__getattr__"]

    def look_up(name: str) -> Any:
        return names.setdefault(name, postponed[name].imported()) if name in postponed else others(name)

    names["__getattr__"] = look_up


def _stand_ins(names: Iterable[str]) -> list[PostponedModule]:
    return [(PostponedFunction if ":" in name else PostponedModule)(name) for name in names]


@contextlib.contextmanager
def _postponed(stand_ins: Sequence[PostponedModule]) -> Iterator[None]:
    """Let imports meanwhile get stand-ins for modules; later ones get the modules themselves."""
    for module in stand_ins:
        sys.modules.setdefault(module.__name__, module)  # another thread may begin to import the module now
    try:
        yield
    finally:
        for module in stand_ins:
            module.step_aside()
