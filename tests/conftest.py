"""Servers for tests: each is started when the first test asks for it, once for the whole run.

A test that stops, kills or reconfigures a server makes one of its own (``with MySQL() as server``): these here are
shared, and a test leaves them as it found them, but for databases and topics of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka, MariaDB, MySQL, ZooKeeper


@pytest.fixture(scope="session")
def mysql() -> Iterator[MySQL]:
    """MySQL with its binlog on, ROW and FULL, with GTIDs."""
    from rowtide_stack import MySQL

    with MySQL() as server:
        yield server


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariaDB]:
    """MariaDB with its binlog on, ROW and FULL."""
    from rowtide_stack import MariaDB

    with MariaDB() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[Kafka]:
    """A Kafka broker, ``kafka.bootstrap``; topics are not made by themselves."""
    from rowtide_stack import Kafka

    with Kafka() as server:
        yield server


@pytest.fixture(scope="session")
def zookeeper() -> Iterator[ZooKeeper]:
    """A ZooKeeper server."""
    from rowtide_stack import ZooKeeper

    with ZooKeeper() as server:
        yield server


@pytest.fixture
def mysql_db(mysql: MySQL) -> Iterator[Database]:
    """A new database of the shared MySQL, of a name that no other test has; dropped at the end."""
    with mysql.database() as database:
        yield database


@pytest.fixture
def mariadb_db(mariadb: MariaDB) -> Iterator[Database]:
    """A new database of the shared MariaDB, of a name that no other test has; dropped at the end."""
    with mariadb.database() as database:
        yield database
