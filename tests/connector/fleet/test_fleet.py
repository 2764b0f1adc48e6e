"""A fleet's configurations on one worker, with a topic in memory."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from mode import Service

from rowtide.connector.config import Configuration, ConfigurationError
from rowtide.connector.delivery.errors import ProducerFenced, TakenOver
from rowtide.connector.engine.run import Checks
from rowtide.connector.errors import ConnectorError, SignalError
from rowtide.connector.fleet.configurations import (
    ConnectorPlace,
    Target,
    connector_record,
    place_record,
    restart_record,
    target_record,
)
from rowtide.connector.fleet.faust_app import create_app
from rowtide.connector.fleet.fleet import Fleet, Member, _is_news, partition_of
from rowtide.connector.fleet.settings import FleetSettings, connector_configuration
from rowtide.connector.fleet.statuses import ConnectorStatus, Statuses, status_records
from rowtide.connector.fleet.topic_log import TopicLog
from rowtide.connector.source.binlog_stream import ReplicaReplaced
from rowtide.connector.worker.web.connect_rest import BadRequest, StoreUnavailable
from rowtide.connector.worker.web.settings import WebSettings
from tests.connector.fleet.test_settings import CONNECTOR, settings
from tests.connector.worker.test_standby import until
from tests.support.processes.made_tasks import Connector, Task

if TYPE_CHECKING:
    from rowtide.connector.fleet.configurations import Record

SALTED = {
    "column.mask.hash.SHA-256.with.salt.pepper": "shop.orders.mail",
    "column.mask.hash.SHA-256.with.salt.thyme": "shop.orders.phone",
    "custom.sanitize.pattern": ".*hostname$",
    "database.password": "${env:PASSWORD}",
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Fleet], Awaitable[None]]], None]:
    """Run a function with a fleet, which reads what it writes after other tasks have run."""
    monkeypatch.setenv("PASSWORD", "secret")
    fleet, offsets = Fleet(settings(tmp_path), lambda: "w:1"), itertools.count()

    async def write(topic: str, records: Collection[Record]) -> None:
        def read() -> None:
            for key, value in records:
                fleet._apply(topic, key, value, next(offsets))

        asyncio.get_running_loop().call_later(0.1, read)

    monkeypatch.setattr(fleet, "_write", write)

    async def work(use: Callable[[Fleet], Awaitable[None]]) -> None:
        await use(fleet)

    return lambda use: asyncio.run(work(use))


def test_a_changed_configuration_is_known_when_the_request_ends(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None],
) -> None:
    async def use(fleet: Fleet) -> None:
        await fleet.put("shop", CONNECTOR)
        await fleet.put("shop", {**Member(fleet, "shop").properties(), "poll.interval.ms": "700"})
        assert Member(fleet, "shop").properties()["poll.interval.ms"] == "700"
        assert fleet.configurations.connectors["shop"].properties == CONNECTOR | {"poll.interval.ms": "700"}

    run(use)


def test_a_connector_that_conflicts_with_another_one_is_refused(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None],
) -> None:
    async def use(fleet: Fleet) -> None:
        await fleet.put("shop", CONNECTOR)
        with pytest.raises(ConfigurationError) as error:
            await fleet.put("copy", CONNECTOR)
        assert [problem.property for problem in error.value.problems] == ["topic.prefix", "database.server.id"]
        assert "shop and copy have the same: both would write to the same topics" in str(error.value)
        assert "copy" not in fleet.configurations.connectors
        await fleet.put("stopped", CONNECTOR, "STOPPED")
        await fleet.put("stopped", CONNECTOR | {"poll.interval.ms": "700"})
        await fleet.put("copy", CONNECTOR | {"topic.prefix": "copy", "database.server.id": "6"})
        with pytest.raises(ConfigurationError, match="shop and copy have the same"):
            await fleet.put("copy", CONNECTOR | {"topic.prefix": "copy"})
        await fleet.configure(target_record("shop", Target.STOPPED))
        assert await fleet._until(lambda: fleet.configurations.connectors["shop"].target is Target.STOPPED)
        await fleet.put("copy", CONNECTOR)

    run(use)


def test_a_request_builds_only_changed_configurations(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    built = list[str]()

    def counted(given: FleetSettings, name: str, properties: Mapping[str, str]) -> Configuration:
        built.append(name)
        return connector_configuration(given, name, properties)

    monkeypatch.setattr("rowtide.connector.fleet.fleet.connector_configuration", counted)

    async def use(fleet: Fleet) -> None:
        await fleet.put("shop", CONNECTOR)
        for number in (6, 7):
            own = {"topic.prefix": f"crm{number}", "database.server.id": f"{number}"}
            await fleet.put(f"crm{number}", CONNECTOR | own)
        assert sorted(built) == ["crm6", "crm6", "crm7", "shop", "shop"]
        await fleet.put("shop", CONNECTOR | {"topic.prefix": "moved"})
        await fleet.put("copy", CONNECTOR | {"database.server.id": "8"})
        with pytest.raises(ConfigurationError, match="shop and last have the same"):
            await fleet.put("last", CONNECTOR | {"topic.prefix": "moved", "database.server.id": "9"})

    run(use)


def test_a_stopped_connector_is_not_resumed_into_a_conflict(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None],
) -> None:
    async def use(fleet: Fleet) -> None:
        await fleet.put("shop", CONNECTOR)
        await fleet.put("copy", CONNECTOR, "STOPPED")
        copy, conflict = (
            Member(fleet, "copy"),
            r"copy stays STOPPED, .* topic\.prefix: shop and copy have the same: both",
        )
        with pytest.raises(BadRequest, match=conflict):
            await copy.resume()
        with pytest.raises(BadRequest, match=conflict):
            await copy.hold("PAUSED")
        await Member(fleet, "shop").hold("PAUSED")
        await Member(fleet, "shop").resume()
        await Member(fleet, "shop").hold("STOPPED")
        assert await fleet._until(lambda: fleet.configurations.connectors["shop"].target is Target.STOPPED)
        await copy.resume()
        assert await fleet._until(lambda: fleet.configurations.connectors["copy"].target is Target.STARTED)
        fleet._apply(fleet.settings.config_topic, *connector_record("broken", {"topic.prefix": "shop"}), -3)
        await Member(fleet, "broken").hold("STOPPED")
        assert await fleet._until(lambda: fleet.configurations.connectors["broken"].target is Target.STOPPED)
        await Member(fleet, "broken").resume()

    run(use)


def test_a_conflict_of_connectors_that_exist_hinders_no_other_change(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None],
) -> None:
    async def use(fleet: Fleet) -> None:
        for offset, name in enumerate(("shop", "copy")):
            fleet._apply(fleet.settings.config_topic, *connector_record(name, CONNECTOR), -2 + offset)
        fleet._apply(fleet.settings.config_topic, *connector_record("broken", {"topic.prefix": "shop"}), -3)
        await fleet.put("copy", CONNECTOR | {"poll.interval.ms": "700"})
        await fleet.put("third", CONNECTOR | {"topic.prefix": "third", "database.server.id": "6"})

    run(use)


def test_a_configuration_that_is_not_read_back_is_an_error(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtide.connector.fleet.fleet._READ_BACK_S", 0.0)

    async def use(fleet: Fleet) -> None:
        with pytest.raises(StoreUnavailable, match="shop is stored, and this worker has not read it yet"):
            await fleet.put("shop", CONNECTOR)

    run(use)


def test_requests_do_not_wait_for_each_other_while_kafka_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtide.connector.fleet.fleet._TURN_S", 0.01)

    async def work() -> None:
        fleet = Fleet(settings(tmp_path), lambda: "w:1")
        async with fleet._writing:
            with pytest.raises(StoreUnavailable, match="earlier records have not been acknowledged"):
                await fleet.configure(target_record("shop", Target.STOPPED))

    asyncio.run(work())


def test_secrets_are_shown_as_asterisks_and_stay_as_they_are(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None],
) -> None:
    async def use(fleet: Fleet) -> None:
        await fleet.put("shop", CONNECTOR | SALTED)
        shown = Member(fleet, "shop").properties()
        assert not [text for text in (*shown, *shown.values()) if "pepper" in text or "thyme" in text or text == "db"]
        assert len(shown) == len(CONNECTOR | SALTED)
        await fleet.put("shop", {**shown, "poll.interval.ms": "700"})
        assert fleet.configurations.connectors["shop"].properties == CONNECTOR | SALTED | {"poll.interval.ms": "700"}
        with pytest.raises(ConfigurationError, match=r"database\.password: asterisks stand for the stored value"):
            await fleet.put("copy", CONNECTOR | {"database.password": "********"})

    run(use)


def test_offsets_stay_once_a_connector_shall_run(run: Callable[[Callable[[Fleet], Awaitable[None]]], None]) -> None:
    async def use(fleet: Fleet) -> None:
        await fleet.put("shop", CONNECTOR)
        with pytest.raises(BadRequest, match="shop is no longer stopped"):
            await Member(fleet, "shop").alter_offsets(None)

    run(use)


@pytest.mark.parametrize("kind", [ProducerFenced, TakenOver, ReplicaReplaced])
def test_one_that_is_taken_over_begins_again_once(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[ConnectorError],
) -> None:
    """A worker that wakes may take a connector back for a moment. A program outside of the fleet does not stop."""
    monkeypatch.setattr("rowtide.connector.fleet.fleet.ConnectorService", Connector)

    async def use(fleet: Fleet) -> None:
        failures: list[tuple[str, BaseException]] = []
        fleet.on_failure = failures.append
        working = await reconciling(fleet, "shop")

        def running() -> Task | None:
            service = fleet.services.get("shop")
            task: Task | None = None if service is None else service.connector  # type: ignore[assignment]
            return task if task is not None and task.runs else None

        async def taken_over() -> Task:
            await until(running)
            task = running()
            assert task is not None
            task.fail(kind("another one"))
            await asyncio.sleep(0.1)
            return task

        first = await taken_over()
        assert fleet.state_of("shop").state == "RESTARTING"
        fleet._runs["shop"].again_at = 0.0
        second = await taken_over()
        assert second is not first
        assert (fleet.state_of("shop").state, len(failures)) == ("FAILED", 1)
        assert "another one" in fleet.state_of("shop").trace
        fleet._apply(fleet.settings.config_topic, *restart_record("shop", only_failed=True), 100)
        await taken_over()
        assert fleet.state_of("shop").state == "RESTARTING", "somebody has restarted it since"
        working.cancel()

    run(use)


def test_what_another_worker_has_checked_is_not_checked_again(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rowtide.connector.fleet.fleet.ConnectorService", Connector)

    async def use(fleet: Fleet) -> None:
        working = await reconciling(fleet, "shop")

        async def checks(before: ConnectorStatus | None) -> Checks:
            """What a start after this status checks."""
            for record in status_records("shop", before):
                fleet._apply_status(*record)
            fleet._restarts.add("shop")
            fleet._changed.set()
            await until(lambda: not fleet._restarts and not fleet._steps and "shop" in fleet.services)
            task: Task = fleet.services["shop"].connector  # type: ignore[assignment]
            return task.checks

        assert await checks(None) is Checks.ALL
        own = fleet._news()["shop"]
        assert own is not None
        assert own.checked
        moved = replace(own, worker_id="v:1")
        assert await checks(moved) is Checks.SERVER
        assert await checks(replace(moved, state="UNASSIGNED")) is Checks.SERVER, "its worker has ended in order"
        assert await checks(own) is Checks.ALL, "somebody has restarted it"
        assert await checks(replace(moved, checked="")) is Checks.ALL, "it had not begun to run"
        await fleet.put("shop", CONNECTOR | {"poll.interval.ms": "700"})
        assert await checks(moved) is Checks.ALL, "it has another configuration"
        working.cancel()

    run(use)


@pytest.mark.parametrize("hangs", [False, True])
def test_few_connectors_start_at_the_same_time(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None], monkeypatch: pytest.MonkeyPatch, *, hangs: bool
) -> None:
    """One that waits for its server delays the others for a moment only."""
    monkeypatch.setattr("rowtide.connector.fleet.fleet.ConnectorService", Connector)
    monkeypatch.setattr("rowtide.connector.fleet.fleet._START_S", 0.0 if hangs else 600.0)
    monkeypatch.setattr(Task, "state", "RECOVERING")

    async def use(fleet: Fleet) -> None:
        for number in range(5):
            apply(fleet, connector_record(f"c{number}", CONNECTOR), number)
        working = await reconciling(fleet)
        if hangs:
            await until(lambda: len(fleet.services) == 5)
        else:
            await until(lambda: len(fleet.services) == 3)
            await asyncio.sleep(0.3)
            assert len(fleet.services) == 3
            monkeypatch.setattr(Task, "state", "RUNNING")
            await until(lambda: len(fleet.services) == 5)
        await until(lambda: not fleet._steps)
        working.cancel()

    run(use)


def test_no_step_begins_while_the_worker_stops(
    run: Callable[[Callable[[Fleet], Awaitable[None]]], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would stop a connector that the end of the worker stops, too; the other connectors would not be stopped."""
    monkeypatch.setattr("rowtide.connector.fleet.fleet.ConnectorService", Connector)

    async def use(fleet: Fleet) -> None:
        working = await reconciling(fleet, "shop")
        await until(lambda: "shop" in fleet.services and not fleet._steps)
        fleet._stopped.set()
        fleet._restarts.add("shop")
        fleet._changed.set()
        await working
        assert not fleet._steps

    run(use)


ALL = {"crew-fleet": range(32), "crew-fleet.ssd": range(4)}


def labelled(tmp_path: Path) -> Fleet:
    """A worker with the label ssd, which knows a connector that needs it."""
    given = {"rowtide_worker_labels": "ssd", "rowtide_fleet_balance_interval_ms": "1000"}
    fleet = Fleet(settings(tmp_path, **given), lambda: "w:1")
    apply(fleet, connector_record("shop", CONNECTOR | {"rowtide.runs.on": "ssd"}), 1)
    apply(fleet, connector_record("crm", CONNECTOR), 2)
    fleet._caught_up = True
    return fleet


async def reconciling(fleet: Fleet, *names: str) -> asyncio.Future[None]:
    """Give a worker all partitions and some connectors, and let it start and stop them until this is cancelled."""
    fleet.assigned({"crew-fleet": range(32)}, {"w": {"crew-fleet": range(32)}})
    fleet._begin()
    for name in names:
        await fleet.put(name, CONNECTOR)
    return asyncio.ensure_future(fleet._reconcile(fleet))


def apply(fleet: Fleet, record: Record, offset: int) -> None:
    """Read a record of the topic of configurations."""
    fleet._apply("crew-config", *record, offset)


def test_a_connector_with_a_label_belongs_to_the_partition_of_its_label(tmp_path: Path) -> None:
    fleet = labelled(tmp_path)
    fleet.assigned({"crew-fleet": range(32), "crew-fleet.ssd": []}, {"w": ALL})
    assert (fleet.owns("shop"), fleet.owns("crm")) == (False, True)
    assert fleet._news().keys() == set(), "the worker with the partition of the label speaks for it"
    fleet.assigned({"crew-fleet": [], "crew-fleet.ssd": [partition_of("shop", 4)]}, {"w": ALL})
    assert (fleet.owns("shop"), fleet.owns("crm")) == (True, False)
    apply(fleet, connector_record("shop", CONNECTOR), 3)
    assert not fleet.owns("shop"), "it has no label any more"


def test_a_label_that_no_worker_has_is_said_by_one_worker(tmp_path: Path) -> None:
    fleet = labelled(tmp_path)
    apply(fleet, connector_record("far", CONNECTOR | {"rowtide.runs.on": "moon"}), 3)
    fleet.assigned(ALL, {"w": ALL})
    assert not fleet.owns("far")
    status = fleet._news()["far"]
    assert status is not None
    assert (status.state, status.trace) == (
        "UNASSIGNED",
        "no worker of the fleet has the label moon (rowtide.worker.labels)",
    )
    assert fleet.state_of("far").trace == status.trace
    fleet._written["far"] = status
    assert "far" not in fleet._news()
    apply(fleet, target_record("far", Target.PAUSED), 4)
    assert (fleet._news()["far"] or status).state == "PAUSED"
    fleet.assigned(ALL, {"w": ALL, "v": {"crew-fleet.moon": [0]}})
    assert "far" not in fleet._news(), "a worker with the label speaks for it"
    assert "far" not in fleet._written
    fleet.assigned({"crew-fleet": [], "crew-fleet.ssd": range(4)}, {"w": ALL})
    assert "far" not in fleet._news(), "another worker has its partition of the topic of all workers"


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Record, int]]:
    """What workers write: topic, record and partition."""
    found: list[tuple[str, Record, int]] = []

    def write(_log: object, topic: str, records: Collection[Record], partition: int = -1) -> None:
        found.extend((topic, one, partition) for one in records)

    monkeypatch.setattr(TopicLog, "write", write)
    return found


def test_a_signal_follows_a_connector_with_a_label_or_one_that_was_moved(
    tmp_path: Path, written: list[tuple[str, Record, int]]
) -> None:
    """Its sender knows the partition of the name only."""
    fleet, value = labelled(tmp_path), b'{"type":"log"}'
    mine = {"crew-fleet": range(16), "crew-fleet.ssd": []}
    others = {"crew-fleet": range(16, 32), "crew-fleet.ssd": range(4)}
    fleet.assigned(mine, {"w": mine, "v": others})
    apply(fleet, place_record("crm", ConnectorPlace(20, 0)), 3)
    for name in ("shop", "crm"):
        asyncio.run(fleet.signal(name, value))
    assert written == [
        ("crew-fleet.ssd", (b"shop", value), partition_of("shop", 4)),
        ("crew-fleet", (b"crm", value), 20),
    ]
    fleet.assigned(mine, {"w": mine})
    with pytest.raises(SignalError, match="no worker of the fleet has the label of connector shop"):
        asyncio.run(fleet.signal("shop", value))
    apply(fleet, place_record("crm", ConnectorPlace(3, 0)), 4)
    for name in ("crm", "unknown"):
        with pytest.raises(SignalError, match=f"connector {name} does not run on this worker"):
            asyncio.run(fleet.signal(name, value))
    assert len(written) == 2


def test_a_connector_is_where_it_was_moved(tmp_path: Path) -> None:
    fleet = labelled(tmp_path)
    mine = {"crew-fleet": [7], "crew-fleet.ssd": []}
    fleet.assigned(mine, {"w": mine, "v": {"crew-fleet": [one for one in range(32) if one != 7]}})
    apply(fleet, place_record("crm", ConnectorPlace(7, 0)), 3)
    assert fleet.owns("crm")
    apply(fleet, connector_record("crm", CONNECTOR | {"max.batch.size": "100"}), 4)
    assert fleet.owns("crm"), "with another configuration, too"
    apply(fleet, place_record("crm", None), 5)
    assert fleet.owns("crm") is (partition_of("crm", 32) == 7)
    apply(fleet, place_record("crm", ConnectorPlace(1000, 0)), 6)
    assert fleet.owns("crm") is (partition_of("crm", 32) == 7), "the topic has fewer partitions"


def test_a_topic_with_more_partitions_than_at_the_start_has_one_owner_of_each_connector(tmp_path: Path) -> None:
    """A worker that has started before and one that has started since would both run it otherwise, or neither."""
    workers = {"w": {"crew-fleet": range(32)}, "v": {"crew-fleet": range(32, 64)}}
    before, since = Fleet(settings(tmp_path), lambda: "w:1"), Fleet(settings(tmp_path), lambda: "v:1")
    names = [f"shop{number}" for number in range(50)]
    for fleet in (before, since):
        for offset, name in enumerate(names):
            apply(fleet, connector_record(name, CONNECTOR), offset)
    before.assigned({"crew-fleet": range(32)}, {"w": {"crew-fleet": range(32)}})
    assert all(before.owns(name) for name in names)
    before.assigned(workers["w"], workers)
    since.assigned(workers["v"], workers)
    assert [(name, before.owns(name)) for name in names] == [(name, not since.owns(name)) for name in names]
    assert {before.owns(name) for name in names} == {True, False}


def running(fleet: Fleet, loads: Mapping[str, int | None]) -> None:
    """Add connectors that run with these loads, each in partition 0."""
    for offset, (name, load) in enumerate(loads.items()):
        apply(fleet, connector_record(name, CONNECTOR), 100 + offset)
        apply(fleet, place_record(name, ConnectorPlace(0, 0)), 200 + offset)
        for record in status_records(name, ConnectorStatus("RUNNING", "w:1", 1, "", load, movable=True)):
            fleet._apply("crew-status", *record, offset)


def test_one_connector_moves_and_then_stays(tmp_path: Path, written: list[tuple[str, Record, int]]) -> None:
    fleet = labelled(tmp_path)
    fleet.assigned(ALL, {"w": {"crew-fleet": [0]}, "v": {"crew-fleet": range(1, 32)}})
    running(fleet, {"big": 9_000_000, "small": 4_000_000, "new": None})
    asyncio.run(fleet._move())
    assert not written, "a load is not known yet"
    running(fleet, {"new": 1_000})
    asyncio.run(fleet._move())
    ((topic, record, _),) = written
    assert (topic, record[0]) == ("crew-config", b"rowtide-partition-big")
    own = partition_of("big", 32)
    assert json.loads(record[1] or b"")["partition"] == own != 0
    apply(fleet, record, 300)
    asyncio.run(fleet._move())
    assert len(written) == 1
    running(fleet, {"small": 0})
    asyncio.run(fleet._move())
    assert len(written) == 1, "it has just moved"
    apply(fleet, place_record("big", ConnectorPlace(0, round(time.time() * 1000) + 10**9)), 301)
    running(fleet, {"small": 4_000_000})
    asyncio.run(fleet._move())
    assert [key for _, (key, _), _ in written[1:]] == [b"rowtide-partition-big"], "the clock was wrong then"


def test_statuses_have_loads_only_in_fleets_that_balance_them() -> None:
    plain, measured = (
        ConnectorStatus("RUNNING", "w:1", 1),
        ConnectorStatus("RUNNING", "w:1", 1, "", 5_000, movable=True),
    )
    assert b"load" not in (next(status_records("a", plain))[1] or b"")
    found = Statuses()
    found.apply(*next(status_records("a", measured)))
    assert (found.by_name["a"].load, found.by_name["a"].movable) == (5_000, True)
    assert _is_news(measured, plain)
    assert not _is_news(replace(measured, load=5_900), measured)
    assert _is_news(replace(measured, load=9_000), measured)
    assert _is_news(replace(measured, movable=False), measured)


def test_a_status_that_a_former_owner_wrote_later_is_replaced(
    tmp_path: Path, written: list[tuple[str, Record, int]]
) -> None:
    """It did not know yet that the connector was moved, so no rebalance makes the new owner write again."""
    fleet = labelled(tmp_path)
    apply(fleet, connector_record("far", CONNECTOR | {"rowtide.runs.on": "moon"}), 3)
    fleet.assigned(ALL, {"w": ALL})

    def said() -> list[bytes]:
        written.clear()
        asyncio.run(fleet._say(fleet._news()))
        return [key for _, (key, _), _ in written]

    def read(status: ConnectorStatus) -> None:
        for record in status_records("far", status):
            fleet._apply("crew-status", *record, 10)

    own = [b"status-connector-far", b"status-task-far-0"]
    assert said() == own
    read(fleet._written["far"])
    assert said() == []
    read(ConnectorStatus("FAILED", "v:1", 3, "fenced"))
    assert said() == own
    read(fleet._written["far"])
    read(ConnectorStatus("FAILED", "v:1", 3, "fenced"))
    fleet.assigned({}, {"v": ALL})
    assert said() == [], "it belongs to another worker"


def test_records_of_a_key_are_where_kafka_connect_puts_them(tmp_path: Path) -> None:
    """A status of a cluster that was taken over would be newer than all later ones otherwise."""
    fleet = Fleet(settings(tmp_path), lambda: "w:1")
    assert fleet._log._writer._settings["partitioner"] == "murmur2_random"


@pytest.mark.parametrize("worker", ["WORKER-1:6066", "worker_2.example:6066", "[::1]:6066", "::1:6066", "wörker:1"])
def test_workers_know_the_addresses_of_each_other(tmp_path: Path, worker: str) -> None:
    other = create_app(settings(tmp_path), {"crew-fleet": 32}, WebSettings.choose(port=6066))
    other.connectors.worker_id = lambda: worker
    other._name_worker()
    fleet = Fleet(settings(tmp_path), lambda: "w:1")
    without_address, own = "http://7ee4b7f2", "http://7ee4b7f3/w%3A1"
    urls = (str(other.conf.canonical_url), without_address, own)
    fleet.assigned({}, {url: {"crew-fleet": [number]} for number, url in enumerate(urls)})
    assert fleet.workers() == [worker]
    for record in status_records("shop", ConnectorStatus("RUNNING", worker, 1)):
        fleet._apply("crew-status", *record, 1)
    for record in status_records("crm", ConnectorStatus("RUNNING", "left:1", 1)):
        fleet._apply("crew-status", *record, 2)
    assert [fleet.worker_of(name) for name in ("shop", "crm", "unknown")] == [worker, None, None]


def test_a_failure_outside_of_a_task_ends_the_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Such as topics that cannot be read any more: a worker that only stops to reconcile would keep its partitions."""
    monkeypatch.setattr(TopicLog, "start", lambda _log: None)

    async def work() -> BaseException | None:
        worker = Service()
        fleet = worker.add_dependency(Fleet(settings(tmp_path), lambda: "w:1"))
        async with worker:
            fleet._crash_with(ConnectorError("the topic is gone"))
            await asyncio.wait_for(worker._crashed.wait(), 60)
            return worker.crash_reason

    assert str(asyncio.run(work())) == "the topic is gone"
