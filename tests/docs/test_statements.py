"""What the documentation says of commands, properties, metrics and files is so."""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Iterator

import click
import pytest
import yaml

import rowtide
from rowtide import cli
from rowtide.canal.configuration.kafka import OF_DESTINATION, of_kafka
from rowtide.canal.configuration.load import INSTANCE_FILE, SERVER_FILE
from rowtide.canal.configuration.properties import INSTANCE, REFUSED, SERVER, WITHOUT_EFFECT
from rowtide.connector.config import from_properties
from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.files.documents import flattened
from rowtide.connector.config.files.properties_file import parse_properties
from rowtide.connector.config.sections.property_reader import family_of
from rowtide.connector.worker.status import STATES
from rowtide.spark_consumers.columns.metadata import FIELD_NAMES as METADATA
from rowtide.spark_consumers.columns.metadata import metadata_fields
from rowtide.spark_consumers.settings import DELETION, VERSION_COLUMNS
from tests.support.pages import PAGES, TEXTS, blocks, table
from tests.support.source_tree import ROOT

FIELDS = {
    *METADATA,
    "source.version", "source.snapshot", "source.gtid", "source.file", "rowtide.writer", "rowtide.testing",
    "header.h.value", "header.h.schema", "value.after.price", "value.before.id", "topic.expression",
    "group.min.session.timeout.ms", "rowtide.audit",
    "rowtide.commit", "rowtide.claim.check.url", "rowtide.claim.check.size", "rowtide.large.record",
    "rowtide.dead.letter.id", "rowtide.dead.letter.topic", "rowtide.dead.letter.stage", "rowtide.dead.letter.position",
    "rowtide.dead.letter.size", "rowtide.dead.letter.timestamp", "rowtide.dead.letter.part",
    "rowtide.dead.letter.offset", "rowtide.derived",
}  # fmt: skip
"""Fields, headers, options of transforms, modules, loggers, properties of tables and brokers: names like properties."""
FIRST_WORDS = {name.split(".")[0] for name in PROPERTIES if "." in name}
OTHERS_OPTIONS = {"--help", "--py-files"}
"""Of every command, and of spark-submit."""


def options(name: str) -> set[str]:
    """The options of a command of rowtide."""
    command = cli.main.get_command(click.Context(cli.main), name)
    assert command is not None, f"there is no command {name}"
    return {option for parameter in command.params for option in parameter.opts}


def calls() -> Iterator[tuple[str, list[str]]]:
    """Every call of rowtide in a block: the text it is in, and its words."""
    for name in TEXTS:
        lines = [line for block in blocks(name, "(?:console|bash)") for line in block.splitlines()]
        for line in lines:
            words = shlex.split(line.removeprefix("$ "), comments=True) if "rowtide " in line else []
            if words and words[0] == "rowtide":
                yield name, words


def test_every_call_in_a_block_is_accepted() -> None:
    found = list(calls())
    assert len(found) > 10
    for text, (_, name, *words) in found:
        given = {word for word in words if word.startswith("--")}
        assert given - options(name) == set(), f"{text}: rowtide {name}"


def test_every_option_in_a_page_is_one() -> None:
    known = set().union(OTHERS_OPTIONS, *(options(name) for name in cli.COMMANDS))
    pages = {page: text for page, text in PAGES.items() if page != "experiments"}  # with options of tests.bench
    named = {(page, option) for page, text in pages.items() for option in re.findall(r"`(--[a-z][a-z-]+)", text)}
    assert {(page, option) for page, option in named if option not in known} == set()


def of_canal(name: str) -> bool:
    """Whether it is a property, or a file, of Canal's configuration folder."""
    patterns = [*WITHOUT_EFFECT, *REFUSED]
    return (
        of_kafka(name)
        or name in {*SERVER, *INSTANCE, *OF_DESTINATION, SERVER_FILE, INSTANCE_FILE}
        or any(re.fullmatch(one, name) for one in patterns)
    )


@pytest.mark.parametrize("name", TEXTS)
def test_every_property_that_is_named_is_one(name: str) -> None:
    named = set(re.findall(r"`([a-z]+(?:\.[a-z][a-zA-Z]*)+)(?:=[^`]*)?`", TEXTS[name])) - FIELDS
    wrong = [one for one in named if one not in PROPERTIES and family_of(one) is None and not of_canal(one)]
    assert [one for one in wrong if one.split(".")[0] in FIRST_WORDS] == []


@pytest.mark.parametrize("name", TEXTS)
def test_every_file_that_is_named_is_there(name: str) -> None:
    folders = "docker|examples|tests|docs|connector|topics|envelope|rowtide"
    named = re.findall(rf"(?<![\w/.-])((?:{folders})/[\w./-]*\w)", TEXTS[name])
    assert {path for path in named if not (ROOT / path).exists()} == set()


def test_the_configuration_of_the_start_is_accepted() -> None:
    (script,) = (block for block in blocks("start", "bash") if "cat > shop.properties" in block)
    values = {"env:MYSQL_PORT": "3306", "env:KAFKA": "127.0.0.1:9092"}
    text = script.partition("\n")[2].rpartition("END")[0]
    text = re.sub(r"\$\{([^}]+)\}", lambda reference: values[reference[1]], text)
    configuration = from_properties(dict(parse_properties(text)))
    assert configuration.database.user == "rowtide"
    assert configuration.warnings == ()


def test_the_configuration_in_yaml_is_accepted() -> None:
    (text,) = blocks("configuration", "yaml")
    values = flattened(yaml.load(text, yaml.BaseLoader))
    configuration = from_properties({**values, "database.password": "secret"})
    assert configuration.database.server_id == 184054


def test_the_account_has_the_privileges_of_the_compose_files() -> None:
    (here,) = re.findall(r"GRANT (.*?)\s+ON", PAGES["start"])
    (there,) = re.findall(r"GRANT (.*?)\s+ON", (ROOT / "docker/config/mysql-privileges.sql").read_text())
    assert here == there


def test_every_metric_is_in_the_table() -> None:
    tree = ast.parse((ROOT / "connector/worker/web/metrics.py").read_text())
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "Metric"]
    metrics = [[f"`rowtide_{ast.literal_eval(call.args[0])}`", ast.literal_eval(call.args[1])] for call in made]
    assert len(metrics) > 30
    assert sorted(row[:2] for row in table("monitoring", "metric")) == sorted(metrics)


def metrics_of_tables() -> set[str]:
    """The metrics that ``rowtide tables --follow`` serves."""
    tree = ast.parse((ROOT / "rowtide/cli/tables_follow.py").read_text())
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "_metric"]
    return {f"rowtide_tables_{ast.literal_eval(call.args[0])}" for call in made}


def metrics_of_verify() -> set[str]:
    """The metrics that ``rowtide verify --every`` serves."""
    tree = ast.parse((ROOT / "rowtide/cli/connectors/verify_every.py").read_text())
    made = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "metric"]
    return {ast.literal_eval(call.args[0]) for call in made}


def test_every_metric_of_a_command_is_in_its_page() -> None:
    assert metrics_of_tables() == set(re.findall(r"\browtide_tables_[a-z_]+", PAGES["spark"]))
    assert metrics_of_verify() == set(re.findall(r"\browtide_verif[a-z_]+", PAGES["verify"]))


def test_every_metric_that_is_named_is_one() -> None:
    metrics = {row[0].strip("`") for row in table("monitoring", "metric")} | metrics_of_tables() | metrics_of_verify()
    named = {name for text in TEXTS.values() for name in re.findall(r"\browtide_[a-z_]+", text)}
    assert named - metrics - {"rowtide_stack", "rowtide_demo"} == set()


def test_every_state_is_in_the_table() -> None:
    named = re.findall(r"`([A-Z]+)`", "".join(row[0] for row in table("monitoring", "state")))
    assert sorted(named) == sorted(STATES)


def test_every_column_of_metadata_is_named() -> None:
    assert set(re.findall(r"`(__\w+)`", PAGES["spark"])) == {
        *(name for name, _ in (DELETION, *VERSION_COLUMNS)),
        *(field.column for field in metadata_fields(METADATA)),
    }


def test_the_library_page_names_the_whole_interface() -> None:
    assert [name for name in rowtide.__all__ if name not in PAGES["library"] and name != "__version__"] == []


def test_every_attribute_of_a_change_is_in_the_table() -> None:
    named = {name for row in table("library", "attribute") for name in re.findall(r"`([a-z_]+)(?:\(\))?`", row[0])}
    public = {name for name in dir(rowtide.Change) if not name.startswith("_")}
    assert named == public - {"columns", "image", "images", "masked_columns", "transaction_text"}, (
        "those serve other modules"
    )


def test_every_call_of_the_engine_is_one() -> None:
    calls = " ".join(row[0] for row in table("library", "call"))
    assert all(hasattr(rowtide.Engine, name) for name in re.findall(r"engine\.(\w+)", calls))
    assert all(hasattr(rowtide.ChangeBatch, name) for name in re.findall(r"batch\.(\w+)", calls))


def test_every_example_is_in_the_page() -> None:
    shown = re.findall(r"^<!-- generated: examples/(.*) -->$", PAGES["library"], re.MULTILINE)
    files = {path.name for path in (ROOT / "examples").iterdir() if path.is_file()}
    notebooks = {name for name in files if name.endswith(".ipynb")}
    assert sorted(shown) == sorted(files - notebooks)
    assert all(f"examples/{name}" in PAGES["python"] for name in notebooks), "too long for a page: it names them"
