"""The locked requirements: complete, with hashes, and in agreement with pyproject.toml."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.support.source_tree import ROOT, project

REQUIREMENTS = ROOT / "docker/requirements"
LOCKED = {"worker": "canal", "spark": "spark", "dev": "all"}
"""The extra that each file locks; the file dev has the dependency group of this name, too."""


def locked(name: str) -> dict[str, set[Version]]:
    """The versions of each package in a file; several if they depend on the platform or on Python's version."""
    found: dict[str, set[Version]] = {}
    for package, version in re.findall(
        r"^([\w.-]+)==([\w.]+)", (REQUIREMENTS / f"{name}.txt").read_text(), re.MULTILINE
    ):
        found.setdefault(canonicalize_name(package), set()).add(Version(version))
    return found


def required(extra: str) -> Iterator[Requirement]:
    """The requirements of an extra, those of rowtide's other extras in it included."""
    optional = project()["project"]["optional-dependencies"]
    for requirement in map(Requirement, [*project()["project"]["dependencies"], *optional[extra]]):
        if requirement.name == "rowtide":
            for other in requirement.extras:
                yield from required(other)
        else:
            yield requirement


def grouped(group: str) -> Iterator[Requirement]:
    """The requirements of a dependency group, those of the groups in it included."""
    for entry in project()["dependency-groups"][group]:
        if isinstance(entry, dict):
            yield from grouped(entry["include-group"])
        else:
            yield Requirement(entry)


@pytest.mark.parametrize(("name", "extra"), LOCKED.items())
def test_the_locked_versions_satisfy_pyproject(name: str, extra: str) -> None:
    versions = locked(name)
    for requirement in (*required(extra), *(grouped("dev") if name == "dev" else ())):
        found = versions.get(canonicalize_name(requirement.name), set())
        assert found, f"{requirement.name} is not locked: run docker/lock"
        assert all(version in requirement.specifier for version in found), f"{requirement} {found}: run docker/lock"


def test_the_images_have_nothing_that_only_a_checkout_needs() -> None:
    tools = {canonicalize_name(requirement.name) for requirement in grouped("dev")}
    assert tools
    assert tools & {*locked("worker"), *locked("spark")} - {"packaging"} == set()


def test_the_build_requirements_are_locked() -> None:
    (requirement,) = map(Requirement, project()["build-system"]["requires"])
    assert all(version in requirement.specifier for version in locked("build")[requirement.name])


@pytest.mark.parametrize("name", ["build", *LOCKED])
def test_every_package_has_hashes_and_no_address(name: str) -> None:
    text = (REQUIREMENTS / f"{name}.txt").read_text()
    entries = [entry for entry in re.split(r"\n(?=\S)", text) if not entry.startswith("#")]
    assert entries
    for entry in entries:
        assert re.fullmatch(r"[\w.-]+==\S+( ; [^\\]+)?( \\\n    --hash=sha256:[0-9a-f]{64})+\n?", entry), entry[:80]
    assert "://" not in text


@pytest.mark.parametrize("name", ["worker", "spark"])
def test_the_images_have_the_versions_that_are_tested(name: str) -> None:
    tested = locked("dev")
    assert {package: versions for package, versions in locked(name).items() if tested.get(package) != versions} == {}


def test_the_jars_of_spark_have_checksums() -> None:
    lines = (REQUIREMENTS / "spark-jars.sha256").read_text().splitlines()
    jars = dict(re.fullmatch(r"([0-9a-f]{64})  ([\w.-]+\.jar)", line).groups()[::-1] for line in lines)  # type: ignore[union-attr, misc]
    assert "iceberg-spark-runtime-4.1_2.13-1.12.0.jar" in jars
    assert {"delta-spark_4.1_2.13-4.4.0.jar", "spark-sql-kafka-0-10_2.13-4.1.1.jar"} <= set(jars)


@pytest.mark.spark
def test_the_checksums_are_those_of_the_downloaded_jars() -> None:
    import hashlib

    from rowtide_stack import spark_jars

    found = [f"{hashlib.sha256(jar.read_bytes()).hexdigest()}  {jar.name}" for jar in spark_jars()]
    assert sorted((REQUIREMENTS / "spark-jars.sha256").read_text().splitlines()) == sorted(found)
