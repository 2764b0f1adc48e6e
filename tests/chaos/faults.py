"""The faults of a round: each begins, lasts for a while, and ends."""

from __future__ import annotations

import contextlib
import random
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import pymysql

from tests.chaos.network import Direction
from tests.support.processes.worker_process import STREAMING

if TYPE_CHECKING:
    from rowtide_stack import Kafka, SqlServer
    from rowtide_stack.servers.server import Server

    from tests.chaos.clock import Clock
    from tests.chaos.disk import Disk
    from tests.chaos.network import Link
    from tests.chaos.primary import Primary
    from tests.support.processes.worker_process import Worker

__all__ = [
    "Fault",
    "RunningWorker",
    "clock_faults",
    "disk_faults",
    "fail_over",
    "link_faults",
    "server_faults",
    "worker_faults",
]

_LONGEST_CUT = 300_000
_DAY_S = 86_400


@dataclass(frozen=True)
class Fault:
    """A fault.

    Attributes:
        name: what fails, and how.
        begin: begins it.
        end: ends it; whatever failed works again.
        longest_s: the most seconds that it lasts.
    """

    name: str
    begin: Callable[[], object]
    end: Callable[[], object] = lambda: None
    longest_s: float = 4.0


class RunningWorker:
    """The worker, which is started again and again.

    Args:
        start: starts a process.

    Attributes:
        problems: what operators would call an error: a process that does not end, or a traceback.
        ends: the last line of the log of each process that ended by itself.
    """

    def __init__(self, start: Callable[[], Worker]) -> None:
        self._start = start
        self._process: Worker | None = None
        self.problems: list[str] = []
        self.ends: list[str] = []

    def ensure(self) -> None:
        """Start it if it does not run."""
        if self._process is not None and not self._process.running:
            self.ends.append(next(reversed(self._process.log.strip().splitlines()), "nothing"))
            self._leave()
        if self._process is None:
            self._process = self._start()

    def streams(self) -> bool:
        """Whether it has begun to read the binlog."""
        return self._process is not None and STREAMING in self._process.log

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        if self._process is not None:
            self._process.signal(number)

    def kill(self) -> None:
        """Kill it."""
        if self._process is not None:
            self._process.kill()
            self._leave()

    def stop(self) -> None:
        """Stop it with SIGTERM."""
        if self._process is None:
            return
        self._process.signal()
        try:
            self._process.wait()
        except subprocess.TimeoutExpired:
            self.problems.append(f"the worker does not end after SIGTERM: {self._process.log[-2000:]}")
            self._process.kill()
        self._leave()

    def _leave(self) -> None:
        assert self._process is not None
        log, self._process = self._process.log, None
        if "Traceback" in log:
            self.problems.append(f"a traceback in the log: {log[log.index('Traceback') - 500 :][:3000]}")


def worker_faults(worker: RunningWorker) -> Iterator[Fault]:
    """Kill, stop and suspend the worker."""
    yield Fault("worker killed", worker.kill, worker.ensure, 1)
    yield Fault("worker stopped", worker.stop, worker.ensure, 1)
    yield Fault("worker suspended", lambda: worker.signal(signal.SIGSTOP), lambda: worker.signal(signal.SIGCONT))


def clock_faults(clock: Clock, decide: random.Random) -> Iterator[Fault]:
    """Step the clock of the worker, for a time and for good."""
    yield Fault("clock stepped", lambda: clock.step(int(decide.uniform(-_DAY_S, _DAY_S))))
    yield Fault("clock stepped and back", lambda: clock.step(decide.choice((-_DAY_S, _DAY_S))), lambda: clock.step(0))


def server_faults(primary: Primary, kafka: Kafka) -> Iterator[Fault]:
    """Kill, restart and suspend the database and Kafka, and kill binlog connections."""
    yield from _process_faults("database", lambda: primary.server)  # another server after a fail-over
    yield from _process_faults("kafka", lambda: kafka)
    yield Fault("binlog connection killed", lambda: _kill_streams(primary.server), longest_s=0.5)


def _process_faults(name: str, server: Callable[[], Server]) -> Iterator[Fault]:
    yield Fault(f"{name} killed", lambda: server().kill(), lambda: server().start(), 2)
    yield Fault(f"{name} restarted", lambda: server().stop(), lambda: server().start(), 2)
    yield Fault(f"{name} suspended", lambda: server().pause(), lambda: server().resume())


def _kill_streams(server: SqlServer) -> None:
    with contextlib.suppress(pymysql.MySQLError):
        for number, command, host in server.query("SELECT ID, COMMAND, HOST FROM information_schema.PROCESSLIST"):
            if command.startswith("Binlog Dump") and host:
                server.execute(f"KILL {number}")


def link_faults(name: str, link: Link, decide: random.Random) -> Iterator[Fault]:
    """Break the connections to one of the servers in all ways."""

    def cut(way: Direction, *, reset: bool) -> Callable[[], None]:
        return lambda: link.cut_after(int(10 ** decide.uniform(0, 5.5)), way, reset=reset)

    for way in Direction:
        yield Fault(f"{name}: connection cut {way.value}", cut(way, reset=False), link.heal)
        yield Fault(f"{name}: connection cut with a reset {way.value}", cut(way, reset=True), link.heal)
        yield Fault(f"{name}: frozen {way.value}", partial(link.freeze, way), link.heal, 8)
        yield Fault(f"{name}: half-open {way.value}", partial(link.lose, way), longest_s=8)
    yield Fault(f"{name}: frozen both ways", lambda: link.freeze(*Direction), link.heal, 8)
    yield Fault(f"{name}: half-open both ways", lambda: link.lose(*Direction), longest_s=8)
    yield Fault(f"{name}: connections reset", link.reset, longest_s=0.5)
    yield Fault(f"{name}: slow", lambda: link.slow(10 ** decide.uniform(2, 5)), link.heal)
    yield Fault(f"{name}: connections delayed", lambda: link.delay_accept(decide.uniform(0.5, 6)), link.heal, 8)
    yield Fault(f"{name}: connections refused", link.refuse, link.heal)


def disk_faults(
    database_disk: Disk, kafka_disk: Disk, worker_disk: Disk | None, primary: Primary, kafka: Kafka
) -> Iterator[Fault]:
    """Fill the disks. A server that has ended with a full disk is started again when there is room."""

    def freed(disk: Disk, server: Server) -> Callable[[], None]:
        def end() -> None:
            disk.free()
            server.stop()
            server.start()

        return end

    yield Fault("database: disk full", database_disk.fill, freed(database_disk, primary.server))
    yield Fault("kafka: disk full", kafka_disk.fill, freed(kafka_disk, kafka))
    if worker_disk is not None:
        yield Fault("worker: disk of the offset file full", worker_disk.fill, worker_disk.free)


def fail_over(primary: Primary, link: Link) -> Fault:
    """Kill the database and promote its replica; the old primary comes back as the replica."""
    return Fault("database failed over", lambda: primary.fail_over(link), primary.rejoin, 2)
