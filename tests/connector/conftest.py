"""Fixtures for tests whose servers have no binlog from its beginning on, or prepared XA transactions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.snapshot.view import consistent_view, prepared_xa

if TYPE_CHECKING:
    from rowtide_stack import Database, MariaDB, MySQL


@pytest.fixture(scope="session")
def purged_mysql() -> Iterator[MySQL]:
    """A MySQL whose binlog tests may purge: other tests read that of the shared one."""
    from rowtide_stack import MySQL

    with MySQL() as server:
        yield server


@pytest.fixture(scope="session")
def purged_mariadb() -> Iterator[MariaDB]:
    """A MariaDB whose binlog tests may purge: other tests read that of the shared one."""
    from rowtide_stack import MariaDB

    with MariaDB() as server:
        yield server


@pytest.fixture
def purged_mysql_db(purged_mysql: MySQL) -> Iterator[Database]:
    """A new database of this MySQL."""
    with purged_mysql.database() as database:
        yield database


@pytest.fixture
def purged_mariadb_db(purged_mariadb: MariaDB) -> Iterator[Database]:
    """A new database of this MariaDB."""
    with purged_mariadb.database() as database:
        yield database


@pytest.fixture
def stay_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let snapshots look for the end of prepared XA transactions without a wait: those of the test do not end."""
    monkeypatch.setattr(consistent_view, "_XA_WAIT_S", 0)
    monkeypatch.setattr(prepared_xa, "_END_WAIT_S", 0)
