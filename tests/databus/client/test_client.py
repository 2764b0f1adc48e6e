"""The client with a real Kafka: the start modes, acknowledgements, repeats, and what ends it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from kazoo.client import KazooClient

from rowtide.databus.client import AsyncClient, Client, ClientSettings
from rowtide.databus.errors import (
    Closed,
    DiscoveryError,
    DumpError,
    HandlerInterrupted,
    OverflowOffset,
    StartError,
    TopicError,
    UnreadableMessage,
)
from rowtide.databus.events import DDL, KafkaKey, Position, QueryEvent, RowsEvent
from tests.support.databus.messages import ITEMS, item, message
from tests.support.mysql.dump_server import dump_server
from tests.support.processes.worker_process import eventually

if TYPE_CHECKING:
    from rowtide_stack import Kafka, ZooKeeper

    from tests.support.kafka.topic_tools import Topics

pytestmark = pytest.mark.servers

FILE = "binlog.000003"
WAIT_S = 180.0


class Topic:
    """A topic with messages."""

    def __init__(self, topics: Topics, bootstrap: str, folder: Path) -> None:
        self.name = topics.new()
        self._producer = Producer({"bootstrap.servers": bootstrap})
        self.settings = ClientSettings((bootstrap,), self.name, folder / "Repl.info")

    def send(self, *messages: tuple[bytes | None, bytes]) -> None:
        for key, value in messages:
            self._producer.produce(self.name, value, key, partition=0)
        self._producer.flush()

    def at(self, file: str, pos: int, start: str = "inclusive") -> ClientSettings:
        return replace(self.settings, master_name=file, master_pos=pos, start=start)


@pytest.fixture
def topic(topics: Topics, kafka: Kafka, tmp_path: Path) -> Topic:
    made = Topic(topics, kafka.bootstrap, tmp_path)
    made.send(*[message(FILE, 100 * number, number) for number in range(1, 6)])
    return made


def numbers(client: Client, count: int, *, ack: bool = True) -> list[str]:
    """The primary keys of the next events."""
    found = []
    for _ in range(count):
        event = client.get_event(WAIT_S)
        assert isinstance(event.event, RowsEvent)
        found.append((event.event.rows[0][0] or b"").decode())
        if ack:
            client.ack(event)
    return found


@pytest.mark.parametrize(("start", "first"), [("inclusive", "3"), ("exclusive", "4")])
def test_an_explicit_position_is_inclusive_or_exclusive(topic: Topic, start: str, first: str) -> None:
    with Client(topic.at(FILE, 300, start)) as client:
        assert numbers(client, 1) == [first]


@pytest.mark.parametrize("start", ["inclusive", "exclusive"])
@pytest.mark.parametrize(
    ("file", "pos", "first"),
    [(FILE, 101, "2"), (FILE, 299, "3"), (FILE, 450, "5"), (FILE, 550, "6"), ("binlog.000004", 4, "6")],
)
def test_a_position_between_two_events_is_that_of_the_next_one(
    topic: Topic, file: str, pos: int, first: str, start: str
) -> None:
    topic.send(message("binlog.000004", 200, 6))
    with Client(topic.at(file, pos, start)) as client:
        assert numbers(client, 1) == [first]


def test_a_position_between_repeats_and_servers_begins_where_nothing_is_lost(topic: Topic) -> None:
    topic.send(*[message(FILE, 100 * number, number) for number in (4, 5, 6)])  # the server was killed
    topic.send(message("binlog.000001", 4, 7), message("binlog.000001", 90, 8))  # a fail-over
    for file, pos, rest in ((FILE, 350, ["4", "5", "6", "7", "8"]), ("binlog.000001", 50, ["8"])):
        with Client(topic.at(file, pos)) as client:
            assert numbers(client, len(rest), ack=False) == rest


def test_an_acknowledged_event_does_not_come_again_and_others_do(topic: Topic) -> None:
    with Client(topic.at(FILE, 200)) as client:
        assert numbers(client, 2) == ["2", "3"]
        assert numbers(client, 1, ack=False) == ["4"]
    assert topic.settings.offset_file.read_text() == f'mastername = "{FILE}"\nmasterpos = 300\noffset = 2\n'
    with Client(topic.settings) as client:  # the file has priority
        assert numbers(client, 2) == ["4", "5"]


def test_save_on_get_loses_what_was_handed_over_as_in_the_original(topic: Topic) -> None:
    settings = replace(topic.at(FILE, 200), save_on_get=True)
    with Client(settings) as client:
        assert numbers(client, 1, ack=False) == ["2"]
    with Client(settings) as client:
        assert numbers(client, 1, ack=False) == ["3"]


def test_the_original_s_offset_file_is_exclusive(topic: Topic) -> None:
    topic.settings.offset_file.write_text(f'mastername = "{FILE}"\nmasterpos = 200\noffset = 1\n')
    with Client(topic.settings) as client:
        assert numbers(client, 1) == ["3"]


def test_a_start_without_position_is_refused(topic: Topic) -> None:
    for settings in (topic.settings, replace(topic.settings, master_name=FILE), replace(topic.settings, master_pos=4)):
        with pytest.raises(
            StartError, match=r"^Wrong MasterName or MasterPos: there is no offset file .*firstload=true"
        ):
            Client(settings)


@pytest.mark.parametrize(
    ("file", "pos", "cause"),
    [
        (
            FILE,
            600,
            r"it is not in Kafka yet. The last event has binlog.000003:500 \(offset 4\). Two starts lose nothing",
        ),
        (FILE, 600, r"or now, mastername=binlog.000003, masterpos=500 and start='exclusive'"),
        ("binlog.000004", 4, "it is not in Kafka yet"),
        (FILE, 50, r"it has expired, or was never published. The first event has binlog.000003:100 \(offset 0\)"),
        (
            FILE,
            50,
            r"firstload=true .* loses nothing; mastername=binlog.000003 and masterpos=100 lose the changes before",
        ),
        ("mysql-bin.000003", 100, r"its events come from the binlog files binlog\.\*"),
    ],
)
def test_the_causes_of_overflow_offset_are_told_apart(topic: Topic, file: str, pos: int, cause: str) -> None:
    with pytest.raises(OverflowOffset, match=rf"^Can Not Get Offset by Configuration: Overflow Offset: .*{cause}"):
        Client(topic.at(file, pos))


def test_an_empty_topic_does_not_hang(topics: Topics, kafka: Kafka, tmp_path: Path) -> None:
    topic = Topic(topics, kafka.bootstrap, tmp_path)
    with pytest.raises(OverflowOffset, match=r"^Can Not Get Offset by Configuration: Overflow Offset: .* is empty"):
        Client(topic.at(FILE, 4))
    with pytest.raises(StartError, match=r"^Can Not Get Offset by Configuration: topic missing does not exist"):
        Client(replace(topic.at(FILE, 4), topic="missing"))


def test_a_search_in_a_long_topic_with_repeats_and_transactions_finds_every_position(
    topics: Topics, kafka: Kafka, tmp_path: Path
) -> None:
    topic = Topic(topics, kafka.bootstrap, tmp_path)
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic.name})
    producer.init_transactions(10)
    order = [*range(1, 31), *range(20, 41)]  # the server had saved the position 20 and was killed
    for begin in range(0, len(order), 7):
        producer.begin_transaction()
        for number in order[begin : begin + 7]:
            key, value = message(f"binlog.{number // 10:06d}", 100 + number, number)
            producer.produce(topic.name, value, key)
        producer.commit_transaction(10)
    for number in (1, 9, 10, 19, 20, 25, 30, 31, 40):
        with Client(topic.at(f"binlog.{number // 10:06d}", 100 + number)) as client:
            rest = [str(item) for item in range(number, 41)]
            assert numbers(client, len(rest), ack=False) == rest


def test_after_a_fail_over_to_a_lower_number_nothing_is_dropped(topic: Topic) -> None:
    topic.send(message("binlog.000001", 4, 6), message("binlog.000001", 90, 7), message("other", 4, 8))
    with Client(topic.at(FILE, 500)) as client:
        assert numbers(client, 4) == ["5", "6", "7", "8"]


def test_a_position_after_a_fail_over_is_found(topic: Topic) -> None:
    topic.send(message("binlog.000001", 4, 6), message("binlog.000001", 90, 7))
    for file, pos, number in (
        (FILE, 100, "1"),
        (FILE, 500, "5"),
        ("binlog.000001", 4, "6"),
        ("binlog.000001", 90, "7"),
    ):
        with Client(topic.at(file, pos)) as client:
            assert numbers(client, 1, ack=False) == [number]


def test_repeats_are_dropped_also_behind_a_restart(topic: Topic) -> None:
    with Client(topic.at(FILE, 400)) as client:
        assert numbers(client, 2) == ["4", "5"]
    topic.send(message(FILE, 400, 4), message(FILE, 500, 5), message(FILE, 600, 6))
    with Client(topic.settings) as client:
        assert numbers(client, 1) == ["6"]


def test_statements_are_events_too(topic: Topic) -> None:
    event = QueryEvent(ITEMS, "alter", "ALTER TABLE `shop`.`items` ADD x INT")
    topic.send((KafkaKey(Position(FILE, 600), DDL).encoded(), event.encoded()))
    with Client(topic.at(FILE, 600)) as client:
        found = client.get_event(WAIT_S)
    assert (found.header, found.event, found.offset) == (KafkaKey(Position(FILE, 600), DDL), event, 5)


def test_an_unreadable_message_ends_the_client_or_is_omitted(topic: Topic) -> None:
    topic.send((b"damaged", b"x"), message(FILE, 600, 6))
    with Client(topic.at(FILE, 500)) as client:
        assert numbers(client, 1) == ["5"]
        for _ in range(2):
            with pytest.raises(UnreadableMessage, match=r"partition 0, offset 5"):
                client.get_event(WAIT_S)
    with Client(replace(topic.settings, unreadable="skip")) as client:
        assert numbers(client, 1) == ["6"]


def test_an_offset_file_behind_expired_events_is_refused(topic: Topic, topics: Topics) -> None:
    with Client(topic.at(FILE, 100)) as client:
        assert numbers(client, 1) == ["1"]
    admin = AdminClient(topics.client)
    [deleted] = admin.delete_records([TopicPartition(topic.name, 0, 3)]).values()
    deleted.result(10)
    with pytest.raises(OverflowOffset, match=r"^Overflow Offset: the offset file .* before offset 3 have expired"):
        Client(topic.settings)
    topic.settings.offset_file.write_text(f'mastername = "{FILE}"\nmasterpos = 300\noffset = 2\n')
    with Client(topic.settings) as client:  # the next event is there
        assert numbers(client, 1) == ["4"]


@pytest.mark.parametrize(
    ("pos", "offset", "reason"), [(100, 3, r"has binlog.000003:400: the file is another"), (100, 9, "ends at offset 5")]
)
def test_an_offset_file_of_another_topic_is_refused(topic: Topic, pos: int, offset: int, reason: str) -> None:
    topic.settings.offset_file.write_text(f'mastername = "{FILE}"\nmasterpos = {pos}\noffset = {offset}\n')
    with pytest.raises(StartError, match=reason):
        Client(topic.settings)


def test_a_time_out_loses_nothing_and_close_ends_a_call_in_another_thread(topic: Topic) -> None:
    with Client(topic.at(FILE, 500)) as client:
        assert numbers(client, 1) == ["5"]
        with pytest.raises(TimeoutError, match=r"received no further event"):
            client.get_event(0.1)
        threading.Timer(0.3, client.close).start()
        assert list(client) == []
        with pytest.raises(Closed, match=r"^canal was closed: "):
            client.get_event()


def test_handlers_get_each_event_once_and_can_end_the_run(topic: Topic) -> None:
    seen: list[str] = []

    def interrupted(event: RowsEvent | QueryEvent) -> None:
        if isinstance(event, RowsEvent) and event.rows[0][0] == b"4":
            raise HandlerInterrupted("enough")

    def collect(event: RowsEvent | QueryEvent) -> None:
        assert isinstance(event, RowsEvent)
        seen.append(str(event.rows[0][0]))

    def run(timeout: float, *handlers: Callable[[RowsEvent | QueryEvent], None]) -> None:
        with Client(topic.at(FILE, 200)) as client:
            for handler in handlers:
                client.register(handler)
            client.run(timeout=timeout)

    with pytest.raises(HandlerInterrupted, match=r"^do handler error, interrupted: enough"):
        run(WAIT_S, interrupted, collect)

    def all_seen() -> bool:
        run(1.0, collect)
        return len(seen) >= 4

    eventually(all_seen, "all events")
    assert seen == ["b'2'", "b'3'", "b'4'", "b'5'"]


def test_the_asynchronous_client_loses_nothing_to_cancellation(topic: Topic) -> None:
    async def read() -> list[str]:
        found: list[str] = []
        async with await AsyncClient.open(topic.at(FILE, 300)) as client:
            while len(found) < 2:
                try:
                    event = await asyncio.wait_for(client.get_event(), 0.001)
                except TimeoutError:
                    continue
                found.append(str(event.offset))
                await client.ack(event)
            async for event in client:
                found.append(str(event.offset))
                await client.ack(event)
                break
            with pytest.raises(TimeoutError):
                await client.get_event(0.1)
        return found

    assert asyncio.run(read()) == ["2", "3", "4"]
    with Client(topic.settings) as client, pytest.raises(TimeoutError):
        client.get_event(0.5)


# --- dumps -----------------------------------------------------------------------------------------------------------

LINES = b"".join(RowsEvent(ITEMS, "insert", (item(number),)).encoded() + b"\n" for number in (91, 92))
END = b'{"End":true,"Rows":2}\n'


def write_node(server: str, path: str, text: str) -> None:
    """Write a node as a databus server does."""
    client = KazooClient(server)
    client.start()
    client.ensure_path(path)
    client.set(path, text.encode())
    client.stop()
    client.close()


@pytest.fixture
def dumped(topic: Topic, zookeeper: ZooKeeper) -> ClientSettings:
    """Settings of a client that begins with a dump, whose position is 300 and whose offset is that of the event 2."""
    root = f"/{topic.name}"
    write_node(zookeeper.address, f"{root}/DumpMeta/{topic.name}", f"DB.Data1.Json:{FILE}:300:1")
    return replace(
        topic.settings,
        first_load=True,
        zookeeper=(zookeeper.address,),
        zookeeper_root=root,
        node_name="DumpMeta",
        server_ip="127.0.0.1",
        server_port=1,
    )


def test_a_dump_comes_first_and_the_first_event_behind_it_is_not_lost(dumped: ClientSettings) -> None:
    with dump_server([b"PONG\n" + LINES + END]) as (port, _), Client(replace(dumped, server_port=port)) as client:
        first = client.get_event(WAIT_S)
        assert (first.header, first.offset) == (KafkaKey(Position(FILE, 300), "Dump"), None)
        client.ack(first)
        assert not dumped.offset_file.exists()
        assert numbers(client, 2) == ["92", "3"]
    with Client(dumped) as client:
        assert numbers(client, 2) == ["4", "5"]


def test_the_first_event_after_a_dump_is_not_lost_to_a_crash_either(dumped: ClientSettings) -> None:
    with dump_server([b"PONG\n" + LINES + END]) as (port, _), Client(replace(dumped, server_port=port)) as client:
        assert numbers(client, 2) == ["91", "92"]
        assert numbers(client, 1, ack=False) == ["3"]
    assert "inclusive = true" in dumped.offset_file.read_text()
    with Client(dumped) as client:
        assert numbers(client, 1) == ["3"]


def test_a_dump_that_was_cut_off_begins_again(dumped: ClientSettings) -> None:
    with dump_server([b"PONG\n" + LINES], [b"PONG\n" + LINES + END]) as (port, _):
        settings = replace(dumped, server_port=port)
        with Client(settings) as client:
            assert numbers(client, 2) == ["91", "92"]
            with pytest.raises(DumpError, match=r"without an end marker after 2 rows"):
                client.get_event(WAIT_S)
        with Client(settings) as client:
            assert numbers(client, 3) == ["91", "92", "3"]


def test_a_dump_without_rows_is_warned_of(dumped: ClientSettings, caplog: pytest.LogCaptureFixture) -> None:
    with (
        dump_server([b"PONG\n"]) as (port, _),
        Client(replace(dumped, server_port=port, dump_end_marker=False)) as client,
    ):
        assert numbers(client, 1) == ["3"]
    assert "the dump has no rows" in caplog.text


def test_the_server_is_found_in_zookeeper(dumped: ClientSettings) -> None:
    settings = replace(dumped, discover_server=True, keep_alive_path="KeepAliveNode")
    with pytest.raises(DiscoveryError, match=r"KeepAliveNode/.* does not exist in ZooKeeper: no databus server"):
        Client(settings)
    with dump_server([b"PONG\n" + LINES + END], host="::1") as (port, _):
        content = f"[::1]:{port}:{dumped.topic}:1500000000"
        write_node(dumped.zookeeper[0], f"{dumped.zookeeper_root}/KeepAliveNode/{dumped.topic}", content)
        with Client(settings) as client:
            assert numbers(client, 3) == ["91", "92", "3"]


def test_what_is_wrong_in_zookeeper_is_named(dumped: ClientSettings, topic: Topic) -> None:
    with pytest.raises(DiscoveryError, match=rf"node /{topic.name}/Other/{topic.name} does not exist"):
        Client(replace(dumped, node_name="Other"))
    write_node(dumped.zookeeper[0], f"{dumped.zookeeper_root}/DumpMeta/{topic.name}", "damaged")
    with pytest.raises(DiscoveryError, match=r"^Decode Data From zk Wrong"):
        Client(dumped)


def test_a_dump_server_that_is_away_is_named(dumped: ClientSettings) -> None:
    with pytest.raises(DumpError, match=r"dump DB.Data1.Json of 127.0.0.1:1: the server cannot be reached"):
        Client(dumped)


def test_zookeeper_that_is_away_is_named(dumped: ClientSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.databus.zookeeper._CONNECT_S", 0.5)
    with pytest.raises(DiscoveryError, match=r"ZooKeeper at 127.0.0.1:1 does not answer"):
        Client(replace(dumped, zookeeper=("127.0.0.1:1",)))


def test_kafka_that_is_away_is_named(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rowtide.databus.client.topic._PATIENCE_S", 0.5)
    with pytest.raises(StartError, match=r"^Can Not Get Offset by Configuration: .*127.0.0.1:1"):
        Client(replace(topic.at(FILE, 100), brokers=("127.0.0.1:1",)))
    assert issubclass(TopicError, Exception)
