"""What is kept of a run that was killed, without servers."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any, cast

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.chunks.key_ranges import KeyRanges
from rowtide.schema_history.model import Column, TableId
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import KeyedFold, Record
from rowtide.verify.positions import RecordPlace
from rowtide.verify.resume import StoredReadings, TableReading
from rowtide.verify.source import SourceTable

ID = TableId("shop", "a/b")
COLUMN = Column("id", "int", "int", nullable=False)
READING = TableReading(SourceOffset("binlog.000007", 99, gtids="a:1-5"), 1000.0, ["t"], ("12",), complete=False)
RUN = {"--where": "", "--config": "f"}


def table(created: str = "CREATE TABLE b (\n  id int\n) AUTO_INCREMENT=5") -> SourceTable:
    made: Any = type("Table", (), {"id": ID, "created": created, "ranges": KeyRanges(ID, [COLUMN])})
    return cast("SourceTable", made)


def text(**more: Any) -> str:
    found = json.loads(StoredReadings(Path("d"), "crm", RUN).text(READING, table(), "server"))
    return json.dumps(found | more)


def test_a_reading_is_found_again() -> None:
    resume = StoredReadings(Path("d"), "crm", RUN)
    counted = table("CREATE TABLE b (\n  id int\n) AUTO_INCREMENT=9")
    assert resume.reading(text(), counted, "server") == READING
    assert resume.path(counted) == Path("d/crm.shop.a%2Fb.verify")


@pytest.mark.parametrize(
    ("more", "server", "created"),
    [
        ({}, "other", "CREATE TABLE b (\n  id int\n) AUTO_INCREMENT=5"),
        ({}, "server", "CREATE TABLE b (\n  id bigint\n) AUTO_INCREMENT=5"),
        ({"rowtide": "0.0.0"}, "server", "CREATE TABLE b (\n  id int\n)"),
    ],
)
def test_a_table_is_read_anew_after_changes(more: dict[str, Any], server: str, created: str) -> None:
    assert StoredReadings(Path("d"), "crm", RUN).reading(text(**more), table(created), server) is None


def test_a_table_is_read_anew_after_a_time() -> None:
    assert StoredReadings(Path("d"), "crm", RUN, 60).reading(text(), table(), "server") is None
    assert StoredReadings(Path("d"), "crm", RUN, 60).reading(text(begun=time.time()), table(), "server") is not None


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"connector": "hr"}, "belongs to connector hr, version 2"),
        ({"version": 1}, "belongs to connector crm, version 1"),
        ({"run": {"--where": "id > 5", "--config": "f"}}, "a different value of --where, "),
        ({"run": {}}, "a different value of --config, --where, "),
        ({"bound": ["1 OR 1"]}, "is damaged"),
        ({"bound": ["1", "2"]}, "is damaged"),
        ({"bound": 5}, "is damaged"),
        ({"start": "{"}, "is damaged"),
        ({"begun": None}, "is damaged"),
        ({"run": None}, "is damaged"),
    ],
)
def test_a_damaged_or_foreign_file_is_refused(more: dict[str, Any], reason: str) -> None:
    with pytest.raises(Undecided, match=reason) as caught:
        StoredReadings(Path("d"), "crm", RUN).reading(text(**more), table(), "server")
    assert "delete it, or name another directory with --resume" in str(caught.value)


@pytest.mark.parametrize("damage", ["", "[1]", "no JSON"])
def test_a_damaged_text_is_refused(damage: str) -> None:
    with pytest.raises(Undecided, match="is damaged"):
        StoredReadings(Path("d"), "crm", RUN).reading(damage, table(), "server")


def test_rows_that_were_kept_are_there_again_with_their_columns(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fold = KeyedFold(tmp_path / "1", kept)
    assert fold.reading is None
    fold.add_source([(("i1",), {"id": "i1", "n": "i5"}), (("i2",), {"id": "i2", "n": "-"})])
    fold.keep("one")
    fold.add_source([(("i3",), {"id": "i3", "more": "sx"})])
    with pytest.raises(sqlite3.OperationalError, match="locked"):
        KeyedFold(tmp_path / "2", kept)
    fold.close()

    fold = KeyedFold(tmp_path / "3", kept)
    assert (fold.reading, fold.counts()) == ("one", (2, 0))
    fold.add(Record(("i1",), b"1", {"id": "i1", "m": "i5"}, RecordPlace(0, 0, "c")))
    fold.add_source([(("i3",), {"n": "-", "id": "i3"})])
    fold.keep("two")
    assert sorted(fold.unlike()) == [
        (("i1",), {"id": "i1", "n": "i5"}, {"id": "i1", "m": "i5"}),
        (("i2",), {"id": "i2", "n": "-"}, None),
        (("i3",), {"n": "-", "id": "i3"}, None),
    ]
    fold.close()

    fold = KeyedFold(tmp_path / "4", kept)
    assert (fold.reading, fold.counts()) == ("two", (3, 0))
    fold.forget()
    assert (fold.reading, fold.counts()) == (None, (0, 0))
    fold.close()


@pytest.mark.parametrize("damage", ["other", "cut", "bytes"])
def test_a_damaged_file_of_rows_is_an_error(damage: str, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    fold = KeyedFold(tmp_path / "1", kept)
    fold.add_source(((f"i{i}",), {"id": f"i{i}"}) for i in range(5000))
    fold.keep("one")
    fold.close()
    data = kept.read_bytes()
    kept.write_bytes(
        {"other": b"id\n1\n" * 999, "cut": data[: len(data) // 2], "bytes": data[:8192] + b"?" * 9999 + data[18191:]}[
            damage
        ]
    )
    with pytest.raises(sqlite3.DatabaseError):
        KeyedFold(tmp_path / "2", kept)


def test_a_table_without_a_key_is_not_read_for_ever(tmp_path: Path) -> None:
    """Each run that was killed read it from its beginning again, and nothing said so."""
    resume, counts = StoredReadings(tmp_path, "crm", RUN), list[int]()

    def run(error: BaseException | None = None) -> None:
        with resume.whole(table()) as interrupted:
            counts.append(interrupted)
            if error is not None:
                raise error

    for _ in range(3):
        with pytest.raises(SystemExit):
            run(SystemExit(143))
    with pytest.raises(Undecided, match=r"3 runs in succession were interrupted.* delete .*a%2Fb.interrupted"):
        run()
    (kept,) = tmp_path.iterdir()
    kept.write_text("2")
    run()
    with pytest.raises(OSError, match="lost"):
        run(OSError("lost"))
    assert (counts, [*tmp_path.iterdir()]) == ([0, 1, 2, 2, 0], [])
    kept.write_text("x")
    with pytest.raises(Undecided, match="is damaged"):
        run()
