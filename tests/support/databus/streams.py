"""The messages that the databus server makes of recorded streams."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.header import GTID_TYPES
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.settings import PipelineSettings
from rowtide.databus.events import KafkaKey, Position
from rowtide.databus.server.record_form import DatabusForm
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import CONNECTORS
from tests.support.mysql.recorded_server import FILE, RecordedServer

__all__ = ["SERVERS", "batches", "message_positions", "settings_of", "starts"]

SERVERS = ["mysql", "mysql-gtid-off", "mariadb"]


def settings_of(connector: str) -> PipelineSettings:
    """The settings of a pipeline that makes messages of databus."""
    properties = {**PROPERTIES, "connector.class": CONNECTORS[connector]}
    return pipeline_settings(from_properties(properties), "run", form=DatabusForm("shop"))


def pipeline_of(server: RecordedServer, settings: PipelineSettings) -> Pipeline:
    """A pipeline at the beginning of a stream."""
    decoder = server.decoder()
    assert decoder.format is not None
    tables = Tables(Server(Flavor(server.connector), decoder.format.server_version))
    pipeline = Pipeline(settings, tables, server.start(), lambda: 0)
    pipeline.enter_file(FILE, decoder)
    return pipeline


def batches(server: RecordedServer, settings: PipelineSettings | None = None) -> list[Batch]:
    """The batches of a stream from its beginning."""
    pipeline = pipeline_of(server, settings or settings_of(server.connector))
    steps = (step for packet in server.stream(server.start()) for step in pipeline.receive(packet))
    return [output for output in itertools.chain.from_iterable(steps) if isinstance(output, Batch)]


def message_positions(server: RecordedServer) -> list[Position]:
    """The positions of all messages."""
    return _positions(batches(server))


def _positions(outputs: list[Batch]) -> list[Position]:
    return [KafkaKey.decode(key).position for batch in outputs for key, _, _ in batch.messages]


def starts(server: RecordedServer) -> Iterator[tuple[Position, list[Position]]]:
    """Each position between two transactions, and the positions of the messages after it."""
    pipeline = pipeline_of(server, settings_of(server.connector))
    made: list[Batch] = []
    found: list[tuple[Position, int]] = []
    for packet in server.stream(server.start()):
        outputs: list[Output] = list(itertools.chain.from_iterable(pipeline.receive(packet)))
        made += [output for output in outputs if isinstance(output, Batch)]
        if not pipeline.progress.in_transaction and packet[4] not in GTID_TYPES:
            found.append((Position(pipeline.progress.file, pipeline.progress.end), len(_positions(made))))
    every = _positions(made)
    for position, done in found:
        yield position, every[done:]
