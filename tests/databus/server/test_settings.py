"""The configuration of a databus server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.connector.config.choices import SnapshotMode
from rowtide.databus.server.settings import checked_topic, load_server
from tests.support import configurations

PROPERTIES = configurations.PROPERTIES | {"snapshot.mode": "no_data", "databus.topic": "shop"}


def test_the_topic_is_that_of_the_configuration() -> None:
    assert checked_topic(from_properties(PROPERTIES)) == "shop"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"databus.topic": ""}, "databus.topic: is required"),
        ({"snapshot.mode": "initial"}, "snapshot.mode: must be no_data or recovery, not initial"),
        ({"rowtide.snapshot.new.tables": "incremental"}, "rowtide.snapshot.new.tables: must not be incremental"),
        ({"rowtide.sink": "stdout"}, "rowtide.sink: must be kafka, not stdout"),
        ({"rowtide.standby": "true", "databus.zkpath": "127.0.0.1:2181"}, "rowtide.standby: must be false with"),
        ({"column.mask.with.3.chars": "a.b.c"}, "column.mask and column.truncate: has no counterpart"),
        ({"skip.messages.without.change": "true"}, "skip.messages.without.change: has no counterpart"),
        ({"binlog.row.image.minimal.allowed": "true"}, "binlog.row.image.minimal.allowed: has no counterpart"),
        ({"provide.transaction.metadata": "true"}, "provide.transaction.metadata: has no counterpart"),
        ({"source.struct.version": "v1"}, "source.struct.version: has no counterpart"),
        ({"databus.topic": "history"}, "must not be history, which is schema.history.internal.kafka.topic"),
        (
            {"databus.topic": "offsets", "offset.storage.topic": "offsets"},
            "databus.topic: must not be offsets, which is offset.storage.topic",
        ),
        ({"databus.topic": "my shop"}, "databus.topic: is not a valid name of a topic"),
    ],
)
def test_what_does_not_fit_is_refused(more: Mapping[str, str], expected: str) -> None:
    properties = {name: text for name, text in {**PROPERTIES, **more}.items() if text}
    with pytest.raises(ConfigurationError, match=expected):
        checked_topic(from_properties(properties))


def written(folder: Path, properties: Mapping[str, str]) -> str:
    """The path of a file with properties."""
    file = folder / "databus.properties"
    file.write_text("".join(f"{name}={text}\n" for name, text in properties.items()))
    return str(file)


def test_no_data_is_the_default_of_the_snapshot_mode(tmp_path: Path) -> None:
    file = written(tmp_path, {name: text for name, text in PROPERTIES.items() if name != "snapshot.mode"})
    config, problems = load_server([file], {})
    assert (config.snapshot.mode, problems) == (SnapshotMode.NO_DATA, ())


@pytest.mark.parametrize("command", ["databus", "check"])
def test_all_problems_are_reported_at_once(command: str, tmp_path: Path) -> None:
    wrong = {"databus.monitorport": "99999", "skip.messages.without.change": "true", "snapshot.mode": "initial"}
    result = CliRunner().invoke(main, [command, written(tmp_path, {**PROPERTIES, **wrong})])
    assert result.exit_code == 1
    for name in wrong:
        assert result.output.count(f"{name}: ") == 1, result.output


def test_a_connector_does_not_run_with_the_configuration_of_a_server(tmp_path: Path) -> None:
    """Both have the same position: the topic of the server would miss the changes that the connector has read."""
    result = CliRunner().invoke(main, ["run", written(tmp_path, PROPERTIES)])
    assert result.exit_code == 1
    assert "databus.topic is for rowtide databus" in result.output


@pytest.mark.parametrize("mode", ["initial", "always"])
def test_the_command_names_what_is_wrong(mode: str, tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["databus", written(tmp_path, {**PROPERTIES, "snapshot.mode": mode})])
    assert result.exit_code == 1
    assert f"snapshot.mode: must be no_data or recovery, not {mode}" in result.output
