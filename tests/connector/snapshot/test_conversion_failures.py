"""Values that cannot be converted (``event.converting.failure.handling.mode``), in snapshot and stream."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.errors import SchemaError
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers

SETTING = "event.converting.failure.handling.mode"


@pytest.mark.parametrize("mode", ["fail", "warn", "skip"])
def test_a_time_that_connect_cannot_represent(mysql_db: Database, mode: str, caplog: pytest.LogCaptureFixture) -> None:
    mysql_db.execute(
        "CREATE TABLE t (id INT PRIMARY KEY, a TIME, b TIME NOT NULL, c TIME NOT NULL DEFAULT '01:00:00', d INT)",
        "INSERT INTO t VALUES (1, '-10:00:00', '25:00:00', '-00:00:01', 5)",
    )
    config = configured(mysql_db, {"time.precision.mode": "connect", SETTING: mode})
    taken = snapshot(config)
    if mode == "fail":
        with pytest.raises(SchemaError, match=rf"column a \(time\): .* cannot be converted.*{SETTING}=warn"):
            list(taken.outputs())
        return
    with caplog.at_level(logging.WARNING):
        outputs = list(taken.outputs())
    reported = [line for line in caplog.messages if "cannot be converted" in line]
    assert len(reported) == (3 if mode == "warn" else 0)
    mysql_db.execute("INSERT INTO t SELECT 2, a, b, c, d FROM t")
    for step in streamed(config, taken.tables, taken.offset, binlog_end(mysql_db.server)):
        outputs += step.outputs
    values = [json.loads(message.value or "{}") for message in written(outputs)]
    rows = [value["after"] for value in values if "op" in value]
    assert rows == [{"id": key, "a": None, "b": 0, "c": 3_600_000, "d": 5} for key in (1, 2)]
