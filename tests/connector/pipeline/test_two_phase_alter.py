"""MariaDB's ALTER TABLE in two parts (``binlog_alter_two_phase``): it takes effect at its second."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.records.batch import Batch, HistoryEntry
from rowtide.schema_history.server.query_event import Flavor
from tests.support.ddl.recorder import DdlRecorder

if TYPE_CHECKING:
    from rowtide_stack import Database


@pytest.mark.servers
def test_an_alter_in_two_parts_is_done_once(mariadb_db: Database) -> None:
    recorder = DdlRecorder(mariadb_db.server, Flavor.MARIADB)
    try:
        for statement in (
            f"USE {mariadb_db.name}",
            "CREATE TABLE t (id INT)",
            "SET SESSION binlog_alter_two_phase = 1",
            "INSERT INTO t VALUES (1), (1)",
            "ALTER TABLE t ADD a INT",
            "INSERT INTO t VALUES (2, 3)",
        ):
            assert recorder.run(statement) is None
        assert "Duplicate entry" in (recorder.run("ALTER TABLE t ADD UNIQUE (id), ADD b INT, ALGORITHM=COPY") or "")
        assert recorder.run("INSERT INTO t VALUES (4, 5)") is None
        outputs = list(recorder.outputs())
    finally:
        recorder.close()
    batches = [output for output in outputs if isinstance(output, Batch)]
    values = [json.loads(value)["payload"]["after"] for batch in batches for _, value, _ in batch.messages]
    assert values == [{"id": 1}, {"id": 1}, {"id": 2, "a": 3}, {"id": 4, "a": 5}]
    statements = [json.loads(output.text)["ddl"] for output in outputs if isinstance(output, HistoryEntry)]
    assert [statement.split()[0] for statement in statements] == ["CREATE", "ALTER"]
