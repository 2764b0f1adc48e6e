"""Every recorded case with signals, sent again to a connector on live servers, by the channels of the case.

Compared is what the records mean: of each topic of a table, the operation, key, row and marker of every record in its
order; of schema changes, the statement, the described tables and the marker; of notifications, the kind, the id if it
is that of a signal, and the data. Left out are the rows of windows, positions, times, and notifications of signals,
which Debezium does not have.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pymysql.constants import CLIENT

import rowtide
from rowtide.connector.delivery.sinks.record_sink import Record
from tests.support.recordings.golden import GOLDEN, Case
from tests.support.recordings.live_snapshot import address, binlog_end, wipe

if TYPE_CHECKING:
    from rowtide_stack import Kafka, SqlServer

pytestmark = pytest.mark.servers

CASES = sorted(
    path.parent.name for path in GOLDEN.glob("*/case.json") if any(
        name.startswith("signal.") for name in json.loads(path.read_text()).get("config", {})
    )
)  # fmt: skip
SOON = 180.0

Meaning = tuple[Any, ...]
Topics = dict[str, list[Meaning]]


class Records:
    """A sink that keeps what it gets."""

    def __init__(self) -> None:
        self.taken: list[Record] = []

    def write(self, records: Sequence[Record]) -> None:
        self.taken += records

    def flush(self) -> None:
        """Nothing is buffered."""

    def close(self) -> None:
        """Nothing is open."""


class Connector:
    """The connector of a case, which can be stopped and started again.

    Args:
        case: the case.
        server: the server.
        kafka: the broker of the signals.
        folder: for offsets, schema history and signals.
    """

    def __init__(self, case: Case, server: SqlServer, kafka: Kafka, folder: Path) -> None:
        config = {
            name: str(value).replace("$RUN", str(folder)).replace("$KAFKA", kafka.bootstrap)
            for name, value in case.description["config"].items()
        }
        self.properties = {
            **case.properties(),
            **config,
            "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
            "offset.storage.file.filename": str(folder / "offsets"),
            "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
            "schema.history.internal.file.filename": str(folder / "history"),
            **address(server),
            "database.server.id": str(184200 + CASES.index(case.name)),
        }
        for name in [*self.properties]:
            if name.startswith(("schema.history.internal.kafka", "bootstrap.servers")):
                del self.properties[name]
        self.sink = Records()
        self._server = server
        self._kafka = kafka
        self.prefix = case.prefix

    def start(self) -> None:
        """Start the connector, and wait until it streams."""
        self._engine = rowtide.Engine(self.properties)
        self._thread = threading.Thread(target=self._engine.run, args=(self.sink,))
        self._thread.start()
        self._eventually(lambda: self._engine.state == "RUNNING", "the stream")
        self.settled()

    def stop(self) -> None:
        """Stop the connector."""
        self._engine.close()
        self._thread.join(SOON)

    def send(self, signals: Iterable[dict[str, Any]]) -> None:
        """Send the signals of a stage, and wait until they are carried out."""
        producer = Producer({"bootstrap.servers": self._kafka.bootstrap})
        answered = self._answered()
        for one in signals:
            if "sql" in one:
                self.settled(answered)
                self.execute(one["sql"])
            elif one.get("channel") == "kafka":
                value = one["value"] if isinstance(one["value"], str) else json.dumps(one["value"])
                producer.produce(self.properties["signal.kafka.topic"], value, one["key"])
                answered += one["key"] == self.prefix
                assert producer.flush(SOON) == 0
            elif one.get("channel") == "file":
                with Path(self.properties["signal.file"]).open("a") as file:
                    file.write(json.dumps(one["value"]) + "\n")
                answered += 1
            else:
                self.settled(answered)
        self.settled(answered)

    def execute(self, statements: str) -> None:
        """Run statements."""
        with self._server.connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection, connection.cursor() as cursor:
            cursor.execute(statements)
            while cursor.nextset():
                pass

    def settled(self, answered: int = 0) -> None:
        """Wait until so many signals are carried out, no snapshot is left, and all changes are read and delivered."""
        self._eventually(lambda: self._answered() >= answered, "all signals are carried out")
        self._eventually(self._is_settled, "nothing is left to read")
        taken = -1
        while taken != (taken := len(self.sink.taken)):
            time.sleep(0.5)

    def _is_settled(self) -> bool:
        run = self._engine._task.current  # type: ignore[union-attr]
        if run.reader is None or run.reader._snapshots is None or run.reader._snapshots.active:
            return False
        status = run.reader.status
        return (status.file, status.pos) == binlog_end(self._server)

    def _answered(self) -> int:
        return sum(one["aggregate_type"] == "Signal" for one in self._engine.notifications)

    def _eventually(self, happened: Callable[[], bool], what: str) -> None:
        limit = time.monotonic() + SOON
        while not happened():
            assert time.monotonic() < limit, what
            time.sleep(0.1)


def meaning(topic: str, key: str | None, value: str | None) -> Meaning | None:
    """What a record means; ``None`` if it is omitted."""
    if value is None:
        return None if (key or "").endswith('-open"}}') else ("tombstone", key)
    payload = json.loads(value).get("payload")
    if "aggregate_type" in payload:
        if payload["aggregate_type"] == "Signal":
            return None
        given = None if payload["aggregate_type"] == "Initial Snapshot" else payload["id"]
        data = payload["additional_data"]
        if "data_collections" in data:  # Debezium has them in the order of a hash map, or sorted
            data["data_collections"] = sorted(data["data_collections"].split(","))
        return payload["aggregate_type"], payload["type"], given, data
    source = payload["source"]
    if "ddl" in payload:
        return payload["ddl"], payload["databaseName"], payload["tableChanges"], source["snapshot"]
    row = payload["after"] or payload["before"]
    if str(row.get("type")).startswith("snapshot-window"):
        return None
    marks = source["snapshot"], source["db"], source["table"]
    return payload["op"], key, payload["before"], payload["after"], *marks


def largest_key(taken: Topics, expected: Topics) -> None:
    """Debezium loses the row with the largest key of BIGINT UNSIGNED.

    With ``snapshot.mode=no_data``, its last schema change of a blocking snapshot is marked ``last``, before the rows.
    """
    changes = "signal-file-channel"
    assert (taken[changes][-1][3], expected[changes][-1][3]) == ("true", "last")
    taken[changes][-1] = (*taken[changes][-1][:3], "last")
    topic, notes = "signal-file-channel.sf.a", "notes"
    (lost,) = [one for one in taken[topic] if one not in expected[topic]]
    assert lost[0] == "r"
    assert lost[3] == {"id": -1, "t": "max"}
    taken[topic].remove(lost)
    further = [one for one in taken[notes] if one not in expected[notes]]
    missing = [one for one in expected[notes] if one not in taken[notes]]
    assert [one[1] for one in further] == ["IN_PROGRESS", "TABLE_SCAN_COMPLETED"]
    assert [one[1] for one in missing] == ["TABLE_SCAN_COMPLETED"]
    taken[notes] = [one for one in taken[notes] if one not in further]
    expected[notes].remove(missing[0])


def stopped(taken: Topics, expected: Topics) -> None:
    """Debezium stops what an earlier signal started, and reads the table of the last one although all is stopped."""
    notes, rows = "signals-all.notifications", "signals-all.sa.wide"
    for topics in (taken, expected):
        topics[notes] = [one for one in topics[notes] if one[2] not in ("s-inc3", "s-inc4")]
    place = max(place for place, one in enumerate(taken[rows]) if one[4] == "incremental") + 1
    again = expected[rows][place : place + 12]
    assert {one[4] for one in again} == {"incremental"}
    del expected[rows][place : place + 12]


DIFFERENCES: dict[str, Callable[[Topics, Topics], None]] = {
    "signal-file-channel": largest_key,
    "signals-all": stopped,
}


def by_topic(records: Iterable[tuple[str, str | None, str | None]]) -> Topics:
    """The meanings of records by topic."""
    found: Topics = {}
    for topic, key, value in records:
        if (meant := meaning(topic, key, value)) is not None:
            found.setdefault(topic, []).append(meant)
    return found


def recorded(case: Case) -> Topics:
    own = ("history", "connect-offsets")
    return by_topic((one["topic"], one["key"], one["value"]) for one in case.records if one["topic"] not in own)


@pytest.mark.parametrize("name", CASES)
def test_signals_do_what_debezium_does(name: str, request: pytest.FixtureRequest, kafka: Kafka, tmp_path: Path) -> None:
    case = Case(name)
    server: SqlServer = request.getfixturevalue(case.description.get("server", "mysql"))
    wipe(server)
    connector = Connector(case, server, kafka, tmp_path)
    if "signal.kafka.topic" in connector.properties:
        topic = connector.properties["signal.kafka.topic"]
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(SOON)
    connector.execute((case.folder / "setup.sql").read_text())
    with ExitStack() as life:
        life.callback(wipe, server)
        life.callback(connector.stop)
        connector.start()
        for stage in sorted([*case.folder.glob("stream*.sql"), *case.folder.glob("stream*.signals.json")]):
            if stage.name.endswith(".signals.json"):
                connector.send(json.loads(stage.read_text()))
            elif stage.name.endswith(".stopped.sql"):
                connector.stop()
                connector.execute(stage.read_text())
                connector.start()
            else:
                connector.execute(stage.read_text())
                connector.settled()
    taken = by_topic(
        (one.topic, one.key and one.key.decode(), one.value and one.value.decode()) for one in connector.sink.taken
    )
    expected = recorded(case)
    if name in DIFFERENCES:
        DIFFERENCES[name](taken, expected)
    assert sorted(taken) == sorted(expected)
    for topic, meant in taken.items():
        assert (topic, meant) == (topic, expected[topic])
