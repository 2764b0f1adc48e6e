"""Topics, partitions, keys, headers and values are those of Canal's own Kafka producer."""

from __future__ import annotations

import base64
import gzip
import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rowtide.canal.configuration.kafka import OF_DESTINATION
from rowtide.canal.configuration.load import read_folder
from rowtide.canal.configuration.model import KafkaSettings
from rowtide.canal.entries.sink import PassedEntry
from rowtide.canal.mq.messages import MessageMaker
from rowtide.canal.mq.routing import Router
from rowtide.canal.server.stored_entry import BatchMode
from rowtide.connector.records.offset import SourceOffset
from tests.support.canal.golden import made

FOLDER = Path(__file__).parent / "golden"
CASES = sorted(path.name.removesuffix(".jsonl.gz") for path in FOLDER.glob("*.jsonl.gz"))
NO_ENTRIES = bytes.fromhex("10 01 18 07")
OFFSET = SourceOffset("binlog.000001", 4)

Records = dict[tuple[str, int], list[tuple[object, ...]]]


def recorded(name: str) -> tuple[dict[str, Any], Records]:
    with gzip.open(FOLDER / f"{name}.jsonl.gz", "rt", encoding="utf-8") as file:
        head, *lines = [json.loads(line) for line in file]
    flat = head["properties"].get("canal.mq.flatMessage") != "false"
    found: Records = defaultdict(list)
    for line in lines:
        value = line["value"].encode() if flat else base64.b64decode(line["value"])
        if value != NO_ENTRIES:  # Canal sends a packet even if all its entries are omitted
            found[line["topic"], line["partition"]].append((line["key"], value, line["headers"]))
    return head, found


def configured(folder: Path, properties: dict[str, str]) -> KafkaSettings:
    """The settings that a folder of Canal's with these properties has."""
    of_destination = {name: value for name, value in properties.items() if name in OF_DESTINATION}
    server = {
        "canal.serverMode": "kafka",
        "kafka.bootstrap.servers": "127.0.0.1:1",
        **{name: value for name, value in properties.items() if name not in of_destination},
    }
    instance = {"canal.instance.master.address": "db", "canal.instance.dbUsername": "canal", **of_destination}
    (folder / "d").mkdir()
    for path, content in (("canal.properties", server), ("d/instance.properties", instance)):
        lines = [f"{name}={value}\n".replace("\\", "\\\\") for name, value in content.items()]
        (folder / path).write_text("".join(lines))
    found = read_folder(folder, {}).instances["d"].kafka
    assert found is not None
    return found


@pytest.mark.parametrize("name", CASES)
def test_messages_are_those_of_canal(name: str, tmp_path: Path) -> None:
    head, wanted = recorded(name)
    settings = configured(tmp_path, head["properties"])
    form = replace(settings.form, mode=BatchMode(counts_entries=True, unit=1))
    maker = MessageMaker(Router(settings.routes), form, clock=lambda: 0)
    entries = [PassedEntry(entry, OFFSET) for entry in made(head["recording"])]
    found: Records = defaultdict(list)
    for begin in range(0, len(entries), head["batch"]):
        for batch in maker.batches(entries[begin : begin + head["batch"]]):
            for piece in batch.destinations():
                for key, value, headers in piece.messages:
                    found[piece.topic, piece.partition].append((key, value, list(headers)))
    assert found == wanted
