"""The events that open a transaction, processed at once: the pipeline is after them as if they had come one by one."""

from __future__ import annotations

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.header import EventType
from rowtide.connector.protocol.native import usual_events
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import CONNECTORS
from tests.support.mysql.recorded_server import FILE, RecordedServer, recorded_stream


def state(pipeline: Pipeline) -> tuple[object, ...]:
    return (
        pipeline.progress.state(),
        pipeline.offset(),
        pipeline.gtids.text,
        pipeline.decoder.position,
        pipeline._table_ids,
        pipeline.xa.state,
    )


def pipelines(
    server: RecordedServer, start: SourceOffset, tables: Tables | None = None, **properties: str
) -> list[Pipeline]:
    """Two pipelines from a position, which share nothing, and whose decoders have parsed all TABLE_MAPs."""
    given = {**PROPERTIES, "connector.class": CONNECTORS[server.connector], **properties}
    found = []
    for _ in range(2):
        decoder = server.decoder()
        assert decoder.format is not None
        position, maps = decoder.position, (one for one in server.stream(start) if one[4] == EventType.TABLE_MAP)
        for packet in maps:
            decoder.decode(packet)
        decoder.position = position
        own = (
            Tables(Server(Flavor(server.connector), decoder.format.server_version)) if tables is None else tables.copy()
        )
        settings = pipeline_settings(from_properties(given), "run")
        found.append(Pipeline(settings, own, start, lambda: 0))
        found[-1].enter_file(FILE, decoder)
    return found


def compare(
    server: RecordedServer, pair: list[Pipeline], start: SourceOffset
) -> tuple[int, list[tuple[SourceOffset, Tables]]]:
    """Give both the stream; returns the number of openings, and where a start is inside a transaction."""
    one_by_one, at_once = pair
    packets = list(server.stream(start))
    at = openings = 0
    inside = []
    outputs: list[Output] = []
    wanted: list[Output] = []
    while at < len(packets):
        before = at
        steps, at = at_once.receive_next(packets, at)
        outputs += [output for step in steps for output in step]
        openings += at - before == 3
        wanted += [output for one in packets[before:at] for step in one_by_one.receive(one) for output in step]
        if one_by_one.groups.holding or at_once.groups.holding:
            continue  # a transaction that may be rolled back
        assert outputs == wanted
        assert state(at_once) == state(one_by_one)
        offset = at_once.offset()
        if offset.event and not offset.prepared:
            inside.append((offset, at_once.tables.copy()))
    assert outputs == wanted
    return openings, inside


@pytest.mark.parametrize("metadata", ["false", "true"])
@pytest.mark.parametrize("name", ["mysql", "mysql-gtid-off", "mariadb"])
def test_the_state_after_an_opening(name: str, metadata: str) -> None:
    server = recorded_stream(name)
    pair = pipelines(server, server.start(), **{"provide.transaction.metadata": metadata})
    openings, _ = compare(server, pair, server.start())
    expected = usual_events.reader is not None and name != "mariadb" and metadata == "false"
    assert (openings >= 4) == expected


@pytest.mark.parametrize("name", ["mysql", "mysql-gtid-off"])
def test_a_start_inside_a_transaction_skips_its_events(name: str) -> None:
    server = recorded_stream(name)
    _, inside = compare(server, pipelines(server, server.start()), server.start())
    assert len(inside) > 5
    for start, tables in inside[:: max(1, len(inside) // 10)]:
        compare(server, pipelines(server, start, tables), start)


def test_transactions_of_other_sources_are_filtered() -> None:
    server = recorded_stream("mysql")
    pair = pipelines(server, server.start(), **{"gtid.source.includes": "no such source"})
    compare(server, pair, server.start())
    assert pair[1].progress.filtered
