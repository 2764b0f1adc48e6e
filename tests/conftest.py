"""The servers of the tests, each started once per run when the first test needs it.

These servers are shared, so a test leaves them as it found them, except for its own databases and topics. A test that
stops, kills or reconfigures a server starts its own (``with MySQL() as server``).
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

# Without bytecode, each of several hundred processes would compile all modules again.
if os.environ.pop("PYTHONDONTWRITEBYTECODE", None):
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

# A shell starts its jobs in the background with SIGINT ignored. All programs that tests interrupt would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The duration of an example depends on the load of the machine, so it must not fail a test.
settings.register_profile("rowtide", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rowtide")

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MariaDB, MySQL, Registry, ZooKeeper

    from tests.support.kafka.topic_tools import Topics


_SLOW = "spark", "servers"
"""The markers of slow tests, in their order after the fast ones."""


_SHARED_WHEEL = "test_packaging.py"
"""Tests that share a fixture of ten seconds. They come first: the first tests of a worker are not given to another."""


def _rank(item: pytest.Item) -> int:
    return next((rank for rank, mark in enumerate(_SLOW, 1) if item.get_closest_marker(mark)), 0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run first the fast tests, then those with Spark, then those with servers.

    With ``-n 3``, each of the three workers begins with its third of the list, so that the tests of a file share what
    it caches. A worker that is done takes the second half of what is left to another one. So one worker runs the tests
    with Spark, which compute, while the others run tests with servers, which often wait: three workers keep two cores
    busy. The tests at the end are short ones. Each worker starts its own servers.
    """
    items.sort(key=lambda item: (_rank(item), item.path.name != _SHARED_WHEEL))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Prepare the run of the collected tests."""
    gc.freeze()  # a garbage collection during a test need not look at thousands of tests
    _download(session)


def _download(session: pytest.Session) -> None:
    """Download the programs of the collected tests before the first test, whose timeout would include the download."""
    needs = {mark for item in session.items for mark in (*_SLOW, "browser") if item.get_closest_marker(mark)}
    if session.config.option.collectonly or not needs:
        return
    from rowtide_stack.programs.catalogue import PROGRAMS
    from rowtide_stack.runners.runner import provider

    wanted = {"java"} if needs & {*_SLOW} else set[str]()
    if "servers" in needs and provider() == "local":
        wanted |= {"kafka", "mariadb", "mysql", "registry", "zookeeper"}
    if "spark" in needs:
        wanted |= {"spark"}
    if "browser" in needs:
        wanted |= {"chromium"}
    capture = session.config.pluginmanager.getplugin("capturemanager")
    with capture.global_and_fixture_disabled() if capture else contextlib.nullcontext():
        for name in sorted(wanted):
            PROGRAMS[name]()


@pytest.fixture(scope="session")
def mysql() -> Iterator[MySQL]:
    """MySQL with its binlog enabled (ROW, FULL) and with GTIDs."""
    from rowtide_stack import MySQL

    with MySQL() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """MariaDB with its binlog enabled (ROW, FULL)."""
    from rowtide_stack import MariaDB

    with MariaDB() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A Kafka broker, which does not create topics automatically."""
    from rowtide_stack import Kafka

    with Kafka() as server:
        yield server


@pytest.fixture
def topics(kafka: Kafka) -> Topics:
    """The topics of the shared Kafka, with unique names for each test."""
    from tests.support.kafka.topic_tools import Topics

    return Topics(kafka.bootstrap)


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeper]:
    """A ZooKeeper server."""
    from rowtide_stack import ZooKeeper

    with ZooKeeper() as server:
        yield server


@pytest.fixture(scope="session")
def registry() -> Iterator[Registry]:
    """A schema registry."""
    from rowtide_stack import Registry

    with Registry() as server:
        yield server


@pytest.fixture
def mysql_db(mysql: MySQL) -> Iterator[Database]:
    """A new database of the shared MySQL with a unique name; dropped at the end."""
    with mysql.database() as database:
        yield database


@pytest.fixture
def mariadb_db(mariadb: MariaDB) -> Iterator[Database]:
    """A new database of the shared MariaDB with a unique name; dropped at the end."""
    with mariadb.database() as database:
        yield database


def pytest_unconfigure() -> None:
    """Silence what the binding of duckdb prints at the end of a process about objects that it has not released."""
    if "duckdb" in sys.modules:
        atexit.register(os.dup2, os.open(os.devnull, os.O_WRONLY), 2)
