"""A database on each server for the tests of snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from rowtide_stack import Database, MariaDB, MySQL


@pytest.fixture(params=["mysql", "mariadb"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    """A new database on MySQL, and one on MariaDB."""
    server: MySQL | MariaDB = request.getfixturevalue(request.param)
    with server.database() as found:
        yield found
