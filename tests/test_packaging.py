"""The wheel: complete, importable without dependencies where that is promised, and usable as a zip by Spark."""

from __future__ import annotations

import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

import click
import pytest

from tests.support.edges import WORLD, touched
from tests.support.source_tree import PARTS, ROOT, Module, modules

THIRD_PARTY = {part for part, leads in WORLD.items() if not leads <= sys.stdlib_module_names}
ON_KAFKA = {"rowtide.schema_history.store.kafka"}
"""Modules without input and output that import a module that connects to Kafka."""

NEED_AVRO = {f"rowtide.envelope.{name}" for name in ("avro.losses", "avro.reader", "avro.values", "converters.avro")}
"""Modules that need the extra avro."""


def alone() -> list[str]:
    """The modules that must work without any dependency."""

    def needs_nothing(module: Module) -> bool:
        return not touched(module) & THIRD_PARTY and module.name not in ON_KAFKA and module.name not in NEED_AVRO

    executor = {"envelope", "schema_history", "topics"}
    return ["rowtide", *(module.name for module in modules() if module.part in executor and needs_nothing(module))]


def imported(python: Path | str, names: Iterable[str], *options: str, path: Path | None = None) -> str:
    """Import modules in a new process; returns the folder or archive from which ``rowtide`` was imported."""
    place = f"sys.path.insert(0, {str(path)!r})" if path else "pass"
    code = f"import sys, importlib; {place}\nfor name in {list(names)!r}: importlib.import_module(name)\n"
    code += "print(sys.modules['rowtide'].__file__)"
    done = subprocess.run(
        [python, "-I", *options, "-W", "error", "-c", code], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution of a copy of the sources, and the wheel that is built from it."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("rowtide", *PARTS, "tests", "docker"):
        shutil.copytree(
            ROOT / name, source / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__", "golden")
        )
    target = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(target), str(source)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return target


@pytest.fixture(scope="module")
def wheel(distributions: Path) -> Path:
    """The wheel."""
    (built,) = distributions.glob("rowtide-*.whl")
    return built


@pytest.mark.parametrize("part", PARTS)
def test_the_links_in_the_root_package_are_there(part: str) -> None:
    link = ROOT / "rowtide" / part
    assert link.is_symlink(), "the links in rowtide/ are missing: run docker/setup"
    assert link.resolve() == ROOT / part


def test_the_wheel_has_every_module_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    expected = {module.name.replace(".", "/") + ("/__init__" * module.is_package) + ".py" for module in modules()}
    assert {name for name in names if name.endswith(".py")} == expected
    assert {f"rowtide/{part}/py.typed" for part in PARTS} | {"rowtide/py.typed"} <= names
    page = "connector/worker/web/page/static"
    files = {f"rowtide/{page}/{file.name}" for file in (ROOT / page).iterdir()}
    assert f"rowtide/{page}/index.html" in files <= names
    assert [name for name in names if name.endswith((".c", ".h"))] == [], "they belong to the source distribution"
    rest = {name.split("/")[0] for name in names} - {"rowtide"}
    assert len(rest) == 1
    assert rest.pop().endswith(".dist-info")


def test_a_package_index_takes_the_distributions(distributions: Path) -> None:
    pytest.importorskip("twine", reason="twine is not installed: run docker/setup")
    files = [str(path) for path in distributions.iterdir()]
    assert len(files) == 2
    twine = [sys.executable, "-m", "twine", "check", "--strict", *files]
    done = subprocess.run(twine, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("PASSED") == 2


def test_the_wheel_carries_its_licence_and_its_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    texts = {name.split("/", 1)[1]: archive.read(name).decode() for name in archive.namelist() if ".dist-info/" in name}
    assert "Apache License" in texts["licenses/LICENSE"]
    assert "rowtide = rowtide.cli:main" in texts["entry_points.txt"]
    assert "License-Expression: Apache-2.0" in texts["METADATA"]


def test_an_empty_environment_can_import_what_needs_no_extras(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv/bin/python"
    pip = [sys.executable, "-m", "pip", "-q", "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)]
    subprocess.run(pip, check=True)
    origin = imported(python, [*alone(), *(f"rowtide.{part}" for part in ("connector", "spark_consumers"))])
    assert Path(origin).is_relative_to(tmp_path)
    code = (
        "from rowtide.connector.rows.native.implementation import NAME\n"
        "from rowtide.connector.kafka_producer.batches.native.implementation import native\n"
        "from rowtide.connector.protocol.native.usual_events import reader\n"
        "print(NAME, native is not None, reader is not None)"
    )
    names = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True).stdout
    assert names.strip() == ("Python False False" if shutil.which("cc") is None else "compiled True True")


def test_the_command_line_explains_itself_with_the_base_installation_alone(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    shutil.copytree(Path(click.__file__).parent, tmp_path / "click")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from rowtide.cli import main; main(['--help'])"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Change data capture" in done.stdout


def test_spark_executors_can_import_the_wheel_as_a_zip(wheel: Path, tmp_path: Path) -> None:
    # spark-submit --py-files takes .zip and not .whl; -S leaves out everything that is installed.
    archive = shutil.copy(wheel, tmp_path / "rowtide.zip")
    origin = imported(sys.executable, alone(), "-S", path=Path(archive))
    assert Path(origin).is_relative_to(archive)
