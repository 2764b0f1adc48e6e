"""README.md is short, works as the description on a package index, and says what is so."""

from __future__ import annotations

import re

from rowtide import cli
from rowtide.connector.config import from_properties
from rowtide.connector.config.files.properties_file import parse_properties
from tests.support.pages import blocks
from tests.support.source_tree import ROOT, project

README = (ROOT / "README.md").read_text()


def test_it_is_short() -> None:
    assert len(README.splitlines()) < 120


def test_the_example_of_a_configuration_is_accepted() -> None:
    worker, library = (dict(parse_properties(text)) for text in blocks("README", "properties"))
    for properties in (worker, {**library, "rowtide.sink": "python"}):
        configuration = from_properties({**properties, "database.password": "secret"})
        assert configuration.database.user == "rowtide"
        assert configuration.warnings == ()
    assert worker["database.server.id"] != library["database.server.id"]


def test_the_example_of_a_configuration_is_that_of_the_page_start() -> None:
    (script,) = (block for block in blocks("start", "bash") if "cat > shop.properties" in block)
    start = dict(parse_properties(script.partition("<<'END'\n")[2].rpartition("END\n")[0]))
    worker = dict(parse_properties(blocks("README", "properties")[0]))
    addresses = {"database.password", "bootstrap.servers"}
    assert addresses < set(worker) < set(start)
    assert {name: worker[name] for name in set(worker) - addresses} == {
        name: start[name] for name in set(worker) - addresses
    }


def test_the_example_in_python_is_the_one_that_is_tested() -> None:
    (snippet,) = blocks("README", "python")
    tested = (ROOT / "examples/five_lines.py").read_text()
    assert snippet == tested.partition('"""\n\n')[2]


def test_every_command_is_named() -> None:
    named = set(re.findall(r"(?:`|\$ )rowtide\s([a-z]+)", README))
    assert named == set(cli.COMMANDS)


def test_every_page_and_script_that_is_named_is_there() -> None:
    links = [link for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("https://")]
    named = links + re.findall(r"^\$ (\w+/[\w./-]+)", README, re.MULTILINE)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_page_is_linked() -> None:
    links = {
        (ROOT / link).resolve() for link in re.findall(r"\]\(([^)]+)\)", README) if not link.startswith("https://")
    }
    pages = {page.resolve() for page in (ROOT / "docs").glob("*.md")} - {ROOT / "docs/index.md"}
    assert pages - links == set()


def test_every_extra_that_is_named_is_there() -> None:
    named = set(re.findall(r"'\.\[(\w+)\]'", README))
    assert named
    assert named <= set(project()["project"]["optional-dependencies"])
