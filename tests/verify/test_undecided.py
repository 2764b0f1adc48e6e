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


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_missing_directory_of_tables_is_refused_before_spark_starts(
    tmp_path: Path, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "shop.json"
    config.write_text(json.dumps(PROPERTIES))
    started: list[object] = []
    monkeypatch.setattr("rowtide.spark_consumers.jvm.session.build_session", lambda **given: started.append(given))
    result = CliRunner().invoke(main, ["verify", "--config", str(config), "--tables", f"{scheme}{tmp_path}/nothing"])
    assert (result.exit_code, started) == (2, []), result.output
    assert "nothing does not exist. Give the --output of rowtide tables" in " ".join(result.output.split())
