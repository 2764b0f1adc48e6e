"""What stops Debezium without need, and where rowtide's going on is tested; and where stopping is right.

=============================================  =========================================================================
Debezium stops at                              tests
=============================================  =========================================================================
ANSI_QUOTES                                    recorded case ``fails-ansi-quotes``
back-quotes in names                           here, recorded case ``fails-backtick-in-column-name``
nameless ALTER SCHEMA                          recorded case ``fails-unparseable-ddl``
RENAME = t                                     here
DECIMAL ZEROFILL                               recorded case ``fails-decimal-zerofill-snapshot``
NOBLOB and other row images of sessions        recorded case ``fails-session-row-image-noblob``, ``test_minimal_images``
YEAR 0                                         recorded case ``mariadb-fails-year-zero``, ``test_damage_list``
February 31st                                  here
INET4, INET6                                   recorded cases ``mariadb-fails-inet4``, ``mariadb-fails-inet6``
sequences                                      recorded case ``mariadb-fails-sequence``
system versioning                              recorded case ``mariadb-system-versioned``, ``test_versioned_tables``
CREATE OR REPLACE                              recorded case ``mariadb-fails-create-or-replace``
``/*M! */``                                    recorded case ``mariadb-fails-executable-comment``
rows with more or fewer columns                ``test_failure_modes``
---------------------------------------------  -------------------------------------------------------------------------
rowtide stops too, and says what helps
---------------------------------------------  -------------------------------------------------------------------------
binlog_format=STATEMENT                        ``test_check_servers``; of a session: ``session-row-format-changes``
binlog_row_image=MINIMAL, unless allowed       ``test_check_servers``, ``test_minimal_images``
a binlog that was purged                       ``test_bad_input``, ``test_snapshot_live``
=============================================  =========================================================================
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.records.batch import Output
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

SESSION = "SET SESSION sql_mode = 'ALLOW_INVALID_DATES', time_zone = '+00:00'"


def rows(outputs: Iterable[Output]) -> list[tuple[str, dict[str, Any]]]:
    """Table and row of each record."""
    found = []
    for message in written(outputs):
        value = json.loads(message.value or "{}")
        if value.get("op") in ("r", "c"):
            found.append((value["source"]["table"], value["after"]))
    return found


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_the_31st_of_february(flavor: str, request: pytest.FixtureRequest) -> None:
    """A day that no calendar has is null, or 1970 where null may not be, as a zero date is."""
    database: Database = request.getfixturevalue(f"{flavor}_db")
    values = "'2024-02-31', '2023-02-29 10:00:00', '2024-04-31', '2024-02-29'"
    database.execute(
        SESSION,
        "CREATE TABLE t (id INT PRIMARY KEY, d DATE, dt DATETIME(6), nn DATE NOT NULL, real_day DATE)",
        f"INSERT INTO t VALUES (1, {values})",
    )
    config = configured(database)
    taken = snapshot(config)
    found = rows(taken.outputs())
    database.execute(SESSION, f"INSERT INTO t VALUES (2, {values})")
    for step in streamed(config, taken.tables, taken.offset, binlog_end(database.server)):
        found += rows(step.outputs)
    assert found == [("t", {"id": key, "d": None, "dt": None, "nn": 0, "real_day": 19782}) for key in (1, 2)]


def test_names_and_statements(mysql_db: Database) -> None:
    mysql_db.execute("CREATE TABLE `a``b` (id INT PRIMARY KEY, `c``d` INT)", "INSERT INTO `a``b` VALUES (1, 1)")
    config = configured(mysql_db)
    taken = snapshot(config)
    found = rows(taken.outputs())
    mysql_db.execute(
        "ALTER TABLE `a``b` ADD COLUMN `e``` INT FIRST, DROP COLUMN `c``d`",
        "INSERT INTO `a``b` VALUES (2, 2)",
        "ALTER TABLE `a``b` RENAME = renamed",
        "INSERT INTO renamed VALUES (3, 3)",
        "SET SESSION sql_mode = 'ANSI_QUOTES'",
        'ALTER TABLE "renamed" RENAME COLUMN "e`" TO "f""g", RENAME AS "h"',
        "INSERT INTO h VALUES (4, 4)",
    )
    for step in streamed(config, taken.tables, taken.offset, binlog_end(mysql_db.server)):
        found += rows(step.outputs)
    assert found == [
        ("a`b", {"id": 1, "c`d": 1}),
        ("a`b", {"e`": 2, "id": 2}),
        ("renamed", {"e`": 3, "id": 3}),
        ("h", {'f"g': 4, "id": 4}),
    ]
