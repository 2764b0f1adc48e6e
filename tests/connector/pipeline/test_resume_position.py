"""A stream that is cut anywhere, again and again, yields every record once."""

from __future__ import annotations

import itertools
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import ConnectorError
from rowtide.connector.pipeline import xa_transactions
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.pipeline.xa_reader import XaPackets, xa_reader
from rowtide.connector.protocol.header import GTID_TYPES, ROWS_TYPES, EventType
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.records.transforms import Transformer, TransformFailed
from rowtide.databus.server.record_form import DatabusForm
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from tests.support import configurations
from tests.support.connector_properties import CONNECTORS
from tests.support.mysql.recorded_server import FILE, RecordedServer, recorded_stream

PREFIX = configurations.PROPERTIES["topic.prefix"]
Record = tuple[str, bytes | None, bytes | None]
"""Topic, key and value of a message."""

SERVERS = ["mysql", "mysql-gtid-off", "mariadb", "mariadb-rollbacks"]
PROPERTIES: Mapping[str, Mapping[str, str]] = {
    "plain": {"skipped.operations": "none"},
    "metadata": {"provide.transaction.metadata": "true"},
    "routes": {
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.route.by.field": "v",
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite-with-tombstone",
        "skipped.operations": "none",
    },
    "databus": {"databus.topic": "d"},
}
_STATEMENT = re.compile(rb'"row":\d+(.*"ddl":)')
"""The row number of a statement is that of the last record of the same connection."""
_BEGIN = re.compile(rb'("status":"BEGIN".*"ts_ms":)\d+')
"""Without a commit time in the GTID event, a transaction begins at the time of the event before in the connection."""


@cache
def server(name: str) -> RecordedServer:
    return recorded_stream(name)


@cache
def pipeline_settings_of(connector: str, properties: str) -> PipelineSettings:
    found = {**configurations.PROPERTIES, "connector.class": CONNECTORS[connector], **PROPERTIES[properties]}
    config = from_properties(found)
    topic = config.databus.topic
    return pipeline_settings(config, "run", form=None if topic is None else DatabusForm(topic))


class Connector:
    """A connector that keeps its structures while its connections are cut, as the reader does."""

    def __init__(self, name: str, properties: str, packets: XaPackets | None = None) -> None:
        self.server = server(name)
        self.settings = pipeline_settings_of(self.server.connector, properties)
        decoder = self.server.decoder()
        assert decoder.format is not None
        self.tables = Tables(Server(Flavor(self.server.connector), decoder.format.server_version))
        self.offset = self.server.start()
        self._packets = packets or self.server.transaction

    def connection(self) -> Iterator[list[Output]]:
        """One connection, from the resume position of the one before: what each step of an event makes."""
        read_xa = xa_reader(self.settings, self.tables, lambda: 0, self._packets)
        start = SourceOffset.from_json(self.offset.to_json())  # a restart of the process reads it so
        pipeline = Pipeline(self.settings, self.tables, start, lambda: 0, read_xa=read_xa)
        assert pipeline.offset().to_map() == start.to_map()
        pipeline.enter_file(FILE, self.server.decoder())
        try:
            for packet in self.server.stream(start):
                for outputs in pipeline.receive(packet):
                    self.offset = pipeline.offset()
                    yield outputs
        finally:
            self.offset = pipeline.offset()


def records(outputs: Iterable[Output]) -> list[Record]:
    """The messages of batches, without what may differ between connections."""
    return [
        (piece.topic, key, value and _BEGIN.sub(rb"\g<1>0", _STATEMENT.sub(rb'"row":0\1', value)))
        for output in outputs
        if isinstance(output, Batch)
        for piece in output.destinations()
        for key, value, _ in piece.messages
    ]


@dataclass(frozen=True)
class Stop:
    """A place at which a stream may be cut: after an event, or after one of the batches that the event has made."""

    offset: SourceOffset
    tables: Tables
    done: int
    """Records before it."""


@cache
def whole(name: str, properties: str) -> tuple[list[Record], list[Stop], list[Stop]]:
    """The records of a stream that nothing cuts, a stop for each of its events, and one for each batch."""
    connector = Connector(name, properties)
    found: list[Record] = []
    events: list[Stop] = [Stop(connector.offset, connector.tables.copy(), 0)]
    batches: list[Stop] = []
    for outputs in connector.connection():
        tables = connector.tables.copy()
        for output in outputs:
            if isinstance(output, Batch):
                found += records([output])
                batches.append(Stop(output.offset, tables, len(found)))
        events.append(Stop(connector.offset, tables, len(found)))
    assert len(found) > (20 if properties == "databus" else 40)  # one for each event, not for each row
    return found, events, batches


def check(name: str, properties: str, stop: Stop, cuts: Iterable[int]) -> None:
    """Assert that connections from a stop on, which end after so many events each, yield what is after it, once."""
    expected, _, _ = whole(name, properties)
    connector = Connector(name, properties)
    connector.offset, connector.tables = stop.offset, stop.tables.copy()
    found: list[Record] = []
    for events in cuts:
        outputs = connector.connection()
        found += records(itertools.chain.from_iterable(itertools.islice(outputs, events)))
        outputs.close()
    assert found == expected[stop.done : stop.done + len(found)], (stop, cuts)
    assert found or stop.done == len(expected)


_TO_THE_NEXT = 100
"""Events of a connection that is sure to leave the transaction in which it begins, and to make records."""


@pytest.mark.parametrize("properties", PROPERTIES)
@pytest.mark.parametrize("name", SERVERS)
def test_every_record_comes_once_if_the_stream_is_cut_behind_any_event(name: str, properties: str) -> None:
    """Also if the first attempt to connect again fails."""
    for stop in whole(name, properties)[1]:
        check(name, properties, stop, [0, _TO_THE_NEXT])


@pytest.mark.parametrize("properties", PROPERTIES)
@pytest.mark.parametrize("name", SERVERS)
@given(data=st.data(), cuts=st.lists(st.integers(0, 12), max_size=8))
@settings(max_examples=20)
def test_every_record_comes_once_if_the_stream_is_cut_again_and_again(
    name: str, properties: str, data: st.DataObject, cuts: list[int]
) -> None:
    """A connection that ends at once, or while it skips what was done, loses nothing of the count."""
    stop = data.draw(st.sampled_from(whole(name, properties)[1]))
    check(name, properties, stop, [*cuts, _TO_THE_NEXT])


@pytest.mark.parametrize("properties", PROPERTIES)
@pytest.mark.parametrize("name", SERVERS)
def test_a_restart_from_any_stored_offset_yields_the_rest(name: str, properties: str) -> None:
    """Any batch may be the last one of a Kafka transaction: its offset stands for all records up to it."""
    for stop in whole(name, properties)[2]:
        check(name, properties, stop, [_TO_THE_NEXT])


@pytest.mark.parametrize("name", SERVERS)
def test_xa_transactions_that_are_read_again_yield_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are too large to be held in memory, wherever the stream is cut."""
    stops = whole(name, "plain")[1]
    monkeypatch.setattr(xa_transactions, "_MAX_HELD_BYTES", 0)
    for stop in stops:
        check(name, "plain", stop, [3, 0, 2, _TO_THE_NEXT])


@pytest.mark.parametrize("properties", [name for name in PROPERTIES if name != "databus"])
@pytest.mark.parametrize("name", SERVERS)
def test_a_restart_inside_a_row_event_that_makes_several_batches(
    name: str, properties: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = whole(name, properties)[0]
    monkeypatch.setattr("rowtide.connector.records.codecs.rows._MAX_ROWS", 1)
    found, _, batches = whole.__wrapped__(name, properties)
    assert found == expected
    inside = [stop for stop in batches if stop.offset.row and stop.done < len(expected)]
    assert len(inside) > 5
    for stop in inside:
        check(name, properties, stop, [1, 2 * _TO_THE_NEXT])


@pytest.fixture
def rows_apart(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Messages of one row each."""
    monkeypatch.setattr("rowtide.databus.server.record_form._MAX_ROWS", 1)
    whole.cache_clear()
    yield
    whole.cache_clear()


@pytest.mark.usefixtures("rows_apart")
@pytest.mark.parametrize("name", ["mysql", "mysql-gtid-off"])
def test_a_restart_inside_a_row_event_that_makes_several_messages_of_databus(name: str) -> None:
    """MariaDB's row events have no position, so each makes one message."""
    found, _, batches = whole(name, "databus")
    assert len({key for _, key, _ in found}) == len(found) > 30
    inside = [stop for stop in batches if stop.offset.row and stop.done < len(found)]
    assert len(inside) > 5
    for stop in inside:
        check(name, "databus", stop, [1, 2 * _TO_THE_NEXT])


@pytest.mark.parametrize("name", SERVERS)
def test_a_record_that_cannot_be_transformed_leaves_the_position_before_it(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every record fails once; a stream that begins at the position after the failure has it again."""
    expected = whole(name, "routes")[0]
    transform, calls = Transformer.batch, itertools.count()

    def batch(transformer: Transformer, original: Batch) -> Batch:
        if original.topic != PREFIX and next(calls) % 2 == 0:  # a statement changes the structures before it fails
            raise TransformFailed("once")
        return transform(transformer, original)

    monkeypatch.setattr(Transformer, "batch", batch)
    connector = Connector(name, "routes")
    found: list[Record] = []
    failed = True
    while failed:
        try:
            for outputs in connector.connection():
                found += records(outputs)
            failed = False
        except TransformFailed:
            pass
    assert found == expected
    assert next(calls) > 30


def is_begin(recorded: RecordedServer, place: int) -> bool:
    """Whether a transaction begins there: with BEGIN, or in MariaDB with its GTID."""
    packet = recorded.events[place][1]
    if recorded.connector == "mariadb":
        return packet[4] == EventType.MARIADB_GTID
    return packet[4] == EventType.QUERY and packet[:-4].endswith(b"BEGIN")


def in_another_order(recorded: RecordedServer) -> tuple[RecordedServer, bytes]:
    """A server with the second transaction of rows in front of the first one, and the GTID event of the first one."""
    events = recorded.events
    starts = [place for place, (_, packet) in enumerate(events) if packet[4] in GTID_TYPES] + [len(events)]
    groups = [slice(*pair) for pair in itertools.pairwise(starts)]
    first, second = [group for group in groups if events[group][-1][1][4] == EventType.XID][:2]
    between = events[first.start : second.start]
    order = [*events[: first.start], *events[second], *between, *events[second.stop :]]
    return replace(recorded, events=order), events[first.start][1]


def test_no_rows_are_skipped_in_a_transaction_without_a_gtid_that_comes_first(caplog: pytest.LogCaptureFixture) -> None:
    progress = Progress(SourceOffset(FILE, 4, "a:1-5", event=3, row=2, within="a:6"))
    progress.anonymous_started(None)
    progress.began(None)
    assert not progress.skipping
    assert progress.rows_to_skip() == 0
    assert "transaction without a GTID before a:6, which was read in part" in caplog.text


def damaged(packet: bytes) -> bytes:
    """A row event whose number of columns cannot be read, with a correct checksum."""
    at = 19 + (10 if packet[4] in (EventType.WRITE_ROWS, EventType.UPDATE_ROWS, EventType.DELETE_ROWS) else 8)
    changed = packet[:at] + b"\xff" + packet[at + 1 : -4]
    return changed + zlib.crc32(changed).to_bytes(4, "little")


@pytest.mark.parametrize("name", SERVERS)
def test_rows_that_were_done_are_not_counted_in_the_next_event_if_theirs_cannot_be_decoded(
    name: str,
) -> None:
    """With ``event.processing.failure.handling.mode=skip``, the events after it must be complete."""
    lenient = replace(pipeline_settings_of(server(name).connector, "plain"), processing_failure="skip")
    expected, tried = whole(name, "plain")[0], 0
    for stop in whole(name, "plain")[2]:
        rows = [place for place, (_, packet) in enumerate(server(name).events) if packet[4] in ROWS_TYPES]
        sent = [*server(name).stream(stop.offset)]
        if not stop.offset.row or not sent:
            continue
        first = next(place for place, (_, packet) in enumerate(server(name).events) if packet == sent[0])
        begin = next(place for place in range(first, len(server(name).events)) if is_begin(server(name), place))
        place = begin + stop.offset.event
        if place not in rows:
            continue
        events = [*server(name).events]
        events[place] = events[place][0], damaged(events[place][1])
        connector = Connector(name, "plain")
        connector.offset, connector.tables = stop.offset, stop.tables.copy()
        connector.server, connector.settings = replace(server(name), events=events), lenient
        assert records(itertools.chain.from_iterable(connector.connection())) == expected[stop.done :], stop
        tried += 1
    assert tried > 5


@pytest.mark.parametrize("name", ["mysql", "mariadb"])
def test_no_rows_are_lost_on_a_server_with_another_order_of_transactions(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """After a fail-over inside a transaction, what is done of it must not be skipped in the one that comes first."""
    other, first = in_another_order(server(name))
    tried = 0
    for stop in whole(name, "plain")[1]:
        if stop.offset.event == 0 or next(server(name).stream(stop.offset), None) != first:
            continue
        found = []
        for sender in (server(name), other):
            connector = Connector(name, "plain")
            connector.offset, connector.tables, connector.server = stop.offset, stop.tables.copy(), sender
            caplog.clear()
            found.append(records(itertools.chain.from_iterable(connector.connection())))
            assert ("which was read in part" in caplog.text) is (sender is other)
        assert [record for record in found[0] if record not in found[1]] == [], stop
        tried += 1
    assert tried > 5


def test_a_server_whose_gtids_are_switched_on_while_the_connector_runs_resends_nothing() -> None:
    """A set of only the GTIDs since then would ask for every older transaction once more."""
    connector = Connector("mysql", "plain")
    stop = next(stop for stop in whole("mysql", "plain")[1] if stop.done > 10 and stop.offset.event == 0)
    connector.offset, connector.tables = replace(stop.offset, gtids=None), stop.tables.copy()
    rest = list(connector.server.stream(connector.offset))
    for number, _ in enumerate(connector.connection(), 1):
        sent = list(connector.server.stream(connector.offset))
        assert len(sent) >= len(rest) - number
        assert sent == rest[len(rest) - len(sent) :]


_XA_EVENTS = 10
"""Events that are read of the transaction before the one that ends its last rows, or more."""


class Broken(ConnectorError):
    """The second connection, over which XA transactions are read again."""


@pytest.mark.parametrize("name", ["mysql", "mysql-gtid-off", "mariadb"])
def test_an_xa_commit_whose_rows_cannot_be_read_yet_comes_again(name: str) -> None:
    """Each attempt to read a prepared transaction again breaks, after none of its events, after one, and so on.

    What was written before the break does not come again.
    """
    failures: dict[str, int] = {}

    def packets(xa: PreparedXa) -> Iterator[bytes]:
        failures[xa.xid] = failed = failures.get(xa.xid, -1) + 1
        for number, packet in enumerate(server(name).transaction(xa)):
            if failed < _XA_EVENTS and number == failed:
                raise Broken("the connection broke")
            yield packet

    connector = Connector(name, "plain", packets)
    found: list[Record] = []
    cuts = 0
    while True:
        before = connector.offset
        try:
            for outputs in itertools.islice(connector.connection(), 25):  # what is prepared is not in memory for long
                before = connector.offset
                found += records(outputs)
        except Broken:
            assert connector.offset == before
        else:
            if connector.offset == before and not any(server(name).stream(before)):
                break
        cuts += 1
        assert cuts < 500
    assert found == whole(name, "plain")[0]
    assert max(failures.values()) >= _XA_EVENTS
