"""The configuration of a databus server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.databus.server.settings import checked_topic

PROPERTIES = {
    "name": "databus",
    "topic.prefix": "p",
    "database.hostname": "127.0.0.1",
    "database.user": "u",
    "database.password": "p",
    "database.server.id": "184055",
    "bootstrap.servers": "127.0.0.1:1",
    "schema.history.internal.kafka.topic": "history",
    "snapshot.mode": "no_data",
    "databus.topic": "shop",
}


def test_the_topic_is_that_of_the_configuration() -> None:
    assert checked_topic(from_properties(PROPERTIES)) == "shop"


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"databus.topic": ""}, "databus.topic: is required"),
        ({"snapshot.mode": "initial"}, "snapshot.mode: must be no_data or recovery, not initial"),
        ({"rowtide.snapshot.new.tables": "incremental"}, "rowtide.snapshot.new.tables: must not be incremental"),
        ({"rowtide.sink": "stdout"}, "rowtide.sink: must be kafka, not stdout"),
        ({"column.mask.with.3.chars": "a.b.c"}, "column.mask and column.truncate: has no counterpart"),
        ({"skip.messages.without.change": "true"}, "skip.messages.without.change: has no counterpart"),
        ({"binlog.row.image.minimal.allowed": "true"}, "binlog.row.image.minimal.allowed: has no counterpart"),
        ({"provide.transaction.metadata": "true"}, "provide.transaction.metadata: has no counterpart"),
        ({"source.struct.version": "v1"}, "source.struct.version: has no counterpart"),
    ],
)
def test_what_does_not_fit_is_refused(more: Mapping[str, str], expected: str) -> None:
    properties = {name: text for name, text in {**PROPERTIES, **more}.items() if text}
    with pytest.raises(ConfigurationError, match=expected):
        checked_topic(from_properties(properties))


@pytest.mark.parametrize("mode", ["initial", "always"])
def test_the_command_names_what_is_wrong(mode: str, tmp_path: Path) -> None:
    file = tmp_path / "databus.properties"
    found = {**PROPERTIES, "snapshot.mode": mode}
    file.write_text("".join(f"{name}={text}\n" for name, text in found.items()))
    result = CliRunner().invoke(main, ["databus", str(file)])
    assert result.exit_code == 1
    assert f"snapshot.mode: must be no_data or recovery, not {mode}" in result.output
