"""A round of the campaign: clients follow a live load while their server is killed and started again."""

from __future__ import annotations

import random
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.canal.clients.clients import CLIENTS
from tests.canal.clients.received import Position, Received
from tests.canal.clients.servers import Cluster, SingleServer
from tests.canal.clients.workload import Load, planned, table

if TYPE_CHECKING:
    from rowtide_stack import Database, ZooKeeper

__all__ = ["Outcome", "Round", "run_round"]

_PATIENCE_S = 300.0
_WRITERS = 4
_SOON = 0.3
"""The share of kills that come within two seconds of a start."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """What a round does.

    Attributes:
        clients: the names of the clients; each has a destination of its own.
        cluster: whether two servers with ZooKeeper run the destinations.
        changes: the number of row changes.
        kills: the number of times the server is killed.
        seed: of the load and of the kills.
        gtids: ``canal.instance.gtidon``.
        counts_entries: ``canal.instance.memory.batch.mode=ITEMSIZE``.
    """

    clients: tuple[str, ...]
    cluster: bool = False
    changes: int = 200_000
    kills: int = 20
    seed: int = 1
    gtids: bool = False
    counts_entries: bool = False


@dataclass(frozen=True)
class Outcome:
    """What a round has found.

    Attributes:
        changes: the number of row changes.
        seconds: from the first change until the last client had all.
        received: what each client got.
        problems: what is wrong.
    """

    changes: int
    seconds: float
    received: Mapping[str, Received]
    problems: list[str]


class _Follower:
    """A running client, and what it has written so far."""

    def __init__(self, name: str, process: subprocess.Popen[bytes], output: Path, received: Received) -> None:
        self.name = name
        self.process = process
        self.received = received
        self.begin: Position | None = None
        self._file = output.open("rb")
        self._rest = b""

    def drain(self) -> None:
        """Check the lines that it has written since the last call."""
        assert self.process.poll() is None, f"the client {self.name} has ended"
        *lines, self._rest = (self._rest + self._file.read()).split(b"\n")
        for line in lines:
            self.received.feed(line.decode())

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        self._file.close()


def run_round(
    chosen: Round, database: Database, zookeeper: ZooKeeper | None, folder: Path, say: Callable[[str], None]
) -> Outcome:
    """Run a round.

    Args:
        chosen: what it does.
        database: a new one.
        zookeeper: of a cluster.
        folder: for configurations, logs, and what the clients write.
        say: called with what happens.
    """
    share = chosen.changes // _WRITERS
    plans = [list(planned(chosen.seed, writer, share)) for writer in range(_WRITERS)]
    expected = {
        table(writer): [row for transaction in plan for row in transaction.rows] for writer, plan in enumerate(plans)
    }
    changes = sum(map(len, expected.values()))
    names = {client: f"{database.name}_{client}" for client in chosen.clients}
    instance = {"canal.instance.gtidon": str(chosen.gtids).lower()}
    if chosen.counts_entries:
        instance["canal.instance.memory.batch.mode"] = "ITEMSIZE"
    server: SingleServer | Cluster
    if chosen.cluster:
        assert zookeeper is not None
        server = Cluster(folder, database, zookeeper, list(names.values()), instance)
    else:
        server = SingleServer(folder, database, list(names.values()), instance)
    followers: list[_Follower] = []
    load = Load(database, plans)
    try:
        server.start()
        for client, destination in names.items():
            output = folder / f"{client}.out"
            process = CLIENTS[client]().start(server.where, destination, output)
            followers.append(_Follower(destination, process, output, Received(expected)))
        campaign = _Campaign(chosen, changes, server, load, followers, say)
        campaign.begin()
        begin = time.monotonic()
        for number in range(chosen.kills):
            campaign.kill(number)
        campaign.finish()
        seconds = time.monotonic() - begin
        server.stop()
    finally:
        load.close()
        for follower in followers:
            follower.close()
        server.stop()
    received = {client: follower.received for client, follower in zip(names, followers, strict=True)}
    problems = [f"{client}: {problem}" for client, found in received.items() for problem in found.problems]
    log = server.log()
    problems += [f"the log of the server has {word}" for word in ("Traceback", "CancelledError") if word in log]
    return Outcome(changes, seconds, received, problems)


class _Campaign:
    """The steps of a round."""

    def __init__(
        self,
        chosen: Round,
        changes: int,
        server: SingleServer | Cluster,
        load: Load,
        followers: list[_Follower],
        say: Callable[[str], None],
    ) -> None:
        self._chosen = chosen
        self._changes = changes
        self._server = server
        self._load = load
        self._followers = followers
        self._say = say
        self._chance = random.Random(chosen.seed)

    def begin(self) -> None:
        """Wait for the first subscriptions: the instances begin at the present."""
        self._until(lambda: all(follower.received.connections for follower in self._followers))
        self._until(lambda: self._server.log().count("reading the binlog") >= len(self._followers))
        for follower in self._followers:
            follower.begin = self._server.stored(follower.name)

    def kill(self, number: int) -> None:
        """Write more, wait until a client has a random part of it, or not at all, and kill the server."""
        self._load.allow((number + 1) / (self._chosen.kills + 1))
        self._until(self._server.serves)
        if self._chance.random() >= _SOON:
            reader = self._chance.choice(self._followers).received
            changes = (number + self._chance.random()) / (self._chosen.kills + 1) * self._changes
            self._until(lambda: reader.changes >= changes)
        moment = time.monotonic() + self._chance.uniform(0, 2)
        self._until(lambda: time.monotonic() >= moment)
        self._server.kill()
        for follower in self._followers:
            follower.drain()
            stored = self._server.stored(follower.name)
            follower.received.killed(None if stored == follower.begin else stored)
        self._server.start()
        counts = ", ".join(f"{one.received.changes} ({one.received.repeated})" for one in self._followers)
        self._say(f"kill {number + 1}: changes (repeats): {counts}")

    def finish(self) -> None:
        """Write the rest, and wait until every client has all."""
        self._load.allow(1.0)
        self._until(lambda: all(follower.received.complete for follower in self._followers))

    def _until(self, reached: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        while not reached():
            for follower in self._followers:
                follower.drain()
                assert not follower.received.problems, follower.received.problems
            assert not self._load.failures, self._load.failures
            assert time.monotonic() < deadline, f"nothing more comes; the log of the server:\n{self._server.log()}"
            time.sleep(0.05)
