"""What ``rowtide verify`` cannot compare, before it asks a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from rowtide.cli import main
from tests.support.configurations import PROPERTIES

if TYPE_CHECKING:
    from pathlib import Path

JSON = {
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
}
PROTOBUF = {
    "value.converter": "io.confluent.connect.protobuf.ProtobufConverter",
    "value.converter.schema.registry.url": "http://127.0.0.1:1",
}


@pytest.mark.parametrize(
    ("converter", "text"),
    [(JSON, "without value.converter.schemas.enable=true they cannot"), (PROTOBUF, "in Protobuf they cannot")],
)
def test_values_in_two_ways_that_only_types_tell(tmp_path: Path, converter: dict[str, str], text: str) -> None:
    config = tmp_path / "shop.json"
    config.write_text(json.dumps({**PROPERTIES, **converter, "rowtide.values": "debezium"}))
    result = CliRunner().invoke(main, ["verify", "--config", str(config), "--topics"])
    assert result.exit_code == 2
    assert text in " ".join(result.output.split())
