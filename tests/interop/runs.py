"""All scenarios of one server, side by side over the same statements."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from binlog_readers import binlog_readers
from connector_properties import connector_properties
from kafka_connect import KafkaConnect
from topic_tools import Topics

from rowtide.schema_history.store.topic_reader import TopicReader
from tests.interop import statements
from tests.interop.compare import Answer, problems
from tests.interop.scenarios import Scenario, ServerKind
from tests.interop.sides import Debezium, Rowtide, Side

if TYPE_CHECKING:
    from rowtide_stack import Kafka, SqlServer

__all__ = ["Outcome", "run"]

_PATIENCE_S = 240.0
_QUIET_S = 2.0
_SWITCH_IN_TRANSACTION = 2
"""Behind this stage the sides are changed in the middle of a long transaction."""
_OFFSET_S = 1.5
_IN_TRANSACTION = re.compile(rb'"(?:event|row)":[1-9]')


@dataclass(frozen=True)
class Outcome:
    """What came of a scenario.

    Attributes:
        scenario: which.
        problems: its differences from the reference.
        records: how many records were compared.
        split: whether a stored offset was in the middle of a transaction.
    """

    scenario: Scenario
    problems: tuple[str, ...]
    records: int
    split: bool


class Player:
    """A scenario under way."""

    def __init__(self, scenario: Scenario, number: int, server: ServerKind, place: Place) -> None:
        self.scenario = scenario
        self.prefix = f"{server.name.replace('-', '')}{number:02d}"
        folder = place.folder
        history = scenario.history(self.prefix, place.kafka.bootstrap, folder)
        given = {
            **connector_properties(self.prefix, place.database, statements.SCHEMA, history),
            "database.server.id": str(200000 + number),
            **scenario.more,
        }
        self._sides: dict[str, Side] = {
            "D": Debezium(self.prefix, given, place.worker),
            "R": Rowtide(self.prefix, {**given, **scenario.rowtide}, place.kafka, place.offsets, folder),
        }
        self._place = place
        self._running: Side | None = None
        self.answer = Answer(self.prefix, place.topics, folder / f"{self.prefix}.history" if scenario.file else None)
        self.split = False
        self.failure: str | None = None

    @property
    def steady(self) -> bool:
        """Whether it is a reference, which is never stopped."""
        return self.scenario.reference == self.scenario.name

    def start(self, stage: int) -> None:
        """Let the side of a stage run."""
        if self._running is None and self.failure is None:
            self._running = self._sides[self.scenario.sides[stage]]
            self._running.start()

    def ends(self, stage: int) -> bool:
        """Whether its side is stopped behind a stage: Debezium only if rowtide follows; its restarts are its own."""
        sides = self.scenario.sides
        return not self.steady and (sides[stage] == "R" or sides[stage + 1 : stage + 2] != "D")

    def stop(self) -> None:
        """Stop it."""
        side, self._running = self._running, None
        if side is not None:
            side.stop()
            self.split |= self._place.in_transaction(self.prefix)

    def wait(self, topic: str, count: int, *, quiet: bool = True) -> None:
        """Wait until a topic has so many records, and then until no more come in any; or until it has failed."""
        end = time.monotonic() + _PATIENCE_S
        while self._place.size(f"{self.prefix}{topic}") < count:
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
        """Whether it has ended by itself, or stands still."""
        if self.failure is None and self._running is not None and (reason := self._running.failure()) is not None:
            self.failure = f"{self._running.name} has failed: {reason}"
        return self.failure is not None

    def problems(self, reference: Player) -> tuple[str, ...]:
        """Its failure and its differences from another one."""
        return (*([self.failure] if self.failure else []), *problems(reference.answer, self.answer))

    def _sizes(self) -> int:
        return sum(self._place.size(self.prefix + name) for name in self.answer.names())


class Place:
    """Where all of it happens."""

    def __init__(self, database: SqlServer, kafka: Kafka, worker: KafkaConnect, folder: Path) -> None:
        self.database = database
        self.kafka = kafka
        self.worker = worker
        self.offsets = f"{worker.name}-offset"
        self.folder = folder
        self.topics = Topics(kafka.bootstrap)
        self._reader = TopicReader(self.topics.client, self.topics.client)

    def size(self, topic: str) -> int:
        """The end of a topic of one partition; 0 if it does not exist."""
        extents = self._reader.extents(topic)
        return 0 if extents is None else extents[0].high

    def in_transaction(self, prefix: str) -> bool:
        """Whether the last offset that was stored for a connector is one in the middle of a transaction."""
        stored = [
            seen.value
            for seen in self.topics.read(self.offsets, committed=False)
            if seen.key is not None and seen.value is not None and f'["{prefix}",'.encode() in seen.key
        ]
        return bool(stored) and _IN_TRANSACTION.search(stored[-1]) is not None


def run(
    server: ServerKind, scenarios: Iterable[Scenario], place: Place, say: Callable[[str], None]
) -> Iterator[Outcome]:
    """Run the scenarios, stage after stage, and compare each with its reference.

    Raises:
        RuntimeError: the connectors do not start.
    """
    database = place.database
    database.execute(*statements.setup())
    players = {one.name: Player(one, number, server, place) for number, one in enumerate(scenarios)}
    others = [player for player in players.values() if not player.steady]
    with ThreadPoolExecutor(len(players)) as pool:
        try:
            for stage in range(statements.STAGES):
                say(f"{server.name}: stage {stage + 1} of {statements.STAGES}")
                list(pool.map(lambda player: player.start(stage), players.values()))  # noqa: B023 - done at once
                if stage == 0:
                    _await_streams(place, list(players.values()))
                database.execute(*statements.stage(stage), *statements.marker(stage), database=statements.SCHEMA)
                marker = f".{statements.SCHEMA}.marker"
                list(pool.map(lambda player: player.wait(marker, stage + 1), players.values()))  # noqa: B023
                if stage == _SWITCH_IN_TRANSACTION:
                    _switch_in_transaction(stage, [one for one in others if one.ends(stage)], place, pool)
                else:
                    time.sleep(_OFFSET_S)
                    list(pool.map(lambda player: player.stop(), [one for one in others if one.ends(stage)]))
                if stage + 1 < statements.STAGES:
                    database.execute(*statements.gap(stage), database=statements.SCHEMA)
        finally:
            list(pool.map(lambda player: player.stop(), players.values()))
    for player in others:
        found = player.problems(players[player.scenario.reference])
        yield Outcome(player.scenario, found, sum(map(len, player.answer.records().values())), player.split)


def _await_streams(place: Place, players: list[Player]) -> None:
    end = time.monotonic() + _PATIENCE_S
    while (count := len(binlog_readers(place.database))) < sum(not player.failed() for player in players):
        if time.monotonic() > end:
            raise RuntimeError(f"{count} of {len(players)} connectors read the binlog; see {place.folder}")
        time.sleep(0.3)


def _switch_in_transaction(stage: int, players: list[Player], place: Place, pool: ThreadPoolExecutor) -> None:
    def stop(player: Player) -> None:
        player.wait(f".{statements.SCHEMA}.bulk", 1, quiet=False)
        player.stop()

    stopping = [pool.submit(stop, player) for player in players]
    place.database.execute(*statements.bulk(stage), database=statements.SCHEMA)
    for future in stopping:
        future.result()
