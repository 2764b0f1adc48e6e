"""The connectors of a fleet that belong to this worker. It starts, stops and restarts them one by one."""

import asyncio
import contextlib
import functools
import json
import logging
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlsplit

from mode import Service

from rowtide.connector.config import Configuration, ConfigurationError, Problem
from rowtide.connector.config.catalogue.running import SANITIZE_PATTERN
from rowtide.connector.config.conflicts import conflicts
from rowtide.connector.config.secret import DEFAULT_SANITIZE_PATTERN, MASK, Sanitizer, masked_name
from rowtide.connector.engine.run import Checks
from rowtide.connector.errors import SignalError
from rowtide.connector.fleet.balance import IDLE, LoadMeter, Placed, Workers, next_move
from rowtide.connector.fleet.configurations import (
    BrokenRecord,
    Configurations,
    Connector,
    ConnectorPlace,
    Level,
    Record,
    Restart,
    Target,
    connector_record,
    level_record,
    place_record,
    restart_record,
    target_record,
)
from rowtide.connector.fleet.settings import (
    LABELS,
    FleetSettings,
    connector_configuration,
    digest,
    label_of,
    own_changes,
)
from rowtide.connector.fleet.statuses import ConnectorStatus, Statuses, status_records, topic_record
from rowtide.connector.fleet.topic_log import TopicLog
from rowtide.connector.fleet.topics import GroupInUse, require_group
from rowtide.connector.kafka_producer.batches.partitions import murmur2
from rowtide.connector.worker.changed_secrets import watch
from rowtide.connector.worker.connectors import Failure, with_share
from rowtide.connector.worker.failures import CONTEST_S, StopTimeoutError, describe, is_taken_over
from rowtide.connector.worker.lease import Lease
from rowtide.connector.worker.offsets import read_offsets, write_offsets
from rowtide.connector.worker.service import ConnectorService
from rowtide.connector.worker.validation import problems_of
from rowtide.connector.worker.web import log_levels
from rowtide.connector.worker.web.connect_rest import (
    BadRequest,
    ConnectorState,
    Controlled,
    StoreUnavailable,
    connect_state,
)
from rowtide.schema_history.store.topic_writer import TopicWriteError
from rowtide.topics.errors import TopicError
from rowtide.topics.java_regex import InvalidPatternError

log = logging.getLogger(__name__)

_TICK_S = 1.0
_THREADS = 64
"""Threads of the event loop. Each connector may wait in two for servers that do not answer."""
_LOOK_S = 0.05
_READ_BACK_S = 5.0
_STARTS = 3
"""The number of connectors that start at the same time: the first ones run soon, and those that run are not late."""
_START_S = 0.5
"""The longest time for which one start delays the next: a server may not answer."""
_TURN_S = 30.0
"""The longest time for which a record waits for those before it. Without it, many requests wait while Kafka is away."""
_LOAD_CHANGE = 0.2
"""A load is written again when it has changed by this fraction."""
_BEGINNING = ("STARTING", "RECOVERING")
_REST_INTERVALS = 12
"""The number of intervals for which a connector that has moved stays where it is."""
_RISES = {(Target.STOPPED, Target.PAUSED), (Target.STOPPED, Target.STARTED), (Target.PAUSED, Target.STARTED)}
"""Changes of the target state with which a connector may begin to conflict with another one."""
_REFERENCE = re.compile(r"\$\{[^}]*\}")


def partition_of(name: str, partitions: int) -> int:
    """Return the partition of the fleet's topic whose owner runs a connector: Kafka's choice for its name as a key."""
    return (murmur2(name.encode()) & 0x7FFFFFFF) % partitions


def _shown_names(properties: Mapping[str, str]) -> dict[str, str]:
    """Return the names of properties by their displayed names, which have asterisks instead of salts."""
    found: dict[str, str] = {}
    for name in properties:
        shown = masked_name(name)
        while shown in found:
            shown += "*"
        found[shown] = name
    return found


def _with_secrets(properties: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Return a configuration with the known secrets instead of asterisks.

    Raises:
        ConfigurationError: a secret is not known.
    """
    names = _shown_names(known)
    named = {names.get(name, name): text for name, text in properties.items()}
    missing = [name for name, text in named.items() if text == MASK and name not in known]
    if missing:
        message = "asterisks stand for the stored value, but there is none: give the value itself"
        raise ConfigurationError([Problem(masked_name(name), message) for name in missing])
    return {name: known[name] if text == MASK else text for name, text in named.items()}


@dataclass(slots=True)
class _Run:
    """A connector that runs here, or has failed here.

    Attributes:
        connector: the definition from which it was started.
        service: its service; ``None`` if its configuration is wrong.
        failure: the problem of its configuration; ``None`` if it has started.
        again_at: when it may start again after another process has taken it over, in seconds of the monotonic clock.
        taken_at: when another process took over the previous run, although this worker never lost the partition.
        contested: whether that has happened again soon after: it would never end.
        digest: of its configuration; empty if it is wrong.
        meter: measures its load; ``None`` if loads are not balanced.
        movable: whether it only reads the binlog; a snapshot would read its table from the beginning elsewhere.
    """

    connector: Connector
    service: ConnectorService | None = None
    failure: ConfigurationError | None = None
    again_at: float | None = None
    taken_at: float | None = None
    contested: bool = False
    digest: str = ""
    meter: LoadMeter | None = None
    movable: bool = False

    @property
    def ended_by(self) -> BaseException | None:
        """The failure that has ended it, or the problem of its configuration."""
        if self.service is None:
            return self.failure
        return self.service.connector.failure or self.service.failure

    @property
    def checked(self) -> str:
        """The digest of its configuration if its start has passed all checks; empty otherwise."""
        return self.digest if self.service is not None and self.service.connector.state == "RUNNING" else ""

    @property
    def taken_over(self) -> bool:
        """Whether another process has taken it over; it starts again if it stays assigned to this worker."""
        return is_taken_over(self.ended_by) and not self.contested


class Fleet(Service):
    """Runs the connectors whose partitions this worker has.

    Every connector is started and stopped in its own task: a hanging connector does not delay others.

    Args:
        settings: of the worker.
        worker_id: returns the name of this worker, host and port of its web server, when it has started.
        files: reads the settings again from the files of this worker; ``None`` if it has none.

    Attributes:
        services: the connectors that run here, by name.
        configurations: all connectors of the fleet.
        statuses: the states that the workers report.
        on_failure: called in the event loop when a connector fails.
        on_end: never called: a worker of a fleet without connectors waits for some.
        several: whether log lines name their connector.
        files: as given.
        controlled: all connectors of the fleet, for the REST interface.
        store: creates, changes and deletes them.
        members: the workers, and the connectors that they run.
        worker_id: as given.
    """

    logger = ConnectorService.logger
    several = True

    def __init__(
        self,
        settings: FleetSettings,
        worker_id: Callable[[], str],
        files: Callable[[], FleetSettings] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.settings = self._first_settings = settings
        self.files = files
        self.worker_id = worker_id
        self.services: dict[str, ConnectorService] = {}
        self.configurations = Configurations()
        self.statuses = Statuses()
        self.on_failure: Callable[[Failure], None] = lambda _failure: None
        self.on_end: Callable[[], None] = lambda: None
        self.controlled = Members(self)
        self.store = self
        self.members = self
        self._owned: Mapping[str, Collection[int]] = {}
        self._workers: Workers = {}
        self._assigned_at = 0.0
        self._generation = 0
        self._suspended_until = 0.0
        self._runs: dict[str, _Run] = {}
        self._steps: dict[str, asyncio.Task[None]] = {}
        self._restarts: set[str] = set()
        self._starting = asyncio.Semaphore(_STARTS)
        self._built: dict[str, tuple[int, Configuration]] = {}  # by name, with the revision
        self._written: dict[str, ConnectorStatus] = {}
        self._caught_up = False
        self._changed = asyncio.Event()
        self._joined = asyncio.Event()
        self._writing = asyncio.Lock()
        self._reloading = asyncio.Lock()
        self._late: list[Failure] = []
        self._lease = Lease(settings.session_s - 1, self._lapsed)
        self._log = TopicLog(
            [settings.config_topic, settings.status_topic],
            producer=settings.producer,
            consumer=settings.consumer,
            admin=settings.admin,
            on_record=lambda *record: self._in_loop(self._apply, *record),
            on_caught_up=lambda: self._in_loop(self._begin),
            on_failure=lambda error: self._in_loop(self._crash_with, error),
        )

    @property
    def failures(self) -> list[Failure]:
        """The connectors that did not stop in time. Those that have failed do not end a fleet's worker."""
        return self._late

    @property
    def stop_timeout_s(self) -> float:
        """The time limit of a stop: the longest ``task.shutdown.graceful.timeout.ms``, in seconds."""
        limits = (one.config.delivery.shutdown_timeout_ms / 1000 for one in self.services.values())
        return max(1.0, *limits, 0.0)

    def owns(self, name: str) -> bool:
        """Return whether this worker runs the connector, or should run it."""
        return self._has_partition(name, self._label(name))

    def _label(self, name: str) -> str | None:
        connector = self.configurations.connectors.get(name)
        return None if connector is None else label_of(connector.properties)

    def _has_partition(self, name: str, label: str | None) -> bool:
        topic = self.settings.shared_topic(label)
        count = self._shared_partitions(topic)
        return count > 0 and self._partition(name, count) in self._owned.get(topic, ())

    def _partition(self, name: str, partitions: int) -> int:
        """Return the partition of a connector in a topic with this number of partitions."""
        connector = self.configurations.connectors.get(name)
        place = None if connector is None else connector.place
        return partition_of(name, partitions) if place is None or place.partition >= partitions else place.partition

    def _shared_partitions(self, topic: str) -> int:
        """Return the number of partitions that workers have of a topic.

        All workers have it from the group, so they agree on it when a topic gets more partitions.
        """
        return sum(len(topics.get(topic, ())) for topics in self._workers.values())

    def _is_nobodys(self, name: str) -> bool:
        """Return whether no worker has the label that the connector needs, and this worker must report it."""
        label = self._label(name)
        if label is None or self._shared_partitions(self.settings.shared_topic(label)):
            return False
        return self._has_partition(name, None)

    def assigned(self, partitions: Mapping[str, Collection[int]], workers: Workers) -> None:
        """Replace the partitions of this worker with those that the group has assigned.

        Args:
            partitions: the partitions of each topic that this worker shares.
            workers: the partitions of all workers.
        """
        self._generation += 1
        self._joined.set()
        self._owned, self._workers = partitions, workers
        self._assigned_at = time.monotonic()
        self._written = {
            name: status for name, status in self._written.items() if self.owns(name) or self._is_nobodys(name)
        }
        self._suspended_until = 0.0
        for topic in self.settings.shared_topics:
            count = self._shared_partitions(topic)
            of = f" with the label {label}" if (label := self._label_of_topic(topic)) else ""
            log.info("this worker has %d of %d partitions of the fleet%s", len(partitions.get(topic, ())), count, of)
        self._changed.set()

    def _label_of_topic(self, topic: str) -> str:
        return topic.removeprefix(self.settings.fleet_topic).removeprefix(".")

    async def signal(self, name: str, value: bytes) -> None:
        """Send a signal to a connector of this worker, or to the partition of the worker that runs it.

        A record is in the partition that its sender derived from the connector's name. The connector may have a label,
        or have been moved.

        Args:
            name: of the connector.
            value: the signal as JSON; see ``ConnectorService.signal``.

        Raises:
            SignalError: it is not a signal, no worker has the connector's label, or this one does not currently run it.
        """
        topic = self.settings.shared_topic(self._label(name))
        if name not in self.configurations.connectors or self.owns(name):
            service = self.services.get(name)
            if service is None:
                raise SignalError(f"connector {name} does not run on this worker")
            fields = json.loads(value)
            service.signal(fields if isinstance(fields, dict) else {}, "kafka")
        elif count := self._shared_partitions(topic):
            await self._write(topic, [(name.encode(), value)], self._partition(name, count))
        else:
            raise SignalError(f"no worker of the fleet has the label of connector {name}")

    async def put(self, name: str, properties: Mapping[str, str], initial_state: str | None = None) -> None:
        """Create or change a connector; see ``Store.put``."""
        before = self.configurations.connectors.get(name)
        revision = -1 if before is None else before.revision
        given = _with_secrets(properties, {} if before is None else before.properties)
        config = await asyncio.to_thread(connector_configuration, self.settings, name, given)
        target = None if initial_state is None else Target(initial_state.replace("RUNNING", "STARTED"))
        if (target or (before and before.target)) is not Target.STOPPED:
            await asyncio.to_thread(self._refuse_conflicts, config, list(self.configurations.connectors.values()))
        first = [] if target is None else [target_record(name, target)]
        await self.configure(*first, connector_record(name, given))
        if not await self._until(lambda: self._revision(name) > revision):
            raise StoreUnavailable(f"the configuration of {name} is stored, and this worker has not read it yet")

    async def aim(self, name: str, target: Target) -> None:
        """Set the target state of a connector.

        Raises:
            BadRequest: it would conflict with a connector that is not stopped.
            StoreUnavailable: it cannot be written.
        """
        connectors = dict(self.configurations.connectors)
        connector = connectors.pop(name, None)
        if connector is not None and (connector.target, target) in _RISES:
            await asyncio.to_thread(self._require_no_conflict, connector, connectors.values())
        await self.configure(target_record(name, target))

    def _require_no_conflict(self, connector: Connector, others: Collection[Connector]) -> None:
        try:
            config = connector_configuration(self.settings, connector.name, connector.properties)
        except ConfigurationError:  # its start says what is wrong
            return
        try:
            self._refuse_conflicts(config, others)
        except ConfigurationError as error:
            listed = "; ".join(f"{one.property}: {one.message}" for one in error.problems)
            raise BadRequest(
                f"connector {connector.name} stays {connector.target}, because another one is not stopped. {listed}. "
                "Stop the other one first, or change one of them"
            ) from None

    def _refuse_conflicts(self, config: Configuration, connectors: Collection[Connector]) -> None:
        """Refuse a conflict with a connector that is not stopped, unless the current configuration has it, too.

        Raises:
            ConfigurationError: it has, for example, the ``topic.prefix`` of another connector.
        """
        built: dict[str, tuple[int, Configuration]] = {}
        for one in connectors:
            if one.target is not Target.STOPPED or one.name == config.name:
                before = self._built.get(one.name)
                if before is not None and before[0] == one.revision:
                    built[one.name] = before
                    continue
                with contextlib.suppress(ConfigurationError):  # it cannot start, or is of another program
                    found = connector_configuration(self.settings, one.name, one.properties)
                    built[one.name] = one.revision, found
        self._built = built
        known = {name: found for name, (_, found) in built.items()}
        present = conflicts(known)
        if new := [problem for problem in conflicts(known | {config.name: config}) if problem not in present]:
            raise ConfigurationError(new)

    def _revision(self, name: str) -> int:
        connector = self.configurations.connectors.get(name)
        return -1 if connector is None else connector.revision

    @property
    def kafka(self) -> Mapping[str, str]:
        """Settings of an admin client, with librdkafka's names."""
        return self.settings.admin

    def validate(self, properties: Mapping[str, str]) -> list[Problem]:
        """Return the problems of the configuration of a connector; this may connect to the database."""
        return problems_of(properties, self.candidate)

    def candidate(self, properties: Mapping[str, str], not_required: Collection[str]) -> Configuration:
        """Return the configuration that a connector would have; see ``validation.Build``.

        Asterisks stand for the secrets that a connector with this name has.
        """
        name = properties.get("name", "")
        known = self.configurations.connectors.get(name)
        given = _with_secrets(properties, {} if known is None else known.properties)
        return connector_configuration(self.settings, name, given, not_required=not_required)

    def about(self) -> Mapping[str, Any]:
        """Return the data of this worker that the page shows."""
        return {"worker": self.worker_id(), "labels": list(self.settings.labels), "fleet": self.settings.group}

    def about_connector(self, name: str) -> Mapping[str, Any]:
        """Return the label of a connector, its load in bytes per second, and the time of its last move."""
        connector, status = self.configurations.connectors.get(name), self.statuses.by_name.get(name)
        place = None if connector is None else connector.place
        return {
            "label": self._label(name),
            "load": None if status is None else status.load,
            "moved_ms": None if place is None else place.moved_ms,
        }

    def workers(self) -> Collection[str]:
        """Return the other workers that have joined the fleet, as host and port of their web servers."""
        addresses = {unquote(urlsplit(url).path.removeprefix("/")) for url in self._workers}
        return sorted(addresses - {"", self.worker_id()})  # one without a web server has no address

    def worker_of(self, name: str) -> str | None:
        """Return the other worker that has reported a connector; ``None`` if there is none."""
        status = self.statuses.by_name.get(name)
        return status.worker_id if status is not None and status.worker_id in self.workers() else None

    async def delete(self, name: str) -> None:
        """Delete a connector; see ``Store.delete``."""
        connector = self.configurations.connectors.get(name)
        moved = [] if connector is None or connector.place is None else [place_record(name, None)]
        await self.configure(connector_record(name, None), target_record(name, None), *moved)
        await self._until(lambda: name not in self.configurations.connectors)

    async def set_level(self, logger: str, level: str) -> None:
        """Set the level of a logger on all workers; see ``Store.set_level``."""
        await self.configure(level_record(logger, level))

    async def configure(self, *records: Record) -> None:
        """Write records to the topic of configurations, and wait for their acknowledgement.

        Raises:
            StoreUnavailable: they are not acknowledged in time.
        """
        try:
            await self._write(self.settings.config_topic, records)
        except TopicWriteError as error:
            raise StoreUnavailable(f"{self.settings.config_topic} cannot be written: {error}") from error

    async def forget_topics(self, name: str) -> None:
        """Forget the topics to which a connector has sent records.

        Raises:
            StoreUnavailable: the request cannot be written.
        """
        try:
            await self._write(
                self.settings.status_topic, [topic_record(topic, name, None) for topic in self.statuses.topics(name)]
            )
        except TopicWriteError as error:
            raise StoreUnavailable(f"{self.settings.status_topic} cannot be written: {error}") from error

    async def _until(self, condition: Callable[[], bool], limit_s: float | None = None) -> bool:
        """Wait for a condition, by default until this worker has read its own records, and return whether it is met."""
        end = time.monotonic() + (_READ_BACK_S if limit_s is None else limit_s)
        while not condition() and time.monotonic() < end and not self.should_stop:
            await self.sleep(_LOOK_S)
        return condition()

    def state_of(self, name: str) -> ConnectorState:
        """Return the state of a connector of the fleet, as this worker knows it."""
        connector = self.configurations.connectors.get(name)
        own = None if connector is None else self._status_of(name, connector)
        status = own or self.statuses.by_name.get(name) or ConnectorStatus("UNASSIGNED", "", 0)
        return ConnectorState(status.state, status.worker_id or None, status.trace)

    async def _write(self, topic: str, records: Collection[Record], partition: int = -1) -> None:
        """Write records in turn; see ``TopicLog.write``.

        Raises:
            TopicWriteError: they are not acknowledged in time, or those before them are not.
        """
        try:
            async with asyncio.timeout(_TURN_S):
                await self._writing.acquire()
        except TimeoutError:
            raise TopicWriteError(f"earlier records have not been acknowledged for {_TURN_S:.0f} s") from None
        try:
            await asyncio.to_thread(self._log.write, topic, records, partition)
        finally:
            self._writing.release()

    async def on_start(self) -> None:
        """Start reading the topics."""
        threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="asyncio")
        asyncio.get_running_loop().set_default_executor(threads)
        self._log.start()
        self._lease.start()

    async def on_stop(self) -> None:
        """Stop all connectors, and leave them to the other workers."""
        self._lease.close()
        await asyncio.gather(*self._steps.values(), return_exceptions=True)
        mine = [name for name in self.configurations.connectors if self.owns(name)] if self._caught_up else []
        checked = {name: run.checked for name, run in self._runs.items()}
        given = {name: replace(self._status("UNASSIGNED"), checked=checked.get(name, "")) for name in mine}
        await asyncio.gather(*(self._stop_run(name) for name in list(self._runs)))
        self._log.close()
        with contextlib.suppress(TopicWriteError):
            await self._say(given)

    def _in_loop(self, act: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed already
            self.loop.call_soon_threadsafe(act, *arguments)

    def _apply(self, topic: str, key: bytes | None, value: bytes | None, offset: int) -> None:
        if topic == self.settings.status_topic:
            self._apply_status(key, value)
            return
        try:
            request = self.configurations.apply(key, value, offset)
        except BrokenRecord as error:
            name = (key or b"").decode("utf-8", "replace")
            log.warning("topic %s, offset %d: the record of %s is skipped: %s", topic, offset, name, error)
            return
        if isinstance(request, Restart) and self._caught_up:
            self._request(request)
        elif isinstance(request, Level) and self._caught_up:
            log_levels.set_level(request.logger, request.level)
        self._changed.set()

    def _apply_status(self, key: bytes | None, value: bytes | None) -> None:
        before = {name: self.statuses.topics(name) for name in self.services} if value is None else {}
        of = self.statuses.apply(key, value)
        status = self._written.get(of)
        if status is not None and self.statuses.by_name.get(of, status).worker_id != status.worker_id:
            del self._written[of]  # the former owner has written after this worker, which writes again
        for name, topics in before.items():
            if topics - self.statuses.topics(name):
                self.add_future(self.services[name].reset_topics())

    def _request(self, request: Restart) -> None:
        run = self._runs.get(request.name)
        if run is not None and (not request.only_failed or run.ended_by is not None):
            self._restarts.add(request.name)

    def _begin(self) -> None:
        self._caught_up = True
        log.info("the fleet has %d connectors", len(self.configurations.connectors))
        self._changed.set()

    def _crash_with(self, error: BaseException) -> None:
        """End the worker, not only this service, because of an error outside of the tasks of this service."""
        if not self.should_stop:
            self.add_future(self.crash(error))

    def _lapsed(self, _seconds: float) -> None:
        """Stop all connectors immediately, in the lease's thread: another worker may run them."""
        self._suspended_until = time.monotonic() + self.settings.session_s
        for service in list(self.services.values()):
            service.connector.stop(0)
        self._in_loop(self._changed.set)

    @Service.task
    async def _reconcile(self) -> None:
        """Bring each connector nearer to its target state."""
        while not self.should_stop:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), _TICK_S)
            self._changed.clear()
            if self.should_stop or not self._caught_up:  # on_stop() would stop the same connectors as a new step
                continue
            for name in {*self._runs, *self.configurations.connectors}:
                if name not in self._steps and self._is_wrong(name):
                    self._steps[name] = asyncio.ensure_future(self._step(name))
                    self._steps[name].add_done_callback(functools.partial(self._stepped, name))

    def _stepped(self, name: str, step: "asyncio.Task[None]") -> None:
        del self._steps[name]
        if not step.cancelled() and step.exception() is not None:
            self._crash_with(step.exception() or RuntimeError(name))
        self._changed.set()

    @Service.task
    async def _check_group(self) -> None:
        """End this worker if another fleet has joined the group since the check before this one joined.

        Raises:
            GroupInUse: it has.
        """
        await self.wait(self._joined.wait())
        while not self.should_stop:
            try:
                await asyncio.to_thread(require_group, self.settings)
            except GroupInUse:
                raise
            except TopicError:  # the check before this worker joined has passed, so this is temporary
                await self.sleep(_TICK_S)
            else:
                return

    @Service.task
    async def _tell(self) -> None:
        """Write the statuses that have changed."""
        while not self.should_stop:
            try:
                await self._measure()
                await self._say(self._news())
                await self._say_topics()
            except TopicWriteError as error:
                log.warning("the states of connectors cannot be written to %s: %s", self.settings.status_topic, error)
            await self.sleep(_TICK_S)

    async def _measure(self) -> None:
        """Sample the loads of the connectors that run here."""
        for run in list(self._runs.values()):
            if run.meter is not None and run.service is not None:
                now = await run.service.status_at_once()
                read = 0 if now.reader is None else now.reader.received_bytes
                run.meter.sample(read + (0 if now.delivery is None else now.delivery.bytes), time.monotonic())
                run.movable = now.ready and not now.takes_snapshot

    @Service.task
    async def _watch_secrets(self) -> None:
        """Restart connectors whose secrets have changed in their files."""
        await watch(
            self, lambda: {name: self._read_from_files(run) for name, run in self._runs.items()}, self._renew_secrets
        )

    def _read_from_files(self, run: _Run) -> tuple[_Run, Mapping[str, str], Mapping[str, str] | None]:
        if run.service is None:
            return run, {**self.settings.properties, **run.connector.properties}, None
        return run, run.service.config.properties, run.service.config.file_values

    async def _renew_secrets(self, name: str) -> None:
        self._restarts.add(name)
        self._changed.set()

    async def reload(self) -> None:
        """Read the files of this worker again, and restart connectors with changed defaults, one after the other."""
        assert self.files is not None
        async with self._reloading:
            try:
                found = await asyncio.to_thread(self.files)
                changed = await asyncio.to_thread(self._changed_by, found, list(self._runs.values()))
            except ConfigurationError as error:
                log.error("the files of this worker are not used, and nothing changes: %s", error)  # noqa: TRY400
                return
            if own := own_changes(self._first_settings, found):
                log.warning(
                    "restart this worker, which reads these changed properties at its start: %s", ", ".join(own)
                )
            self.settings = replace(self.settings, properties=found.properties)
            for name in changed:
                log.info("connector %s starts again: its defaults in the files of this worker have changed", name)
                self._restarts.add(name)
                self._changed.set()
                while not self.should_stop and (name in self._steps or (name in self._restarts and name in self._runs)):
                    await self.sleep(_LOOK_S)
            as_before = len(self._runs) - len(changed)
            log.info("the files were read again: %d connectors changed, %d as before", len(changed), as_before)

    def _changed_by(self, settings: FleetSettings, runs: Collection[_Run]) -> list[str]:
        """Return the connectors of this worker that have another configuration with other settings.

        Raises:
            ConfigurationError: with them, the configuration of a connector that runs would be wrong.
        """
        settings = replace(self.settings, properties=settings.properties)
        changed, problems = list[str](), list[Problem]()
        for run in runs:
            name = run.connector.name
            try:
                config = connector_configuration(settings, name, run.connector.properties)
            except ConfigurationError as error:
                if run.service is not None:
                    problems += [Problem(one.property, f"{one.message} (connector {name})") for one in error.problems]
            else:
                if run.service is None or run.service.config.fingerprint != config.fingerprint:
                    changed.append(name)
        if problems:
            raise ConfigurationError(problems)
        return changed

    @Service.task
    async def _balance(self) -> None:
        """Move one connector after the other to workers with less load."""
        interval = self.settings.balance_s
        while interval and not self.should_stop:
            await self.sleep(interval)
            is_calm = time.monotonic() - max(self._assigned_at, self._suspended_until) > interval
            # The worker with this partition decides. If two workers believe that they have it, the last record is used.
            if self._caught_up and is_calm and 0 in self._owned.get(self.settings.fleet_topic, ()):
                with contextlib.suppress(StoreUnavailable):
                    await self._move()

    async def _move(self) -> None:
        """Move the connector whose move balances loads best, if all loads are known."""
        placed = self._placed()
        move = None if placed is None else next_move(placed, self._workers)
        if move is None:
            return
        connector = self.configurations.connectors[move.name]
        topic = self.settings.shared_topic(label_of(connector.properties))
        own = partition_of(move.name, self._shared_partitions(topic))
        others = sorted(move.partitions)
        partition = own if own in others else others[own % len(others)]
        log.info(
            "connector %s moves to partition %d: the loads of its worker and of the other one, in bytes per second, "
            "become %.0f and %.0f instead of %.0f and %.0f",
            *(move.name, partition, *move.after, *move.before),
        )
        await self.configure(place_record(move.name, ConnectorPlace(partition, round(time.time() * 1000))))

    def _placed(self) -> list[Placed] | None:
        """Return the connectors that run, with their loads; ``None`` if a load is not known yet."""
        found, now_ms = list[Placed](), time.time() * 1000
        for name, one in self.configurations.connectors.items():
            status = self.statuses.by_name.get(name)
            topic = self.settings.shared_topic(label_of(one.properties))
            count = self._shared_partitions(topic)
            if one.target is not Target.STARTED or status is None or status.state != "RUNNING" or not count:
                continue
            if status.load is None:
                return None
            rests = one.place is not None and (
                abs(now_ms - one.place.moved_ms) < _REST_INTERVALS * 1000 * self.settings.balance_s  # clocks differ
            )
            movable = status.movable and not rests
            found.append(Placed(name, topic, self._partition(name, count), float(status.load), movable))
        return found

    async def _say_topics(self) -> None:
        """Write the new topics to which the connectors of this worker have sent records."""
        now = round(time.time() * 1000)
        records = [
            topic_record(topic, name, now)
            for name, service in list(self.services.items())
            for topic in set(await service.topics()) - self.statuses.topics(name)
        ]
        if records:
            await self._write(self.settings.status_topic, records)

    def _news(self) -> dict[str, ConnectorStatus | None]:
        """Return the statuses that have changed; ``None`` for connectors that were deleted."""
        connectors = self.configurations.connectors
        now = {name: self._status_of(name, one) for name, one in connectors.items()}
        self._written = {name: status for name, status in self._written.items() if now.get(name) is not None}
        news: dict[str, ConnectorStatus | None] = {
            name: status
            for name, status in now.items()
            if status is not None and _is_news(status, self._written.get(name))
        }
        if self._caught_up:
            news |= {name: None for name in self.statuses.by_name if name not in connectors and self.owns(name)}
        return news

    async def _say(self, statuses: Mapping[str, ConnectorStatus | None]) -> None:
        records = [record for name, status in statuses.items() for record in status_records(name, status)]
        if records:
            await self._write(self.settings.status_topic, records)
        for name, status in statuses.items():
            if status is None:
                self._written.pop(name, None)
            else:
                self._written[name] = status

    def _wanted(self, name: str) -> Connector | None:
        """Return the definition from which to start the connector; ``None`` if it should not run here."""
        connector = self.configurations.connectors.get(name)
        if connector is None or connector.target is not Target.STARTED or not self.owns(name):
            return None
        return connector if time.monotonic() >= self._suspended_until else None

    def _is_wrong(self, name: str) -> bool:
        wanted, run = self._wanted(name), self._runs.get(name)
        if run is None or wanted is None:
            return (run is None) != (wanted is None)
        if wanted.revision != run.connector.revision or name in self._restarts:
            return True
        if run.service is None:
            return False
        if run.service.connector.state == "STOPPED":  # by the lease
            return True
        return run.taken_over and run.again_at is not None and time.monotonic() >= run.again_at

    async def _step(self, name: str) -> None:
        """Stop the connector if it runs, and start it if it should run."""
        before = self._runs.get(name)
        taken_at = time.monotonic() if before is not None and before.taken_over and name not in self._restarts else None
        self._restarts.discard(name)
        await self._stop_run(name)
        async with self._starting:
            wanted = self._wanted(name)
            if wanted is not None and not self.should_stop:
                await self._start_run(wanted, taken_at)

    async def _start_run(self, connector: Connector, taken_at: float | None) -> None:
        name = connector.name
        try:
            config = await asyncio.to_thread(connector_configuration, self.settings, name, connector.properties)
        except ConfigurationError as error:
            log.warning("connector %s cannot start: %s", name, error)
            self._runs[name] = _Run(connector, failure=error)
            return
        own, before = digest(config), self.statuses.by_name.get(name)
        moves = before is not None and before.checked == own and before.worker_id != self.worker_id()
        service = ConnectorService(
            self._sharing_memory(config),
            checks=Checks.SERVER if moves else Checks.ALL,
            beacon=self.beacon,
            loop=self.loop,
        )
        service.on_end = lambda: self._ended(name)
        meter = LoadMeter(self.settings.balance_s) if self.settings.balance_s else None
        self._runs[name] = _Run(connector, service, taken_at=taken_at, digest=own, meter=meter)
        self.services[name] = service
        await service.maybe_start()
        await self._until(lambda: service.connector.state not in _BEGINNING, _START_S)

    async def _stop_run(self, name: str) -> None:
        run = self._runs.get(name)
        if run is None:
            return
        if run.service is None:
            del self._runs[name]
            return
        await run.service.stop()
        # Two tasks of one connector must never run at the same time in one process.
        while not (run.service.connector.ended or run.service.connector.left_behind or self.should_stop):
            await self.sleep(_TICK_S)
        del self._runs[name]
        self.services.pop(name, None)
        if self.should_stop and isinstance(run.service.failure, StopTimeoutError):
            self._late.append((name, run.service.failure))

    def _sharing_memory(self, config: Configuration) -> Configuration:
        mine = sum(self._wanted(name) is not None for name in self.configurations.connectors)
        return with_share(config, mine)

    def _ended(self, name: str) -> None:
        run = self._runs.get(name)
        if run is None:
            return
        now = time.monotonic()
        run.contested = run.taken_at is not None and now - run.taken_at < CONTEST_S
        if run.taken_over:
            run.again_at = now + self.settings.session_s
            log.info("connector %s: another process has taken over", name)
        elif (failure := run.ended_by) is not None:
            self.on_failure((name, failure))
        self._changed.set()

    def _status(self, state: str, trace: str = "") -> ConnectorStatus:
        return ConnectorStatus(state, self.worker_id(), self._generation, trace)

    def _status_of(self, name: str, connector: Connector) -> ConnectorStatus | None:
        """Return the status of a connector that this worker reports; ``None`` if another worker reports it."""
        nobodys = self._is_nobodys(name)
        if not self._caught_up or not (nobodys or self.owns(name)):
            return None
        run = self._runs.get(name)
        if run is None and nobodys and connector.target is Target.STARTED:
            label = label_of(connector.properties)
            return self._status("UNASSIGNED", f"no worker of the fleet has the label {label} ({LABELS.name})")
        if run is None:  # only now has a connector that is stopped stored its last position
            return None if connector.target is Target.STARTED else self._status(connector.target.value)
        failure = run.ended_by
        if failure is not None and not run.taken_over:
            return self._status("FAILED", describe(failure))
        state = "RESTARTING" if run.service is None or failure is not None else run.service.connector.state
        load = None if run.meter is None else run.meter.rate
        return replace(self._status(connect_state(state)), load=load, movable=run.movable, checked=run.checked)


def _is_news(now: ConnectorStatus, written: ConnectorStatus | None) -> bool:
    """Return whether a status differs from the written one by more than the usual changes of a load."""
    if written is None or now != written:
        return True
    if now.load is None or written.load is None:
        return now.load is not written.load
    largest = max(now.load, written.load)
    return now.movable != written.movable or abs(now.load - written.load) > _LOAD_CHANGE * largest + IDLE


class Members(Mapping[str, Controlled]):
    """All connectors of a fleet by name, whichever worker runs them."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet

    def __getitem__(self, name: str) -> "Member":
        """Return a connector. Raises ``KeyError`` if there is none with this name."""
        if name not in self._fleet.configurations.connectors:
            raise KeyError(name)
        return Member(self._fleet, name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(list(self._fleet.configurations.connectors))

    def __len__(self) -> int:
        """Return the number of connectors."""
        return len(self._fleet.configurations.connectors)


@dataclass(frozen=True, slots=True)
class Member:
    """A connector of a fleet. Requests to it are written to the topic of configurations, which its worker reads."""

    fleet: Fleet
    name: str

    def properties(self) -> Mapping[str, str]:
        """Return its own configuration, with secrets masked, except for references to them."""
        connector = self.fleet.configurations.connectors.get(self.name)
        given = {} if connector is None else connector.properties
        sanitizer = self._sanitizer({**self.fleet.settings.properties, **given})
        return {
            shown: given[name] if _REFERENCE.fullmatch(given[name]) else sanitizer.shown(name, given[name])
            for shown, name in _shown_names(given).items()
        }

    @staticmethod
    def _sanitizer(properties: Mapping[str, str]) -> Sanitizer:
        try:
            return Sanitizer(properties.get(SANITIZE_PATTERN.name, DEFAULT_SANITIZE_PATTERN))
        except InvalidPatternError:  # of a connector that another program has configured
            return Sanitizer()

    async def connect_state(self) -> ConnectorState:
        """Return its state."""
        return self.fleet.state_of(self.name)

    async def offsets(self) -> list[dict[str, Any]]:
        """Return its stored position; see ``Controlled.offsets``."""
        return await read_offsets(self._configuration())

    async def alter_offsets(self, changes: list[Any] | None) -> None:
        """Store another position while it is stopped; see ``Controlled.alter_offsets``."""
        connector = self.fleet.configurations.connectors.get(self.name)
        if connector is not None and connector.target is not Target.STOPPED:  # its worker has not said so yet
            raise BadRequest(f"connector {self.name} is no longer stopped")
        await write_offsets(self._configuration(), changes)

    def _configuration(self) -> Configuration:
        connector = self.fleet.configurations.connectors.get(self.name)
        try:
            return connector_configuration(
                self.fleet.settings, self.name, {} if connector is None else connector.properties
            )
        except ConfigurationError as error:
            raise BadRequest(str(error)) from None

    async def topics(self) -> list[str]:
        """Return the topics to which it has sent records since the last reset."""
        return sorted(self.fleet.statuses.topics(self.name))

    async def reset_topics(self) -> None:
        """Forget them."""
        await self.fleet.forget_topics(self.name)

    async def hold(self, state: str) -> None:
        """Keep it ``PAUSED`` or ``STOPPED`` until it is resumed."""
        await self.fleet.aim(self.name, Target(state))

    async def resume(self) -> None:
        """Let it run."""
        await self.fleet.aim(self.name, Target.STARTED)

    async def rerun(self) -> None:
        """Stop it and start it again at the stored position."""
        await self.fleet.configure(restart_record(self.name, only_failed=False))
