"""The structure of the code: imports go down, and whole packages do no input or output."""

from __future__ import annotations

import graphlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.edges import WORLD, touched
from tests.support.source_tree import PARTS, ROOT, TOOLS, Module, modules, packages, tool_modules

BELOW: dict[str, set[str]] = {
    "schema_history": set(),
    "topics": {"schema_history"},
    "envelope": {"schema_history", "topics"},
    "connector": {"schema_history", "topics", "envelope"},
    "spark_consumers": {"schema_history", "topics", "envelope"},
}
"""The folders that each folder may import besides itself."""

LAYERS = {
    "rowtide.canal": "service metrics cluster instance configuration mq server replay entries",
    "rowtide.cluster": "candidate fence session",
    "rowtide.connector": (
        "fleet worker engine telemetry check snapshot delivery signals pipeline source records rows protocol "
        "schema_registry "
        "config kafka_producer backoff errors"
    ),
    "rowtide.databus": "server client zookeeper discovery sql events tables errors",
    "rowtide.decoder": "faust topics decoder readers errors",
    "rowtide.mysql_replication": "reader settings structures events rows values",
    "rowtide.verify": (
        "servers run parallel tables verification replication resume repair texts table_values source routing "
        "pace topic progress old_forms comparison fold positions errors"
    ),
    "rowtide.schema_history": (
        "queries compaction recovery store catalog debezium_form structure ddl server position errors model"
    ),
    "rowtide_demo": "__main__ scenario steps connector_properties topic_watch shop runtime errors",
    "rowtide_stack": "__main__ servers runners programs ports errors",
}
"""The modules and packages right under a package, from top to bottom. Each may import those that follow it."""

PURE = (
    "rowtide.connector.kafka_producer.batches",
    "rowtide.connector.kafka_producer.machine",
    "rowtide.connector.kafka_producer.wire",
    "rowtide.connector.pipeline",
    "rowtide.connector.protocol",
    "rowtide.connector.records",
    "rowtide.connector.rows",
    "rowtide.envelope",
    "rowtide.schema_history",
    "rowtide.topics",
)
"""Packages without input and output: bytes, rows and statements go in, records and structures come out."""

OUTSIDE = (
    "rowtide.schema_history.compaction",
    "rowtide.schema_history.store",
    "rowtide.topics.admin",
)
"""Packages in `PURE` that connect them to Kafka and files."""

LOADERS = {
    "rowtide.connector.kafka_producer.batches.native.implementation",
    "rowtide.connector.protocol.native.compiled",
}
"""Modules that look for compiled code and its sources."""


def offenders(wrong: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """The modules that violate a rule, and how."""
    return {name: sorted(parts) for name, parts in wrong.items() if parts}


def within(name: str, found: tuple[str, ...]) -> bool:
    """Whether a module is one of some packages, or inside of one."""
    return any(name == package or name.startswith(f"{package}.") for package in found)


def tree_of(package: str) -> tuple[Module, ...]:
    """The modules among which a package's imports are looked up."""
    return tool_modules() if package.split(".", maxsplit=1)[0] in TOOLS else modules()


def all_packages() -> list[Module]:
    """The packages of rowtide and of the tools in ``docker/``."""
    return [*packages(), *(module for module in tool_modules() if module.is_package)]


def children(package: str) -> list[str]:
    """The names of the modules and packages right under a package."""
    found = {child_of(module.name, package) for module in tree_of(package)} - {""}
    return sorted(found - set(PARTS)) if package == "rowtide" else sorted(found)


def imports_between(package: str) -> dict[tuple[str, str], set[str]]:
    """The imports between the children of a package, by importing and imported child."""
    tree = tree_of(package)
    known = {module.name for module in tree}
    names = set(children(package))
    found: dict[tuple[str, str], set[str]] = {}
    for module in tree:
        child = child_of(module.name, package)
        for name in module.imports():
            target = name if name in known else name.rpartition(".")[0]
            other = child_of(target, package)
            if child in names and other in names and child != other:
                found.setdefault((child, other), set()).add(f"{module.name} imports {target}")
    return found


def child_of(module: str, package: str) -> str:
    """The child of a package that contains a module; empty if none does."""
    return module.removeprefix(f"{package}.").split(".")[0] if module.startswith(f"{package}.") else ""


def test_imports_go_one_way() -> None:
    wrong = {}
    for module in modules():
        if module.part:  # the root package's own modules, the command line among them, stand above all folders
            imported = {name.split(".")[1] for name in module.imports() if name.startswith("rowtide.")} & set(PARTS)
            wrong[module.name] = imported - BELOW[module.part] - {module.part}
    assert offenders(wrong) == {}


@pytest.mark.parametrize("package", LAYERS)
def test_imports_go_down_from_layer_to_layer(package: str) -> None:
    layers = LAYERS[package].split()
    assert set(children(package)) == set(layers)
    wrong = {}
    for (child, other), imports in imports_between(package).items():
        if layers.index(other) < layers.index(child):
            wrong[f"{child} imports {other}"] = imports
    assert offenders(wrong) == {}


def test_no_package_has_an_import_cycle() -> None:
    wrong = {}
    for package in all_packages():
        below: dict[str, set[str]] = {child: set() for child in children(package.name)}
        for child, other in imports_between(package.name):
            below[child].add(other)
        try:
            graphlib.TopologicalSorter(below).prepare()
        except graphlib.CycleError as error:
            wrong[package.name] = set(error.args[1])
    assert offenders(wrong) == {}


def test_pure_packages_do_no_input_and_output() -> None:
    pure = [one for one in modules() if within(one.name, PURE) and not within(one.name, OUTSIDE)]
    assert offenders({module.name: touched(module) for module in pure if module.name not in LOADERS}) == {}
    assert {package for package in PURE if package not in {module.name for module in pure}} == set()


def test_the_kafka_producer_imports_nothing_else_of_rowtide() -> None:
    own = "rowtide.connector.kafka_producer"
    wrong = {
        module.name: {name for name in module.imports() if name.startswith("rowtide") and not within(name, (own,))}
        for module in modules()
        if within(module.name, (own,))
    }
    assert wrong
    assert offenders(wrong) == {}


def test_code_for_spark_executors_imports_only_the_standard_library() -> None:
    wrong = {}
    converters = ("rowtide.envelope.avro", "rowtide.envelope.protobuf", "rowtide.envelope.converters")
    for module in modules():
        if module.part in ("envelope", "schema_history", "topics") and not within(module.name, converters):
            assert not {name for name in module.imports() if within(name, converters)}, module.name
            roots = {name.split(".")[0] for name in module.imports(for_types=False)} - {"rowtide"}
            kafka = WORLD["kafka"] if within(module.name, OUTSIDE) else set()
            wrong[module.name] = roots - kafka - sys.stdlib_module_names
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
