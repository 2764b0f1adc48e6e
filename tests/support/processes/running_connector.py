"""A connector in the process of the test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rowtide.connector.config import from_properties
from rowtide.connector.engine.task import ConnectorTask
from tests.support.kafka.topic_tools import Topics
from tests.support.processes.worker_process import SOON, WorkerConfig, eventually

__all__ = ["connected", "failure", "run_until", "running"]


@contextmanager
def running(config: WorkerConfig) -> Iterator[ConnectorTask]:
    """Run a connector in the block, and stop it at the end."""
    task = ConnectorTask(from_properties(config.properties))
    task.start()
    try:
        yield task
    finally:
        task.stop(SOON)


def failure(config: WorkerConfig) -> BaseException:
    """Run a connector that must fail; returns its error."""
    with running(config) as task:
        assert task.wait(SOON), "the connector still runs"
    assert task.failure is not None
    assert task.state == "FAILED"
    return task.failure


def connected(task: ConnectorTask) -> bool:
    """Whether the connector reads the binlog and has not failed."""
    assert task.failure is None, task.failure
    return task.current.reader is not None and task.current.reader.status.connected


def run_until(config: WorkerConfig, topics: Topics, table: str, count: int) -> None:
    """Run a connector until it streams and a topic has a number of records; then stop it."""
    with running(config) as task:
        eventually(lambda: task.failure or len(topics.read(config.topic(table))) >= count, "the records")
        eventually(lambda: connected(task), "streaming")
    assert task.failure is None
