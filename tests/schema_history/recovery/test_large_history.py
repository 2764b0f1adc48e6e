"""Recovery of a large history is correct and needs little memory; ``tests/bench/recovery.py`` measures its time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.history_record import history_record

SERVER = Server(Flavor.MYSQL, "8.4.3")
TABLES, ALTERS = 10_000, 4
MAX_MB = 500

_RECOVER = """
import json, sys
from pathlib import Path
from rowtide.schema_history.compaction.compacting_history import save_summary
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.compaction.summary_store import FileSummaries
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.compaction.history_reader import StoredHistory, read_history

path, pos = Path(sys.argv[1]), int(sys.argv[2])
kept = StoredHistory(FileSchemaHistory(path), "p", FileSummaries(path))
reading = read_history(kept, Server(Flavor.MYSQL, "8.4.3"), BinlogPosition("binlog.000001", pos))
tables = reading.tables()
save_summary(kept, reading, 1)
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(json.dumps({
    "tables": len(tables),
    "columns": [[column.name for column in tables.table("shop", f"t{n}").columns] for n in (0, 1, 500, 999)],
    "unsummarised": reading.unsummarised,
    "megabytes": int(status["VmHWM"].split()[0]) / 1024,
}))
"""
# VmHWM, not getrusage(): its ru_maxrss is kept at exec(), and would be at least that of the process that runs the tests


def write(path: Path) -> int:
    """Write a history by repeating the records of one table, because creating all takes a minute; returns its end."""
    tables, templates = Tables(SERVER), []
    columns = "id BIGINT UNSIGNED PRIMARY KEY, name VARCHAR(100) NOT NULL, price DECIMAL(10,2), n TEXT, UNIQUE (name)"
    statements = [f"CREATE TABLE t_0_ ({columns})"]
    statements += [f"ALTER TABLE t_0_ ADD COLUMN extra{number} INT DEFAULT 5" for number in range(ALTERS)]
    tables.apply(QueryEvent("CREATE DATABASE shop", "", sql_mode=0))
    for statement in statements:
        for change in tables.apply(QueryEvent(statement, "shop", sql_mode=0)).changes:
            text = history_record(change, "p", {"file": "binlog.000001", "pos": 987654321}, 1)
            templates.append(json.dumps(json.loads(text), separators=(",", ":")))
    pos = 0
    with path.open("w") as file:
        for template in templates:
            for number in range(TABLES):
                pos += 100
                file.write(template.replace("t_0_", f"t{number}").replace("987654321", str(pos)) + "\n")
    return pos


@pytest.mark.servers  # it needs none, but takes long
def test_a_large_history_is_recovered_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "history"
    end = write(path)
    assert end == 100 * TABLES * (1 + ALTERS)

    def recovered(pos: int) -> dict[str, object]:
        command = [sys.executable, "-c", _RECOVER, str(path), str(pos)]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)  # type: ignore[no-any-return]

    whole, compact = recovered(end), recovered(end)
    first = ["id", "name", "price", "n", *(f"extra{number}" for number in range(ALTERS))]
    assert whole["tables"] == compact["tables"] == TABLES
    assert whole["columns"] == compact["columns"] == [first] * 4
    assert [each["unsummarised"] for each in (whole, compact)] == [TABLES * (1 + ALTERS), 0]
    for each in (whole, compact):
        assert isinstance(each["megabytes"], float)
        assert each["megabytes"] < MAX_MB
