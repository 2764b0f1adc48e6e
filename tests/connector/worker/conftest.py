"""Workers as processes, against the servers of the test run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from worker_process import WorkerConfig

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MySQL

EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


@pytest.fixture(scope="session")
def own_mysql() -> Iterator[MySQL]:
    """A server that may be stopped."""
    from rowtide_stack import MySQL

    with MySQL() as server:
        yield server


@pytest.fixture(scope="session")
def own_kafka() -> Iterator[Kafka]:
    """A broker that may be stopped."""
    from rowtide_stack import Kafka

    with Kafka() as server:
        yield server


@pytest.fixture
def configured(tmp_path: Path, mysql_db: Database, kafka: Kafka) -> Callable[..., WorkerConfig]:
    """Make a configuration for a database of the shared MySQL; words are properties, ``_`` for ``.``."""

    def make(*, exactly_once: bool = False, **more: str) -> WorkerConfig:
        properties = {name.replace("_", "."): value for name, value in more.items()}
        given = {"database.include.list": mysql_db.name, **(EXACTLY_ONCE if exactly_once else {}), **properties}
        return WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, given)

    return make
