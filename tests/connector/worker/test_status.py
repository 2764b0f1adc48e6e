"""The status of a connector: ``/health``, the metrics, the lines of the log."""

import asyncio
import json
import re
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.delivery.counters import DeliveryCounters, Totals
from rowtide.connector.delivery.event_store import StoreUse
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.status import SnapshotStatus, TableProgress
from rowtide.connector.source.binlog_end import BinlogEnd, bytes_behind
from rowtide.connector.source.binlog_runway import Runway
from rowtide.connector.worker.reports.summary import summary
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.status import STATES, Status, combined_health, health, probe, status_of, tables_of
from rowtide.connector.worker.web import jmx_metrics, metrics
from rowtide.schema_history.model import TableId
from tests.support.configurations import PROPERTIES
from tests.support.processes.made_statuses import OFFSET, UUID, status

_LINE = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)\{(?P<labels>.*)\} (?P<value>[0-9.e+-]+)\Z")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\]|\\.)*)"(?:,|\Z)')


def parsed(text: str) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    """Metrics by name and labels; asserts that the text has Prometheus' format."""
    found: dict[str, dict[tuple[tuple[str, str], ...], float]] = {}
    lines = text.splitlines()
    assert text.endswith("\n")
    suffixes: tuple[str, ...]
    while lines:
        word, name, *_ = lines.pop(0).removeprefix("# ").split(" ", 2)
        assert word == "HELP"
        assert name not in found, f"{name} comes in two groups"
        kind = lines.pop(0).removeprefix(f"# TYPE {name} ")
        suffixes = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        assert kind in {"counter", "gauge", "histogram"}
        assert name.endswith("_total") == (kind == "counter")
        samples = found[name] = {}
        while lines and not lines[0].startswith("#"):
            match = _LINE.fullmatch(lines.pop(0))
            assert match is not None
            assert match["name"] in {f"{name}{suffix}" for suffix in suffixes}
            labels = _LABEL.findall(match["labels"])
            assert ",".join(f'{key}="{value}"' for key, value in labels) == match["labels"]
            kept = [(key, value) for key, value in labels if key != "connector"]
            key = (*kept, *([("suffix", match["name"].removeprefix(name))] if kind == "histogram" else []))
            assert key not in samples
            samples[key] = float(match["value"])
        assert samples
    return found


def render(*statuses: Status) -> str:
    return metrics.render(statuses)


def use(**fields: Any) -> StoreUse:
    known = dict.fromkeys(StoreUse.__dataclass_fields__, 0)
    return StoreUse(**{**known, **fields})


def test_every_number_has_its_metric() -> None:
    totals = Totals(0.0)
    counters = DeliveryCounters(
        10, 1000, {"shop.a": (7, 700), "shop.b": (3, 300)}, 2, 3, 1, 0.5, 50.0, 0, 1_055_000, OFFSET, 0.25
    )
    assert totals.snapshot(1.0).messages == 0
    reader = ReaderStatus(True, OFFSET, "binlog.000007", 2000, None, 4, 1_050_000, 30, 4096, 1)
    text = render(
        status(
            reader=reader,
            delivery=counters,
            stored=OFFSET,
            queue=use(events=5, held_events=12, max_events=8192, bytes=77, max_bytes=1 << 26, oldest_ts_ms=1_040_000),
            snapshot={"db.a": TableProgress(10, 12, finished=True), "db.b": TableProgress(3)},
            lag_bytes=99,
            runway=Runway("binlog.000007", 7200.5, 864_000, "binlog_expire_logs_seconds=864000"),
        )
    )
    found = parsed(text)
    assert 'connector="a\\"b\\\\c"' in text
    assert 'the_team="x\\ny"' in text

    def value(name: str, **labels: str) -> float:
        return found[f"rowtide_{name}"][(("the_team", "x\\ny"), *labels.items())]

    assert value("records_total", topic="shop.a") == 7
    assert value("record_bytes_total", topic="shop.b") == 300
    assert value("lag_bytes") == 99
    assert value("binlog_runway_seconds") == 7200.5
    assert value("binlog_retention_seconds") == 864_000
    assert value("lag_seconds") == 20.5, "the oldest record in the queue counts"
    assert value("binlog_file_number", place="read") == 7
    assert value("binlog_position", place="read") == 2000
    assert value("binlog_position", place="stored") == 1234
    assert value("gtid_last_number", place="stored", source=UUID) == 9
    assert value("gtid_last_number", place="stored", source=f"{UUID}:red") == 2
    assert value("queue_records") == 5
    assert value("records_in_flight") == 12
    assert value("snapshot_rows", table="db.b") == 3
    assert value("snapshot_tables_finished") == 1
    assert value("reconnects_total") == 1
    assert value("transactions_total") == 4
    assert value("state", state="RUNNING") == 1
    assert sum(found["rowtide_state"].values()) == 1
    assert len(found["rowtide_state"]) == len(STATES)


def test_ages_are_a_histogram_of_records() -> None:
    totals = Totals(0.0)
    for records, age_s in ((3, 0.02), (2, 0.025), (5, 0.3), (1, 90_000.0)):
        totals.acknowledged(records, age_s)
    found = parsed(render(status(delivery=totals.snapshot(1.0), tags={})))["rowtide_delivery_seconds"]
    counts = {dict(labels)["le"]: value for labels, value in found.items() if labels[0][0] == "le"}
    assert [counts[bound] for bound in ("0.01", "0.025", "0.25", "0.5", "21600", "+Inf")] == [0, 5, 5, 10, 10, 11]
    assert list(counts.values()) == sorted(counts.values())
    assert found[(("suffix", "_count"),)] == 11
    assert found[(("suffix", "_sum"),)] == pytest.approx(90_001.61)


def test_metrics_of_many_topics_and_tables_are_bounded() -> None:
    totals, tables = Totals(0.0), {f"db.t{number}": TableProgress(number % 7, 7) for number in range(2000)}
    for number in range(2000):
        totals.sent([Batch(f"p.t{number}", 0, [(None, b"v", ())] * 2, OFFSET, 2, 1)], 0.0)
    totals.sent([Batch("p.t5", 0, [(None, b"v", ())], OFFSET, 1, 1)], 0.0)
    found = parsed(render(status(delivery=totals.snapshot(1.0), snapshot=tables, tags={})))
    for name, label, expected in (("records_total", "topic", 4001), ("snapshot_rows", "table", 5995)):
        samples = found[f"rowtide_{name}"]
        assert len(samples) == 1001
        assert sum(samples.values()) == expected
        assert samples[((label, "(other)"),)] > 0
    assert found["rowtide_records_total"][(("topic", "p.t5"),)] == 3
    assert len(json.dumps(health(status(snapshot=tables)))) < 2000


def test_a_worker_that_has_not_started_has_metrics_too() -> None:
    found = parsed(render(status(state="STARTING")))
    assert "rowtide_lag_seconds" not in found
    assert "rowtide_records_total" not in found


def test_mariadbs_positions() -> None:
    reader = ReaderStatus(True, SourceOffset("m.1", 4, "0-1-17,3-1-2"), "m.1", 4)
    found = parsed(render(status(flavor="mariadb", reader=reader, tags={})))
    assert found["rowtide_gtid_last_number"] == {
        (("place", "read"), ("source", "0")): 17,
        (("place", "read"), ("source", "3")): 2,
    }


def test_the_samples_of_several_connectors_stand_together() -> None:
    text = render(status(name="a", tags={}), status(name="b", tags={}, state="FAILED"))
    assert text.count("# TYPE rowtide_healthy gauge") == 1
    assert 'rowtide_healthy{connector="a"} 1\nrowtide_healthy{connector="b"} 0\n' in text


def test_the_names_of_the_jmx_exporter() -> None:
    reader = ReaderStatus(True, OFFSET, "binlog.000007", 2000, None, 4, 1_050_000, 30, 4096, 1)
    text = jmx_metrics.render(
        [
            status(
                reader=reader,
                delivery=DeliveryCounters(10),
                queue=use(events=5, max_events=8192, bytes=77, max_bytes=1 << 26, oldest_ts_ms=1_040_000),
                snapshot={"db.a": TableProgress(10, 12, finished=True), "db.b": TableProgress(3)},
            )
        ]
    )
    found = parsed(text)
    streaming = (("plugin", "mysql"), ("name", "shop"), ("context", "streaming"))
    snapshot = (*streaming[:2], ("context", "snapshot"))
    values = {
        (name.removeprefix("debezium_metrics_"), labels): value
        for name, samples in found.items()
        for labels, value in samples.items()
    }
    assert {name: value for (name, labels), value in values.items() if labels == streaming} == {
        "Connected": 1,
        "MilliSecondsBehindSource": 20500,
        "MilliSecondsSinceLastEvent": 10500,
        "NumberOfCommittedTransactions": 4,
        "NumberOfDisconnects": 1,
        "BinlogPosition": 2000,
        "IsGtidModeEnabled": 1,
        "TotalNumberOfEventsSeen": 10,
        "QueueTotalCapacity": 8192,
        "QueueRemainingCapacity": 8187,
        "MaxQueueSizeInBytes": 1 << 26,
        "CurrentQueueSizeInBytes": 77,
    }
    assert {name: value for (name, labels), value in values.items() if labels == snapshot} == {
        "SnapshotRunning": 0,
        "SnapshotAborted": 0,
        "SnapshotCompleted": 0,
        "TotalTableCount": 2,
        "RemainingTableCount": 1,
        "TotalNumberOfEventsSeen": 13,
    }
    assert values["RowsScanned", (*snapshot, ("table", "db.b"))] == 3
    aborted = jmx_metrics.render([status(state="FAILED", snapshot={"db.b": TableProgress(3)})], lowercase=True)
    assert 'debezium_metrics_snapshotaborted{plugin="mysql",name="shop",context="snapshot"} 1' in aborted
    unknown = jmx_metrics.render([status(reader=ReaderStatus())])
    assert 'debezium_metrics_MilliSecondsBehindSource{plugin="mysql",name="shop",context="streaming"} -1' in unknown


@pytest.mark.parametrize(
    ("reader", "queue", "lag"),
    [
        (None, None, None),
        (ReaderStatus(connected=True), None, None),  # connected, nothing heard yet
        (ReaderStatus(connected=True, event_ts_ms=1_050_500), None, 10.0),
        (ReaderStatus(connected=True, event_ts_ms=1_050_500, idle=True), use(), 0.0),
        (ReaderStatus(connected=False, event_ts_ms=1_050_500, idle=True), use(), 10.0),  # the connection is lost
        (ReaderStatus(connected=True, event_ts_ms=1_060_500, idle=True), use(oldest_ts_ms=1_000_500), 60.0),
        (ReaderStatus(connected=True, event_ts_ms=2_000_000), None, 0.0),  # the server's clock is ahead
    ],
)
def test_lag(reader: ReaderStatus | None, queue: StoreUse | None, lag: float | None) -> None:
    assert status(reader=reader, queue=queue).lag_s == lag


@pytest.mark.parametrize("state", STATES)
def test_health_depends_on_the_state(state: str) -> None:
    now = status(state=state)
    assert now.healthy == (state in {"STANDBY", "STARTING", "SNAPSHOT", "RECOVERING", "RUNNING"})
    assert health(now)["status"] == ("UP" if now.healthy else "DOWN")


def test_a_kafka_that_does_not_answer_is_not_healthy() -> None:
    now = status(delivery=DeliveryCounters(stuck_s=45.0), stored=OFFSET)
    answer = health(now)
    assert answer["status"] == "DOWN"
    assert answer["error"] == "Kafka has not answered for 45 s"
    assert answer["position"]["stored"]["pos"] == 1234


def test_a_rejected_configuration_is_shown_and_does_not_stop_the_connector() -> None:
    now = status(rejected="shop.json: database.port: must be a number")
    assert (health(now)["status"], health(now)["rejected_configuration"]) == ("UP", now.rejected)
    (sample,) = parsed(render(now))["rowtide_configuration_rejected"].values()
    assert sample == 1
    assert 0 in parsed(render(status()))["rowtide_configuration_rejected"].values()


@pytest.mark.parametrize(
    ("fields", "ready"),
    [
        ({"reader": ReaderStatus(connected=True)}, True),
        ({"reader": ReaderStatus(connected=False)}, False),
        ({"state": "RECONNECTING", "reader": ReaderStatus(connected=True)}, False),
        ({"state": "SNAPSHOT"}, False),
        ({"state": "STANDBY"}, True),
        ({"state": "STANDBY", "delivery": DeliveryCounters(stuck_s=31.0)}, True),
        ({"reader": ReaderStatus(connected=True), "delivery": DeliveryCounters(stuck_s=31.0)}, False),
        ({"reader": ReaderStatus(connected=True), "delivery": DeliveryCounters(stuck_s=29.0)}, True),
    ],
)
def test_a_connector_is_ready_if_it_streams_or_can_take_over(fields: dict[str, Any], ready: bool) -> None:
    assert status(**fields).ready is ready


def test_a_sink_that_does_not_answer_is_reported_with_its_error() -> None:
    ended = status(delivery=DeliveryCounters(stuck_s=45.0), state="FAILED", error="no such table")
    assert ended.problem == "no such table", "a connector that has failed waits for nothing"
    delivery = DeliveryCounters(stuck_s=45.0, problem="127.0.0.1:9092: Connection refused")
    assert (
        health(status(delivery=delivery))["error"]
        == "Kafka has not answered for 45 s: 127.0.0.1:9092: Connection refused"
    )
    assert health(status(delivery=delivery, sink="the sink"))["error"].startswith(
        "the sink has not answered for 45 s: "
    )


class Task:
    """A connector task in a state, for ``status_of``."""

    def __init__(self, state: str, error: str | None, *, stored: SourceOffset | None = None) -> None:
        self.config = from_properties(PROPERTIES)
        self.state, self.error, self.restarts, self.started_at = state, error, 1, 0.0
        self.snapshot = SnapshotStatus()
        self.delivery: Any = None
        self.reader = self.components = None
        self.stored = stored
        self.current = self
        self.guards = SimpleNamespace(second_writer=None)

    def counters(self) -> DeliveryCounters:
        return DeliveryCounters(offset=replace(OFFSET, pos=77))


@pytest.mark.parametrize("names", [[], ["one"], ["one", "two"]])
def test_a_worker_that_may_have_several_connectors_names_each(names: list[str]) -> None:
    found = [status(name=name) for name in names]
    assert list(combined_health(found, several=True)["connectors"]) == names
    assert list(probe(found, up=True, several=True)["connectors"]) == names


def test_the_only_connector_of_a_worker_needs_no_name() -> None:
    found = [status(name="one")]
    assert combined_health(found, several=False)["connector"] == "one"
    assert probe(found, up=True, several=False) == {"status": "UP", "state": "RUNNING", "error": None}


@pytest.mark.parametrize("state", ["STARTING", "SNAPSHOT", "RECOVERING", "RUNNING"])
def test_a_new_run_is_not_healthy_before_it_works(state: str) -> None:
    task: Any = Task(state, "the broker is away")
    now = status_of(task, 1.0)
    assert (now.state, now.healthy, now.error) == ("RESTARTING", False, "the broker is away")
    task.error = None
    now = status_of(task, 1.0)
    assert (now.state, now.healthy, now.error) == (state, True, None)


def test_a_failure_is_reported_as_such() -> None:
    task: Any = Task("FAILED", "the server has purged the binlog")
    assert (status_of(task, 1.0).state, status_of(task, 1.0).error) == ("FAILED", task.error)


def test_the_stored_position_is_that_of_the_start_until_another_one_is_stored() -> None:
    task: Any = Task("RUNNING", None, stored=OFFSET)
    assert health(status_of(task, 1.0))["position"]["stored"]["pos"] == 1234
    task.delivery = task
    assert health(status_of(task, 1.0))["position"]["stored"]["pos"] == 77


def test_bytes_behind_the_server() -> None:
    logs = [("b.8", 100), ("b.9", 200), ("b.10", 50)]
    assert bytes_behind(logs, "b.9", 150) == 100
    assert bytes_behind(logs, "b.10", 50) == 0
    assert bytes_behind(logs, "b.10", 60) == 0, "the sizes are older than the position"
    assert bytes_behind(logs, "b.7", 4) is None
    assert bytes_behind([], "b.7", 4) is None


def test_the_snapshots_status() -> None:
    snapshot = SnapshotStatus()
    assert not snapshot.complete
    a, b = TableId("db", "a"), TableId("db", "b")
    snapshot.tables([a, b])
    snapshot.rows(a, 5, 9, finished=False)
    snapshot.rows(a, 10, 9, finished=True)
    assert (snapshot.done, snapshot.complete) == (10, False)
    snapshot.rows(b, 0, None, finished=True)
    assert snapshot.complete


def test_a_table_without_progress_is_shown_until_rows_of_it_come() -> None:
    snapshot = SnapshotStatus()
    snapshot.added(["db.a"])
    snapshot.stuck("db.gone", "dropped")
    snapshot.stuck("db.a", "altered too often")
    shown = status(snapshot=snapshot.by_name, tags={})
    assert health(shown)["snapshot_problems"] == ["altered too often"]
    assert tables_of(shown)["db.a"]["problem"] == "altered too often"
    assert parsed(render(shown))["rowtide_snapshot_table_stuck"][("table", "db.a"),] == 1
    snapshot.rows("db.a", 1, None, finished=False)
    assert health(status(snapshot=snapshot.by_name))["snapshot_problems"] == []


def test_tables_of_snapshots_beside_the_stream() -> None:
    seconds = iter((1.0, 2.0, 5.0))
    snapshot = SnapshotStatus(clock=lambda: next(seconds))
    snapshot.tables([TableId("db", "a")])
    snapshot.added(["db.b", "db.c"])
    assert list(snapshot.by_name) == ["db.a", "db.b", "db.c"]
    snapshot.rows("db.b", 10, None, finished=False)
    snapshot.rows("db.b", 50, None, finished=True)
    assert snapshot.by_name["db.b"].rate == 40
    snapshot.left(["db.c"])
    snapshot.added(["db.d"])
    assert list(snapshot.by_name) == ["db.a", "db.d"], "what is finished is no longer shown"
    snapshot.rows("db.new", 1, 2, finished=False)
    assert snapshot.by_name["db.new"].state == "READING"


def test_a_short_runway_is_a_warning_and_no_failure() -> None:
    now = status(runway=Runway("binlog.000007", 7200, 864_000, "binlog_expire_logs_seconds=864000"))
    shown = health(now)
    assert shown["status"] == "UP"
    assert shown["binlog_runway"] == {
        "file": "binlog.000007",
        "hours": 2.0,
        "retention_hours": 240.0,
        "reason": "binlog_expire_logs_seconds=864000",
        "warning": "the server keeps binlog.000007 for 2.0 hours at least (binlog_expire_logs_seconds=864000)",
    }
    assert "; warning: the server keeps binlog.000007 for 2.0 hours at least" in summary(now, 0, 60)
    long = status(runway=Runway("binlog.000007", 800_000, 864_000, "binlog_expire_logs_seconds=864000"))
    assert health(long)["binlog_runway"]["warning"] is None
    assert "warning" not in summary(long, 0, 60)
    endless = status(runway=Runway("binlog.000007"))
    assert health(endless)["binlog_runway"]["hours"] is None
    assert "rowtide_binlog_runway_seconds" not in parsed(render(endless))


@pytest.mark.parametrize(
    ("state", "read", "reads"),
    [
        ("RUNNING", ("binlog.000007", 2000), True),
        ("PAUSED", ("binlog.000007", 2000), False),
        ("STOPPED", None, False),
        ("FAILED", None, False),
    ],
)
def test_the_runway_is_known_also_while_a_connector_does_not_run(
    state: str, read: tuple[str, int] | None, reads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That is when it matters. One that was paused has read; one that begins stopped has not."""
    service, asked = ConnectorService(from_properties(PROPERTIES)), list[object]()
    runway = Runway("binlog.000007", 7200, 864_000, "why")

    def look(_end: BinlogEnd, *given: object, reads: bool) -> tuple[int | None, Runway]:
        asked.append((*given[:2], reads))
        return (None if given[0] is None else 99), runway

    monkeypatch.setattr(BinlogEnd, "look", look)
    run = service.connector.current
    run.stored = OFFSET
    if state in ("PAUSED", "STOPPED"):
        service.hold_first(state)
    if state != "STOPPED":
        reader = SimpleNamespace(status=ReaderStatus(True, OFFSET, "binlog.000007", 2000))
        monkeypatch.setattr(run, "reader", reader)
    if state == "FAILED":
        service.connector.failure = RuntimeError("why")
    found = asyncio.run(service.status())
    assert (found.runway, found.lag_bytes) == (runway, None if read is None else 99)
    assert asked == [(read, OFFSET, reads)]
    service.stand_by()
    assert asyncio.run(service.status()).runway is None
    assert len(asked) == 1, "one that stands by needs nothing"


def test_one_that_reads_everything_from_a_mirror_needs_no_binlog_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = list[object]()

    def look(_end: BinlogEnd, _read: object, position: object, *_given: object, **_more: object) -> tuple[None, None]:
        needed.append(position)
        return None, None

    monkeypatch.setattr(BinlogEnd, "look", look)
    for read in ("always", "purged"):
        mirror = {"rowtide.mirror.directory": "/archive/shop", "rowtide.mirror.read": read}
        service = ConnectorService(from_properties({**PROPERTIES, **mirror}))
        run = service.connector.current
        run.stored = OFFSET
        reader = SimpleNamespace(status=ReaderStatus(True, OFFSET, "binlog.000007", 2000))
        monkeypatch.setattr(run, "reader", reader)
        asyncio.run(service.status())
        monkeypatch.setattr(run, "reader", None)
        asyncio.run(service.status())
    assert needed == [None, OFFSET, OFFSET]
