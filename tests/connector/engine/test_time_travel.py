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
from rowtide.connector.protocol.binlog_file import MAGIC, binlog_packets
from rowtide.connector.protocol.header import GTID_TYPES
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
            committed = list(table_changes(chosen, table, Case(case).binlog, "0-1-48", "0-1-48"))
            assert shown(committed) == shown(wanted), "its rows are before the start"
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
        ((last, first), "is before the start .* swap them"),
        ((unknown, None), f"the start {unknown} is not in the files"),
        ((None, unknown), f"the end {unknown} is not in the files"),
        (("binlog.000099:4", None), r"the start is in binlog\.000099, but the files are"),
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


def packets(case: str) -> list[tuple[int, bytes]]:
    """The events of a case's only file, with their positions."""
    (file,) = binlog_files(Case(case).binlog)
    found, position = [], 4
    with file.path.open("rb") as stream:
        for packet in binlog_packets(stream, file.name):
            found.append((position, packet))
            position += len(packet)
    return found


def written(folder: Path, name: str, events: list[bytes]) -> None:
    (folder / name).write_bytes(MAGIC + b"".join(events))


def test_an_xa_transaction_that_was_prepared_before_the_start(tmp_path: Path) -> None:
    case, folder = "mariadb-ddl", tmp_path / "binlog"
    folder.mkdir()
    events = [packet for _, packet in packets(case)]
    commit = next(place for place, packet in enumerate(events) if b"XA COMMIT" in packet) - 1
    written(folder, "binlog.000001", events[:commit])
    written(folder, "binlog.000002", [events[0], *events[commit:]])
    chosen = config(case)
    (wanted,) = [c for c in whole(case)[0] if c.position.gtid == "0-1-47"]
    table = f"{wanted.database}.{wanted.table}"
    found = list(table_changes(chosen, table, folder, "binlog.000002:4"))
    assert shown(found)[:1] == shown([wanted]), "its rows are in the file before"
    (folder / "binlog.000001").unlink()
    with pytest.raises(rowtide.ConnectorError, match=r"rows of XA transaction .* were prepared before the first file"):
        list(table_changes(chosen, table, folder))


def test_a_start_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    case = "mariadb-ddl"
    chosen, binlog = config(case, tmp_path / "history"), Case(case).binlog
    changes = whole(case)[0]
    table = f"{changes[0].database}.{changes[0].table}"
    refused = 0
    for position, packet in packets(case)[3:]:
        begins, message = packet[4] in GTID_TYPES, ""
        try:
            found = shown(list(table_changes(chosen, table, binlog, f"binlog.000001:{position}")))
        except OffsetError as error:
            found, message = [], str(error)
        assert found == [one for one in shown(changes) if one in found]
        assert not message or (not begins and "is inside a transaction" in message)
        refused += bool(message)
    assert refused > 50


def test_files_may_grow_while_they_are_replayed(tmp_path: Path) -> None:
    """As those of a mirror do: whole transactions come, and only those."""
    case = "ddl-stream"
    chosen, events = config(case, tmp_path / "history"), packets(case)
    changes = whole(case)[0]
    table = f"{changes[-1].database}.{changes[-1].table}"
    wanted = [c for c in changes if f"{c.database}.{c.table}" == table]
    (tmp_path / "binlog").mkdir()
    file = tmp_path / "binlog" / "binlog.000001"
    data = bytearray(MAGIC + b"".join(packet for _, packet in events))
    data[21] |= 1  # as the server marks a file that it writes to
    for position, _ in events[-40::3]:
        file.write_bytes(data[: position + 9])
        growing, found = table_changes(chosen, table, tmp_path / "binlog"), []
        for number, change in enumerate(growing):
            if number == 0:
                file.write_bytes(data)
            found.append(change)
        assert shown(found) == shown(wanted)[: len(found)]
        ended = found[-1].position.gtid if found else None
        assert ended is None or sum(c.position.gtid == ended for c in wanted) == sum(
            c.position.gtid == ended for c in found
        )
