"""Connectors whose tasks do nothing, for tests of who runs them."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from rowtide.connector.engine.run import Checks
from rowtide.connector.engine.task import ConnectorTask
from rowtide.connector.worker.service import ConnectorService


class Task:
    """A task that runs until it is stopped or fails."""

    current = SimpleNamespace(delivery=None)
    left_behind = False
    error = None

    def __init__(self, on_end: Callable[[], None], checks: Checks) -> None:
        self.checks = checks
        self.started = self.stopped = False
        self.failure: BaseException | None = None
        self._on_end = on_end

    @property
    def over(self) -> bool:
        return not self.started or self.ended

    @property
    def ended(self) -> bool:
        return self.stopped or self.failure is not None

    @property
    def state(self) -> str:
        return "FAILED" if self.failure is not None else "RUNNING"

    @property
    def runs(self) -> bool:
        return self.started and not self.ended

    def start(self) -> None:
        self.started = True

    def stop(self, _timeout: float | None = None) -> bool:
        self.stopped = True
        return True

    def fail(self, failure: BaseException) -> None:
        self.failure = failure
        self._on_end()


class Connector(ConnectorService):
    """A connector with such tasks."""

    def _new_task(self, checks: Checks = Checks.ALL) -> ConnectorTask:
        self._tasks_made += 1
        number = self._tasks_made
        task = Task(lambda: self._ended(number, None), checks)
        self.tasks: list[Task] = [*getattr(self, "tasks", []), task]
        return task  # type: ignore[return-value]
