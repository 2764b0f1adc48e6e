"""Runs all scenarios of a server in parallel over the same statements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from rowtide.schema_history.store.topic_reader import TopicReader
from tests.interop import statements
from tests.interop.compare import ConnectorOutput, problems
from tests.interop.scenarios import Scenario, ServerKind
from tests.interop.sides import Debezium, Rowtide, Side
from tests.support.connector_properties import connector_properties
from tests.support.kafka.connect import KafkaConnect
from tests.support.kafka.topic_tools import Topics
from tests.support.mysql.binlog_readers import binlog_readers

if TYPE_CHECKING:
    from rowtide_stack import Kafka, SqlServer

__all__ = ["Outcome", "run_scenarios"]

_PATIENCE_S = 240.0
_QUIET_S = 2.0
_SWITCH_IN_TRANSACTION = 2
"""After this stage, the sides are switched in the middle of a long transaction."""
_OFFSET_S = 1.5
_IN_TRANSACTION = re.compile(rb'"(?:event|row)":[1-9]')


@dataclass(frozen=True)
class Outcome:
    """The result of a scenario.

    Attributes:
        scenario: the scenario.
        problems: the differences from its reference.
        records: number of records that were compared.
        split: whether an offset in the middle of a transaction was stored.
    """

    scenario: Scenario
    problems: tuple[str, ...]
    records: int
    split: bool


class ScenarioRun:
    """A scenario that is running."""

    def __init__(self, scenario: Scenario, number: int, server: ServerKind, environment: Environment) -> None:
        self.scenario = scenario
        self.prefix = f"{server.name.replace('-', '')}{number:02d}"
        folder = environment.folder
        history = scenario.history(self.prefix, environment.kafka.bootstrap, folder)
        given = {
            **connector_properties(self.prefix, environment.database, statements.SCHEMA, history),
            "database.server.id": str(200000 + number),
            **scenario.more,
        }
        self._sides: dict[str, Side] = {
            "D": Debezium(self.prefix, given, environment.worker),
            "R": Rowtide(self.prefix, {**given, **scenario.rowtide}, environment.kafka, environment.offsets, folder),
        }
        self._environment = environment
        self._running: Side | None = None
        self.output = ConnectorOutput(
            self.prefix, environment.topics, folder / f"{self.prefix}.history" if scenario.file else None
        )
        self.split = False
        self.failure: str | None = None

    @property
    def steady(self) -> bool:
        """Whether the scenario is a reference, which is never stopped."""
        return self.scenario.reference == self.scenario.name

    def start(self, stage: int) -> None:
        """Start the side of a stage."""
        if self._running is None and self.failure is None:
            self._running = self._sides[self.scenario.sides[stage]]
            self._running.start()

    def ends(self, stage: int) -> bool:
        """Whether its side is stopped after a stage: Debezium only if rowtide follows."""
        sides = self.scenario.sides
        return not self.steady and (sides[stage] == "R" or sides[stage + 1 : stage + 2] != "D")

    def stop(self) -> None:
        """Stop the running side."""
        side, self._running = self._running, None
        if side is not None:
            side.stop()
            self.split |= self._environment.in_transaction(self.prefix)

    def wait(self, topic: str, count: int, *, quiet: bool = True) -> None:
        """Wait until a topic has ``count`` records, then until no topic gets more; or until the side has failed."""
        end = time.monotonic() + _PATIENCE_S
        while self._environment.size(f"{self.prefix}{topic}") < count:
            if self.failed():
                return
            if time.monotonic() > end:
                self.failure = f"no record {count} in {topic} after {_PATIENCE_S:.0f} s"
                return
            time.sleep(0.2)
        before = -1
        while quiet and before != (before := self._sizes()):
            time.sleep(_QUIET_S)

    def failed(self) -> bool:
        """Whether the side has failed, or made no progress."""
        if self.failure is None and self._running is not None and (reason := self._running.failure()) is not None:
            self.failure = f"{self._running.name} has failed: {reason}"
        return self.failure is not None

    def problems(self, reference: ScenarioRun) -> tuple[str, ...]:
        """Its failure, if any, and its differences from the reference."""
        return (*([self.failure] if self.failure else []), *problems(reference.output, self.output))

    def _sizes(self) -> int:
        return sum(self._environment.size(self.prefix + name) for name in self.output.names())


class Environment:
    """The servers and the folder that all scenarios share."""

    def __init__(self, database: SqlServer, kafka: Kafka, worker: KafkaConnect, folder: Path) -> None:
        self.database = database
        self.kafka = kafka
        self.worker = worker
        self.offsets = f"{worker.name}-offset"
        self.folder = folder
        self.topics = Topics(kafka.bootstrap)
        self._reader = TopicReader(self.topics.client, self.topics.client)

    def size(self, topic: str) -> int:
        """The end offset of a topic with one partition; 0 if it does not exist."""
        extents = self._reader.extents(topic)
        return 0 if extents is None else extents[0].high

    def in_transaction(self, prefix: str) -> bool:
        """Whether the last stored offset of a connector is in the middle of a transaction."""
        stored = [
            seen.value
            for seen in self.topics.read(self.offsets, committed=False)
            if seen.key is not None and seen.value is not None and f'["{prefix}",'.encode() in seen.key
        ]
        return bool(stored) and _IN_TRANSACTION.search(stored[-1]) is not None


def run_scenarios(
    server: ServerKind, scenarios: Iterable[Scenario], environment: Environment, report: Callable[[str], None]
) -> Iterator[Outcome]:
    """Run the scenarios stage by stage, and compare each with its reference.

    Raises:
        RuntimeError: the connectors do not start.
    """
    database = environment.database
    database.execute(*statements.setup())
    runs = {
        scenario.name: ScenarioRun(scenario, number, server, environment) for number, scenario in enumerate(scenarios)
    }
    others = [run for run in runs.values() if not run.steady]
    with ThreadPoolExecutor(len(runs)) as pool:
        try:
            for stage in range(statements.STAGES):
                report(f"{server.name}: stage {stage + 1} of {statements.STAGES}")
                list(pool.map(lambda run: run.start(stage), runs.values()))  # noqa: B023 - done at once
                if stage == 0:
                    _await_streams(environment, list(runs.values()))
                database.execute(*statements.stage(stage), *statements.marker(stage), database=statements.SCHEMA)
                marker = f".{statements.SCHEMA}.marker"
                list(pool.map(lambda run: run.wait(marker, stage + 1), runs.values()))  # noqa: B023
                ending = [run for run in others if run.ends(stage)]
                if stage == _SWITCH_IN_TRANSACTION:
                    _switch_in_transaction(stage, ending, environment, pool)
                else:
                    time.sleep(_OFFSET_S)
                    list(pool.map(lambda run: run.stop(), ending))
                if stage + 1 < statements.STAGES:
                    database.execute(*statements.gap(stage), database=statements.SCHEMA)
        finally:
            list(pool.map(lambda run: run.stop(), runs.values()))
    for run in others:
        found = run.problems(runs[run.scenario.reference])
        yield Outcome(run.scenario, found, sum(map(len, run.output.records().values())), run.split)


def _await_streams(environment: Environment, runs: list[ScenarioRun]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while (count := len(binlog_readers(environment.database))) < sum(not run.failed() for run in runs):
        if time.monotonic() > end:
            raise RuntimeError(f"{count} of {len(runs)} connectors read the binlog; see {environment.folder}")
        time.sleep(0.3)


def _switch_in_transaction(
    stage: int, runs: list[ScenarioRun], environment: Environment, pool: ThreadPoolExecutor
) -> None:
    def stop(run: ScenarioRun) -> None:
        run.wait(f".{statements.SCHEMA}.bulk", 1, quiet=False)
        run.stop()

    stopping = [pool.submit(stop, run) for run in runs]
    environment.database.execute(*statements.bulk(stage), database=statements.SCHEMA)
    for future in stopping:
        future.result()
