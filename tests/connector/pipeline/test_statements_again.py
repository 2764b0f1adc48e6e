"""Statements around a restart: each is applied once, and its records are made once.

The server sends a statement again whose GTID is not in the set that it is asked for; Debezium's offsets are such.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.received import received
from tests.support.recordings.golden import Case

_ROW = re.compile(rb'"row":\d+')
CASES = ["ddl-stream", "keys", "mariadb-time-zone-and-transactions"]


@dataclass
class Step:
    """One event, its outputs, and the structures before and after it."""

    packet: bytes
    outputs: list[Output]
    before: Tables
    after: Tables


def settings(name: str) -> PipelineSettings:
    return pipeline_settings(from_properties(Case(name).properties()), "run")


def packets(name: str) -> list[bytes]:
    with (Case(name).binlog / "binlog.000001.gz").open("rb") as stream:
        return list(binlog_packets(stream, "binlog.000001", active=True))


def steps(name: str) -> list[Step]:
    """All events of a case from its start on, the FORMAT_DESCRIPTION first."""
    case = Case(name)
    start = case.start
    assert start is not None
    all_packets = packets(name)
    tables = Tables(Server(Flavor(settings(name).connector), str(case.server.get("version", ""))))
    whole = SourceOffset("binlog.000001", 4, start.gtids and "")
    pipeline = Pipeline(settings(name), tables, whole, lambda: 0)
    found = []
    for packet in all_packets:
        for event in pipeline.groups.add(packet, pipeline.decoder.format):
            before = pipeline.tables.copy()
            outputs = [output for outputs in pipeline.receive_settled(event) for output in outputs]
            found.append(Step(event, outputs, before, pipeline.tables.copy()))
    return found


def resumed(name: str, offset: SourceOffset, tables: Tables, rest: list[Step]) -> Iterator[list[Output]]:
    pipeline = Pipeline(settings(name), tables.copy(), offset, lambda: 0)
    pipeline.enter_file("binlog.000001", decoder(packets(name)[0]))
    for step in rest:
        yield received(pipeline, step.packet)


def decoder(format_description: bytes) -> EventDecoder:
    made = EventDecoder("binlog.000001")
    made.decode(format_description)
    return made


def statements(all_steps: list[Step]) -> list[int]:
    """The indexes of the events that made history entries outside of transactions."""
    return [
        place
        for place, step in enumerate(all_steps)
        if any(isinstance(output, HistoryEntry) for output in step.outputs)
        and ("event" not in _position(step) or _stands_alone(all_steps[place - 1].packet))
    ]


def _stands_alone(packet: bytes) -> bool:
    """Whether it is a MariaDB GTID event of a single statement."""
    return packet[4] == 162 and bool(packet[31] & 1)


def _position(step: Step) -> dict[str, object]:
    entry = next(output for output in step.outputs if isinstance(output, HistoryEntry))
    position = json.loads(entry.text)["position"]
    assert isinstance(position, dict)
    return position


def messages(outputs: list[list[Output]]) -> list[tuple[str, bytes | None, bytes | None]]:
    """All messages, without the row number of statements, which is that of the last record in the same run."""
    return [
        (output.topic, key, value and _ROW.sub(b'"row":0', value))
        for each in outputs
        for output in each
        if isinstance(output, Batch)
        for key, value, _ in output.messages
    ]


@pytest.mark.parametrize("name", CASES)
def test_a_statement_that_debezium_has_published_is_not_published_again(name: str) -> None:
    all_steps = steps(name)
    # without GTIDs a server is asked for what comes after a position
    places = [place for place in statements(all_steps) if "gtids" in _position(all_steps[place])]
    assert places
    for place in places[:: max(1, len(places) // 25)]:
        offset = SourceOffset.from_map(_position(all_steps[place]))
        rest = all_steps[place - 1 : place + 40]  # from its GTID on, as a server sends it
        again = list(resumed(name, offset, all_steps[place].after, rest))
        assert again[:2] == [[], []]
        assert messages(again) == messages([step.outputs for step in rest[2:]])


@pytest.mark.parametrize("name", CASES)
def test_after_a_statement_its_gtid_is_in_the_offset(name: str) -> None:
    all_steps = steps(name)
    for place in statements(all_steps)[::10]:
        batches = [output for output in all_steps[place].outputs if isinstance(output, Batch)]
        if not batches:
            continue
        offset = batches[-1].offset
        rest = all_steps[place + 1 : place + 40]
        again = list(resumed(name, offset, all_steps[place].after, rest))
        assert messages(again) == messages([step.outputs for step in rest])


@pytest.mark.parametrize("name", CASES)
def test_the_messages_of_a_statement_are_one_batch(name: str) -> None:
    several = 0
    for step in steps(name):
        entries = [output for output in step.outputs if isinstance(output, HistoryEntry)]
        if entries:
            assert step.outputs[: len(entries)] == entries
            batches = [output for output in step.outputs if isinstance(output, Batch)]
            assert len(batches) <= 1
            several += sum(len(batch.messages) > 1 for batch in batches)
            assert all(
                batch.size == sum(len(k or b"") + len(v or b"") for k, v, _ in batch.messages) for batch in batches
            )
    assert several or name != "ddl-stream"
