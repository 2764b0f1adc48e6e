"""What README.md tells a newcomer to do must work, as far as it can be seen without servers."""

from __future__ import annotations

import re

import pytest
from source_tree import ROOT, project

from rowtide import cli
from rowtide.connector.config import from_properties
from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.files.properties_file import parse_properties

README = (ROOT / "README.md").read_text()


def block(language: str) -> str:
    """The one block of a language."""
    (found,) = re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_example_of_a_configuration_is_accepted() -> None:
    values = parse_properties(block("properties"))
    configuration = from_properties({**dict(values), "database.password": "secret"})
    assert configuration.database.user == "rowtide"
    assert configuration.warnings == ()


def test_the_account_has_the_privileges_of_the_compose_files() -> None:
    (here,) = re.findall(r"GRANT (.*?) ON", block("sql"))
    (there,) = re.findall(r"GRANT (.*?) ON", (ROOT / "docker/config/mysql-privileges.sql").read_text())
    assert here == there


def test_every_command_that_is_named_is_there() -> None:
    named = set(re.findall(r"\browtide (check|run|tables|replay|schema|properties)\b", README))
    assert named == set(cli.COMMANDS)


def test_every_property_that_is_named_is_there() -> None:
    named = re.findall(r"`((?:snapshot|errors|offset|exactly|bootstrap|value|key)\.[a-z.]+[a-z])`", README)
    assert {name for name in named if name not in PROPERTIES} == set()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"^\$ (\.?[a-z.]+/[\w./-]+)", README, re.MULTILINE))))
def test_every_script_that_is_named_is_there(name: str) -> None:
    assert name.startswith(".venv/") or (ROOT / name).is_file()


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!http)[^)#]+)\)", README))))
def test_every_link_into_the_checkout_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()


def test_every_extra_that_is_named_is_there() -> None:
    named = set(re.findall(r"'\.\[(\w+)\]'", README))
    assert named <= set(project()["project"]["optional-dependencies"])
