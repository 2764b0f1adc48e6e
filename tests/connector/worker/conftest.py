"""Fixtures for workers that run as processes against real servers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.processes.worker_process import WorkerConfig

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MySQL

EXACTLY_ONCE = {"exactly.once.source.support": "enabled", "exactly.once.support": "required"}


@pytest.fixture(scope="session")
def own_mysql() -> Iterator[MySQL]:
    """A database server that a test may stop."""
    from rowtide_stack import MySQL

    with MySQL() as server:
        yield server


@pytest.fixture(scope="session")
def own_kafka() -> Iterator[Kafka]:
    """A broker that a test may stop."""
    from rowtide_stack import Kafka

    with Kafka() as server:
        yield server


@pytest.fixture
def configured(tmp_path: Path, mysql_db: Database, kafka: Kafka) -> Callable[..., WorkerConfig]:
    """Create configurations for a database of the shared MySQL; keywords are properties with ``_`` for ``.``."""

    def make(*, exactly_once: bool = False, **more: str) -> WorkerConfig:
        properties = {name.replace("_", "."): value for name, value in more.items()}
        given = {"database.include.list": mysql_db.name, **(EXACTLY_ONCE if exactly_once else {}), **properties}
        return WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, given)

    return make
