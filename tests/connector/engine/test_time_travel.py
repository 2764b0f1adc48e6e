"""The changes of one table between two points, compared with those of a replay of everything."""

from __future__ import annotations

import functools
import json
from pathlib import Path

import pytest

import rowtide
from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.engine.time_travel import find_section, table_changes
from rowtide.connector.errors import EngineError, OffsetError
from rowtide.connector.records.batch import Batch, HistoryEntry
from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.files.folder import binlog_files
from tests.support.recordings.golden import Case

CASES = ["ddl-stream", "mariadb-ddl"]


@functools.cache
def whole(case: str) -> tuple[list[Change], list[str]]:
    """All changes of a case, and the records of its schema history."""
    settings = pipeline_settings(from_properties(Case(case).properties()), "run", changes=True)
    changes: list[Change] = []
    entries: list[str] = []
    for output in replay(Case(case).binlog, settings, SourceOffset(binlog_files(Case(case).binlog)[0].name, 4, "")):
        if isinstance(output, HistoryEntry):
            entries.append(json.dumps(json.loads(output.text)))
        elif isinstance(output, Batch):
            changes += output.changes
    return changes, entries


def config(case: str, history: Path | None = None) -> rowtide.Configuration:
    """A configuration of a case with a schema history, or without one."""
    properties = {k: v for k, v in Case(case).properties().items() if not k.startswith("schema.history.internal")}
    if history is not None:
        history.write_text("".join(f"{entry}\n" for entry in whole(case)[1]))
        properties["schema.history.internal.file.filename"] = str(history)
        properties["schema.history.internal"] = "io.debezium.storage.file.history.FileSchemaHistory"
    else:
        properties["schema.history.internal"] = "io.debezium.relational.history.MemorySchemaHistory"
    return from_properties(properties)


def shown(changes: list[Change]) -> list[tuple[object, ...]]:
    return [(c.op, c.position.gtid, c.position.file, c.position.pos, repr(c.key), repr(c.before),
             repr(c.after)) for c in changes]  # fmt: skip


@pytest.mark.parametrize("with_history", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_every_transaction_of_every_table_is_replayed_by_itself(case: str, with_history: bool, tmp_path: Path) -> None:
    changes, _ = whole(case)
    chosen = config(case, tmp_path / "history" if with_history else None)
    pairs = list(dict.fromkeys((f"{c.database}.{c.table}", str(c.position.gtid)) for c in changes))
    assert len(pairs) > 5
    for table, gtid in pairs:
        wanted = [c for c in changes if f"{c.database}.{c.table}" == table and c.position.gtid == gtid]
        found = list(table_changes(chosen, table, Case(case).binlog, gtid, gtid))
        if (case, gtid) == ("mariadb-ddl", "0-1-47"):
            assert not found, "only XA COMMIT, which has another GTID, decides about the rows of XA PREPARE"
            found = [c for c in table_changes(chosen, table, Case(case).binlog, gtid) if c.position.gtid == gtid]
        assert shown(found) == shown(wanted), (table, gtid)


@pytest.mark.parametrize("case", CASES)
def test_positions_and_gtids_name_the_same_sections(case: str, tmp_path: Path) -> None:
    changes, _ = whole(case)
    chosen, binlog = config(case, tmp_path / "history"), Case(case).binlog
    table = max(
        {f"{c.database}.{c.table}" for c in changes}, key=lambda t: sum(f"{c.database}.{c.table}" == t for c in changes)
    )
    of_table = [c for c in changes if f"{c.database}.{c.table}" == table]
    first, last = str(of_table[0].position.gtid), str(of_table[-1].position.gtid)
    assert shown(list(table_changes(chosen, table, binlog, first, last))) == shown(of_table)
    assert shown(list(table_changes(chosen, table, binlog, None, None))) == shown(of_table)
    at = find_section(binlog, last, None).start
    position = f"{at.file}:{at.pos}"
    in_last = [c for c in of_table if str(c.position.gtid) == last]
    assert shown(list(table_changes(chosen, table, binlog, position))) == shown(in_last)
    before = list(table_changes(chosen, table, binlog, first, position))
    assert shown(before) == shown(of_table[: -len(in_last)])
    if at.gtids and "," not in at.gtids and case == "ddl-stream":
        assert shown(list(table_changes(chosen, table, binlog, at.gtids))) == shown(in_last)
        assert shown(list(table_changes(chosen, table, binlog, first, at.gtids))) == shown(before)


def test_points_that_are_not_there(tmp_path: Path) -> None:
    case = "ddl-stream"
    changes, _ = whole(case)
    chosen, binlog = config(case, tmp_path / "history"), Case(case).binlog
    one = changes[0]
    table = f"{one.database}.{one.table}"
    first, last = str(one.position.gtid), str(changes[-1].position.gtid)
    unknown = "3e11fa47-71ca-11e1-9e33-c80aa9429562:23"
    for points, message in (
        ((last, first), "is before the start .* exchange the two"),
        ((unknown, None), f"the start {unknown} is not in the files"),
        ((None, unknown), f"the end {unknown} is not in the files"),
        (("binlog.000099:4", None), r"the start is in binlog\.000099, and the files are"),
        (("binlog.000001:99999999", None), "is after the end of the file"),
        (("yesterday", None), "the start 'yesterday' is not a GTID, a GTID set or a position such as"),
    ):
        with pytest.raises(OffsetError, match=message):
            list(table_changes(chosen, table, binlog, *points))
    with pytest.raises(rowtide.UnknownTable, match=r"there was no table shop\.nothing .* there were "):
        list(table_changes(chosen, "shop.nothing", binlog))
    with pytest.raises(EngineError, match=r"'orders' is not a table: give database\.table"):
        list(table_changes(chosen, "orders", binlog))


def test_a_schema_history_that_begins_later_is_an_error_and_no_wrong_row(tmp_path: Path) -> None:
    case = "ddl-stream"
    changes, _ = whole(case)
    chosen = config(case, tmp_path / "history")
    (tmp_path / "history").write_text("")
    one = changes[0]
    gtid = str(one.position.gtid)
    with pytest.raises(rowtide.ConnectorError, match=f"{one.table}"):
        list(table_changes(chosen, f"{one.database}.{one.table}", Case(case).binlog, gtid, gtid))
