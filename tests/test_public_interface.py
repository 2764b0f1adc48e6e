"""The public Python interface, ``import rowtide``: listed, documented, typed, and free to import."""

from __future__ import annotations

import ast
import builtins
import copy
import importlib.metadata
import inspect
import json
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import rowtide
from rowtide.connector.check import Finding, Severity
from rowtide.connector.config import Problem
from rowtide.schema_history.errors import UnparsedStatement

NAMES = [name for name in rowtide.__all__ if name != "__version__"]


def test_the_names_are_listed_once_and_for_type_checkers_too() -> None:
    tree = ast.parse(Path(str(rowtide.__file__)).read_text())
    checked = next(node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.name: node.module for node in checked.body if isinstance(node, ast.ImportFrom) for alias in node.names
    }
    assert typed == rowtide._MODULES
    assert sorted(NAMES) == sorted(typed)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_documented_and_typed(name: str) -> None:
    value = getattr(rowtide, name)
    if not inspect.isclass(value) and not inspect.isfunction(value):
        return
    assert inspect.getdoc(value)
    functions = (
        [value]
        if inspect.isfunction(value)
        else [member for own, member in vars(value).items() if inspect.isfunction(member) and not own.startswith("_")]
    )
    for function in functions:
        assert inspect.getdoc(function), function
        for parameter in inspect.signature(function).parameters.values():
            if parameter.name not in ("self", "cls"):
                assert parameter.annotation is not parameter.empty, (function, parameter)
        assert inspect.signature(function).return_annotation is not inspect.Signature.empty, function


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Motor'"):
        _ = rowtide.Motor
    assert sorted(dir(rowtide)) == sorted(rowtide.__all__)


EXCEPTIONS = [
    value for name in NAMES if inspect.isclass(value := getattr(rowtide, name)) and issubclass(value, Exception)
]


@pytest.mark.parametrize("kind", EXCEPTIONS)
def test_every_exception_has_one_base(kind: type[Exception]) -> None:
    assert issubclass(kind, rowtide.ConnectorError)


def test_every_exception_that_is_documented_can_be_imported() -> None:
    named = set()
    for name in NAMES:
        value = getattr(rowtide, name)
        members = [value, *vars(value).values()] if inspect.isclass(value) else [value]
        for member in members:
            _, _, raises = (inspect.getdoc(member) or "").partition("Raises:")
            named |= set(re.findall(r"\b[A-Z]\w+(?=(?:, \w+)*:)", raises))
    assert {"ConnectorError", "ConfigurationError", "OffsetStoreError", "SchemaHistoryError"} <= named
    assert {name for name in named if name not in rowtide.__all__ and not hasattr(builtins, name)} == set()


@pytest.mark.parametrize(
    "error",
    [
        rowtide.ConfigurationError([("name", "is missing")]),
        rowtide.CheckFailedError([Finding(Severity.ERROR, "log_bin", "is OFF")]),
        rowtide.DatabaseUnreachableError(Problem("database.hostname", "no answer"), retriable=True),
        rowtide.PositionPurged("purged", purged=False),
        rowtide.SignalError("refused", "1", "log"),
        rowtide.ProtocolError("damaged", "binlog.000001:4"),
        rowtide.StreamRefused("no right"),
        rowtide.EngineTypeError("size must be a number"),
        UnparsedStatement("CREATE TABEL t", "expected TABLE", 7, "binlog.000001:4"),
    ],
)
def test_exceptions_can_be_pickled(error: Exception) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is type(error)
        assert (str(again), vars(again)) == (str(error), vars(error))


def test_type_checkers_find_the_packages() -> None:
    installed = importlib.metadata.distribution("rowtide")
    direct = json.loads(installed.read_text("direct_url.json") or "{}")
    if not direct.get("dir_info", {}).get("editable"):
        pytest.skip("rowtide is not installed editable")
    paths = [line for file in installed.files or () if file.suffix == ".pth" for line in file.read_text().splitlines()]
    root = Path(str(rowtide.__file__)).parents[1]
    assert str(root) in paths, "run docker/setup again: type checkers read paths, but not import hooks"


def run(code: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=False)


def test_importing_rowtide_imports_nothing_else() -> None:
    done = run("import sys, rowtide; print(sorted(m for m in sys.modules if m.startswith('rowtide')))")
    assert done.stdout.strip() == "['rowtide', 'rowtide._version']", done.stderr


def test_a_package_that_is_missing_is_named_with_its_extra() -> None:
    done = run("import sys; sys.modules['pymysql'] = None\nimport rowtide; rowtide.Engine")
    assert "rowtide.Engine needs the package pymysql" in done.stderr
    assert "pip install 'rowtide[connector]'" in done.stderr


def test_a_batch_is_a_sequence_that_shows_what_it_holds() -> None:
    made: Any = rowtide.ChangeBatch([], lambda: True)
    assert (len(made), list(made), repr(made)) == (0, [], "<ChangeBatch of 0 changes>")
    assert made.ack()
