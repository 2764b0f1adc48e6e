"""The source files of rowtide, for tests of the code's structure."""

from __future__ import annotations

import ast
import functools
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PARTS", "ROOT", "TOOLS", "Module", "modules", "packages", "project", "tool_modules"]

ROOT = Path(__file__).parents[2]
PARTS = ("connector", "envelope", "schema_history", "spark_consumers", "topics")
"""The folders of rowtide's sub-packages."""
TOOLS = ("rowtide_demo", "rowtide_stack")
"""The packages in ``docker/``, which are not part of the distribution."""


@dataclass(frozen=True, slots=True)
class Module:
    """One source file."""

    name: str
    path: Path

    @property
    def part(self) -> str:
        """The folder of `PARTS` that contains it; empty for modules of the root package."""
        part = self.name.split(".")[1] if "." in self.name else ""
        return part if part in PARTS else ""

    @property
    def is_package(self) -> bool:
        """Whether it is a package's ``__init__``."""
        return self.path.name == "__init__.py"

    def tree(self) -> ast.Module:
        """The parsed source."""
        return ast.parse(self.path.read_text(), str(self.path))

    @functools.cache  # noqa: B019 - there are a few hundred modules, and parsing them takes a second each time
    def imports(self, *, for_types: bool = True) -> frozenset[str]:
        """The full names of the modules that it imports, with those under ``if TYPE_CHECKING`` if ``for_types``.

        ``from a import b`` counts as ``a.b``, as ``b`` may be a module.
        """
        found: set[str] = set()
        for node in _walk(self.tree(), for_types=for_types):
            if isinstance(node, ast.Import):
                found.update(alias.name for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                origin = self._origin(node)
                found.update(f"{origin}.{alias.name}" for alias in node.names)
        return frozenset(found)

    def _origin(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        parts = self.name.split(".")
        base = parts[: len(parts) - node.level + (1 if self.is_package else 0)]
        return ".".join([*base, *([node.module] if node.module else [])])


def _walk(node: ast.AST, *, for_types: bool) -> Iterator[ast.AST]:
    yield node
    for child in ast.iter_child_nodes(node):
        if not for_types and isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
            continue
        yield from _walk(child, for_types=for_types)


@functools.cache
def modules() -> tuple[Module, ...]:
    """All modules of rowtide, sorted by name."""
    own = ROOT / "rowtide"
    rooms = [folder for folder in own.iterdir() if folder.is_dir() and not folder.is_symlink()]
    paths = [*own.glob("*.py"), *(path for room in sorted(rooms) for path in sorted(room.rglob("*.py")))]
    found = [_module(path, path.relative_to(ROOT)) for path in paths]
    for part in PARTS:
        # Not through the symbolic links in rowtide/, which an archive of the sources may lack
        found += [_module(path, "rowtide" / path.relative_to(ROOT)) for path in (ROOT / part).rglob("*.py")]
    return tuple(sorted(found, key=lambda module: module.name))


@functools.cache
def tool_modules() -> tuple[Module, ...]:
    """All modules of `TOOLS`, sorted by name."""
    docker = ROOT / "docker"
    found = [_module(path, path.relative_to(docker)) for tool in TOOLS for path in (docker / tool).rglob("*.py")]
    return tuple(sorted(found, key=lambda module: module.name))


def _module(path: Path, place: Path) -> Module:
    parts = list(place.with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    return Module(".".join(parts), path)


def packages() -> list[Module]:
    """All packages of rowtide, sorted by name."""
    return [module for module in modules() if module.is_package]


def project() -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text())
