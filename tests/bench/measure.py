"""Measurements of a run from outside of the connector: from /proc and from the topics."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

__all__ = ["Figures", "TopicWatch", "Usage", "cpu_seconds", "medians", "peak_bytes", "servers_below", "thread_seconds"]

_TICKS = os.sysconf("SC_CLK_TCK")
_READ_S = 120.0
_SETTLED_S = 3.0
_CREATING = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
}
"""What a broker answers that lists a topic already, and is still creating its partitions."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The measurements of a run.

    Attributes:
        name: the connector and the mode.
        messages: number of records written.
        seconds: time from the first to the last record, by the timestamps of the records.
        cpu_s: CPU time of the connector from its start to the last record.
        servers_cpu_s: CPU time of the database and the broker together in the same period.
        peak_bytes: peak resident memory of the connector's process.
        threads: CPU time of each of its threads; empty if the process was running before.
    """

    name: str
    messages: int
    seconds: float
    cpu_s: float
    servers_cpu_s: float
    peak_bytes: int
    threads: Mapping[str, float] = field(default_factory=dict)

    @property
    def rate(self) -> float:
        """Messages per second."""
        return self.messages / self.seconds if self.seconds else 0.0


def medians(figures: Sequence[Figures]) -> list[Figures]:
    """The run with the median rate of each name, in the order of the names' first runs."""
    by_name: dict[str, list[Figures]] = {}
    for one in figures:
        by_name.setdefault(one.name, []).append(one)
    return [sorted(runs, key=lambda one: one.rate)[(len(runs) - 1) // 2] for runs in by_name.values()]


def cpu_seconds(pid: int) -> float:
    """CPU time of a process and all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def thread_seconds(pid: int) -> dict[str, float]:
    """CPU time of the threads of a process that run, by name; threads of the same name together."""
    found: dict[str, float] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # a thread may end meanwhile
            name = "main" if task.name == str(pid) else (task / "comm").read_text().strip()
            found[name] = found.get(name, 0.0) + int((task / "schedstat").read_text().split()[0]) / 1e9
    return found


def peak_bytes(pid: int) -> int:
    """Peak resident memory of a process."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


def servers_below(pid: int) -> tuple[int, ...]:
    """The processes of the servers: children of the supervisors that the process ``pid`` has started."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):  # a process may end meanwhile
                parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    supervisors = {
        child
        for child, parent in parents.items()
        if parent == pid and b"supervisor.py" in Path(f"/proc/{child}/cmdline").read_bytes()
    }
    return tuple(sorted(child for child, parent in parents.items() if parent in supervisors))


class Usage:
    """CPU time of processes since the creation of this object. A process must not end before it is read."""

    def __init__(self, *pids: int) -> None:
        self._start = {pid: cpu_seconds(pid) for pid in pids}

    @property
    def seconds(self) -> float:
        """CPU time since the creation of this object."""
        return sum(cpu_seconds(pid) - start for pid, start in self._start.items())


class TopicWatch:
    """Counts and times the records of topics with one partition each."""

    def __init__(self, bootstrap: str) -> None:
        self._admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": "bench",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )

    def close(self) -> None:
        """Disconnect from the broker."""
        self._consumer.close()

    def counts(self, topics: Mapping[str, int]) -> dict[str, int]:
        """Number of records of each topic; 0 for a topic that does not exist or has no leader yet."""
        known = self._consumer.list_topics(timeout=10).topics
        wanted = {TopicPartition(topic, 0): OffsetSpec.latest() for topic in topics if topic in known}
        found = self._admin.list_offsets(wanted, request_timeout=10) if wanted else {}
        return dict.fromkeys(topics, 0) | {place.topic: self._end(end) for place, end in found.items()}

    @staticmethod
    def _end(found: Future[Any]) -> int:
        try:
            return int(found.result().offset)
        except KafkaException as error:
            if error.args[0].code() not in _CREATING:
                raise
            return 0

    def wait(self, topics: Mapping[str, int], alive: Callable[[], bool], patience: float = 600.0) -> None:
        """Wait until every topic has the given number of records.

        Raises:
            RuntimeError: the connector has ended or written too many records, or ``patience`` seconds have passed.
        """
        end = time.monotonic() + patience
        while True:
            counts = self.counts(topics)
            if counts == dict(topics):
                return
            if any(counts[topic] > number for topic, number in topics.items()):
                raise RuntimeError(f"more records than changes: {counts} instead of {dict(topics)}")
            if not alive() or time.monotonic() > end:
                raise RuntimeError(f"the connector stopped at {counts} of {dict(topics)}")
            time.sleep(0.25)

    def settled(self, least: Mapping[str, int], alive: Callable[[], bool], patience: float = 600.0) -> dict[str, int]:
        """Wait until every topic has more offsets than these, and no more come; each transaction takes one by itself.

        Returns:
            The offsets after the last ones. :meth:`committed` says how many of them are records.

        Raises:
            RuntimeError: the connector has ended, or ``patience`` seconds have passed.
        """
        end = time.monotonic() + patience
        before, since = self.counts(least), time.monotonic()
        while True:
            time.sleep(0.25)
            counts = self.counts(least)
            if counts != before:
                before, since = counts, time.monotonic()
            elif time.monotonic() - since > _SETTLED_S and all(counts[topic] > least[topic] for topic in least):
                return counts
            if not alive() or time.monotonic() > end:
                raise RuntimeError(f"the connector stopped at {counts}, which are not more than {dict(least)}")

    def committed(self, begin: Mapping[str, int], end: Mapping[str, int]) -> dict[str, int]:
        """Number of committed records of each topic between two offsets."""
        found = dict.fromkeys(begin, 0)
        self._consumer.assign([TopicPartition(topic, 0, offset) for topic, offset in begin.items()])
        reading, patience = set(begin), time.monotonic() + _READ_S
        while reading:
            if time.monotonic() > patience:
                raise RuntimeError(f"{len(reading)} topics were not read within {_READ_S:.0f} s")
            messages: list[Any] = self._consumer.consume(10_000, 1)
            for message in messages:
                if message.error() is None:
                    found[message.topic()] += message.offset() < end[message.topic()]
                elif message.error().code() == KafkaError._PARTITION_EOF:
                    reading.discard(message.topic())
        return found

    def seconds(self, begin: Mapping[str, int], end: Mapping[str, int]) -> float:
        """Seconds between the first and the last record of all topics, by their timestamps.

        Args:
            begin: the offset of the first record of each topic.
            end: the offset after the last one.
        """
        first = self._times(begin)
        last = self._times({topic: offset - 1 for topic, offset in end.items()})
        return (max(last) - min(first)) / 1000

    def _times(self, offsets: Mapping[str, int]) -> list[int]:
        """The timestamp of the record at each offset; where a control record is last, that of the one before it."""
        found: dict[str, int] = {}
        left = dict(offsets)
        while left:
            lacking = [topic for topic, offset in left.items() if offset < 0]
            if lacking:
                raise RuntimeError(f"topics without a record: {', '.join(lacking)}")
            found |= self._timestamps(left)
            left = {topic: offset - 1 for topic, offset in left.items() if topic not in found}
        return list(found.values())

    def _timestamps(self, offsets: Mapping[str, int]) -> dict[str, int]:
        """The timestamp of the first record from each offset on, without topics that have none there."""
        found: dict[str, int] = {}
        self._consumer.assign([TopicPartition(topic, 0, offset) for topic, offset in offsets.items()])
        reading, patience = set(offsets), time.monotonic() + _READ_S
        while reading:
            if time.monotonic() > patience:
                raise RuntimeError(f"{len(reading)} topics sent no record within {_READ_S:.0f} s")
            messages: list[Any] = self._consumer.consume(len(reading), 1)
            done = set()
            for message in messages:
                topic = message.topic()
                if topic not in reading:
                    continue
                if message.error() is None:
                    found.setdefault(topic, int(message.timestamp()[1]))
                elif message.error().code() != KafkaError._PARTITION_EOF:
                    continue  # such as a leader that is not known yet
                done.add(topic)
            self._consumer.incremental_unassign([TopicPartition(topic, 0) for topic in done])  # read no further
            reading -= done
        return found
