"""The documentation builds without a warning and without the network, and has what it takes from the code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rowtide import cli
from rowtide.connector.config.catalogue import PROPERTIES
from tests.support.pages import PAGES
from tests.support.source_tree import PARTS, ROOT, packages


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built pages."""
    # Not in every environment that is older than this test; .ci/run builds the pages by itself.
    pytest.importorskip("material", reason="mkdocs-material is not installed: run docker/setup")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    unreachable = dict.fromkeys(("http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")
    environment = {**os.environ, **unreachable, "NO_MKDOCS_2_WARNING": "1", "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_built_and_in_the_navigation(site: Path) -> None:
    assert {path.stem for path in site.glob("*.html")} - {"404"} == set(PAGES)
    home = (site / "index.html").read_text()
    assert {name for name in PAGES if f'href="{name}.html"' not in home} <= {"index"}


def test_a_page_loads_nothing_from_another_host(site: Path) -> None:
    loads = re.compile(
        r"""<(?:script|img|iframe|source)[^>]+src=["']?(?:https?:)?//|<link[^>]+href=["']?(?:https?:)?//"""
    )
    assert [path.name for path in site.rglob("*.html") if loads.search(path.read_text())] == []


def test_no_program_is_published(site: Path) -> None:
    assert [path.name for path in site.rglob("*.py*")] == []


def test_the_reference_has_every_property(site: Path) -> None:
    page = (site / "configuration.html").read_text()
    assert [name for name in PROPERTIES if f"<code>{name}</code>" not in page] == []


def test_the_help_of_every_command_is_there(site: Path) -> None:
    page = (site / "commands.html").read_text()
    assert [name for name in cli.COMMANDS if f"Usage: rowtide {name}" not in page] == []


def test_the_architecture_names_every_package(site: Path) -> None:
    page = (site / "architecture.html").read_text()
    names = [name for _, part, *name in (package.name.split(".") for package in packages() if "." in package.name)]
    assert [part for part in PARTS if f"<code>{part}/</code>" not in page] == []
    assert [name for name in names if len(name) == 1 and f"<code>{name[0]}/</code>" not in page] == []
    assert "►" in page, "the drawing is missing"
