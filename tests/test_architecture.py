"""The structure of the code: the direction of imports, the modules that do input and output, the length of files.

The modules that do input and output are listed in `tests/support/edges.py`.
"""

from __future__ import annotations

import graphlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from edges import EDGES, WORLD, allowed, touched
from source_tree import PARTS, ROOT, TOOLS, Module, modules, packages, tool_modules

BELOW: dict[str, set[str]] = {
    "schema_history": set(),
    "topics": {"schema_history"},
    "envelope": {"schema_history", "topics"},
    "connector": {"schema_history", "topics", "envelope"},
    "spark_consumers": {"schema_history", "topics", "envelope"},
}
"""The folders that each folder may import besides itself."""

ROOMS = {
    "rowtide.canal": "service metrics cluster instance configuration mq server replay entries",
    "rowtide.cluster": "candidate fence session",
    "rowtide.connector": "worker engine check snapshot source delivery pipeline records rows protocol config errors",
    "rowtide.databus": "server client zookeeper discovery sql events tables errors",
    "rowtide.schema_history": (
        "queries compaction recovery store catalog debezium_form structure ddl server position errors model"
    ),
    "rowtide_demo": "__main__ scenario steps connector_properties topic_watch checksums shop runtime errors",
    "rowtide_stack": "__main__ servers runners programs ports errors",
}
"""The rooms of a package from top to bottom. Each may import those that follow it."""
MOST_ROOMS = 12
"""The maximum number of modules and folders at one level of a folder."""

LONGEST = 400
"""The maximum number of lines of a file, unless it is one of `TABLES`."""
TABLES = {
    "schema_history/ddl/statements.py": "the forms of all statements: one small class for each",
}
"""Longer files, and the reason."""


def offenders(wrong: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """The modules that violate a rule, and how."""
    return {name: sorted(parts) for name, parts in wrong.items() if parts}


def tree_of(package: str) -> tuple[Module, ...]:
    """The modules among which a package's imports are looked up."""
    return tool_modules() if package.split(".", maxsplit=1)[0] in TOOLS else modules()


def all_packages() -> list[Module]:
    """The packages of rowtide and of the tools in ``docker/``."""
    return [*packages(), *(module for module in tool_modules() if module.is_package)]


def children(package: str) -> list[str]:
    """The names of the modules and folders right under a package."""
    found = {room_of(module.name, package) for module in tree_of(package)} - {""}
    return sorted(found - set(PARTS)) if package == "rowtide" else sorted(found)


def imports_between(package: str) -> dict[tuple[str, str], set[str]]:
    """The imports between the children of a package, by importing and imported child."""
    tree = tree_of(package)
    known = {module.name for module in tree}
    rooms = set(children(package))
    found: dict[tuple[str, str], set[str]] = {}
    for module in tree:
        room = room_of(module.name, package)
        for name in module.imports():
            target = name if name in known else name.rpartition(".")[0]
            other = room_of(target, package)
            if room in rooms and other in rooms and room != other:
                found.setdefault((room, other), set()).add(f"{module.name} imports {target}")
    return found


def room_of(module: str, package: str) -> str:
    """The child of a package that contains a module; empty if none does."""
    return module.removeprefix(f"{package}.").split(".")[0] if module.startswith(f"{package}.") else ""


def test_imports_go_one_way() -> None:
    wrong = {}
    for module in modules():
        if module.part:  # the root package's own modules, the command line among them, stand above all folders
            imported = {name.split(".")[1] for name in module.imports() if name.startswith("rowtide.")} & set(PARTS)
            wrong[module.name] = imported - BELOW[module.part] - {module.part}
    assert offenders(wrong) == {}


@pytest.mark.parametrize("package", ROOMS)
def test_imports_go_down_from_room_to_room(package: str) -> None:
    rooms = ROOMS[package].split()
    assert set(children(package)) == set(rooms)
    wrong = {}
    for (room, other), imports in imports_between(package).items():
        if rooms.index(other) < rooms.index(room):
            wrong[f"{room} imports {other}"] = imports
    assert offenders(wrong) == {}


def test_no_folder_has_an_import_cycle() -> None:
    wrong = {}
    for package in all_packages():
        below: dict[str, set[str]] = {room: set() for room in children(package.name)}
        for room, other in imports_between(package.name):
            below[room].add(other)
        try:
            graphlib.TopologicalSorter(below).prepare()
        except graphlib.CycleError as error:
            wrong[package.name] = set(error.args[1])
    assert offenders(wrong) == {}


def test_no_folder_has_too_many_children() -> None:
    sizes = {package.name: len(children(package.name)) for package in all_packages()}
    assert {name: size for name, size in sizes.items() if size > MOST_ROOMS} == {}


def test_only_edges_do_input_and_output_and_only_of_the_listed_kinds() -> None:
    # Either move the input or output to an edge, or list the new edge in tests/support/edges.py.
    assert offenders({module.name: touched(module) - allowed(module.name) for module in modules()}) == {}


def test_every_listed_edge_is_one() -> None:
    found = {module.name: touched(module) for module in modules()}
    named = {name: set(parts.split()) for name, parts in EDGES.items() if "*" not in name}
    assert {name: found.get(name, set()) for name in named} == named


def test_code_for_spark_executors_imports_only_the_standard_library() -> None:
    wrong = {}
    for module in modules():
        if module.part in ("envelope", "schema_history", "topics"):
            roots = {name.split(".")[0] for name in module.imports(for_types=False)} - {"rowtide"}
            edge = set().union(*(WORLD[part] for part in allowed(module.name)))
            wrong[module.name] = roots - edge - sys.stdlib_module_names
    assert offenders(wrong) == {}


def test_imports_name_the_package_in_full() -> None:
    # "import envelope" finds the folder when Python runs in the checkout, and gives a second copy of every class.
    bare = {module.name: {name for name in module.imports() if name.split(".")[0] in PARTS} for module in modules()}
    assert offenders(bare) == {}


def test_the_public_names_of_a_package_are_listed_and_exist() -> None:
    # (ruff keeps the lists sorted: RUF022.)
    wrong = {}
    for package in packages():
        loaded = importlib.import_module(package.name)
        listed = list(getattr(loaded, "__all__", ()))
        wrong[package.name] = {name for name in listed if not hasattr(loaded, name) or listed.count(name) > 1}
        ours = [
            value
            for name, value in vars(loaded).items()
            if not name.startswith("_") and str(getattr(value, "__module__", "")).startswith("rowtide.")
        ]
        if ours and not listed:
            wrong[package.name].add("__all__ is missing")
    assert offenders(wrong) == {}


def test_files_are_short() -> None:
    files = [module.path for module in (*modules(), *tool_modules())]
    lengths = {path.relative_to(ROOT).as_posix(): len(path.read_text().splitlines()) for path in files}
    assert {place: length for place, length in lengths.items() if length > LONGEST and place not in TABLES} == {}
    assert {place for place, length in lengths.items() if length > LONGEST} == set(TABLES), (
        "TABLES lists a file that is short"
    )


@pytest.mark.parametrize("part", PARTS)
def test_type_checkers_find_each_folder_under_the_root_package(part: str) -> None:
    link = ROOT / "rowtide" / part
    assert link.is_symlink()
    assert link.readlink() == Path("..", part), "a relative link works in every checkout"


def test_the_docker_folder_does_not_hide_the_docker_library() -> None:
    # With an __init__.py, Python would find the folder instead of the library.
    assert not (ROOT / "docker/__init__.py").exists()
    spec = importlib.util.find_spec("docker")
    assert spec is not None
    assert spec.origin is not None
    assert not Path(spec.origin).is_relative_to(ROOT / "docker")
