"""What is particular to tables in a DuckDB file."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from rowtide.connector.delivery.errors import DeliveryError, OffsetStoreError, SinkUnavailable
from rowtide.connector.delivery.tables.duckdb import DuckDbOffsets, DuckDbStore
from rowtide.connector.delivery.tables.sink import TableSink
from rowtide.connector.records.offset import SourceOffset
from tests.support.table_sinks import Source, keyed

TWO = [(1, "x"), (2, None)]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    made = Source(tmp_path, "duckdb")
    yield made
    made.sink.close()


def test_a_table_of_somebody_else_is_not_replaced(source: Source) -> None:
    source.query("CREATE SCHEMA shop")
    source.query("CREATE TABLE shop.t AS SELECT 1 AS mine")
    source.run("CREATE TABLE t (id INT)")
    with pytest.raises(DeliveryError, match=r"has a table shop\.t that this sink has not created"):
        source.commit()
    assert source.rows() == [(1,)]


def test_names_that_differ_in_case_only_are_refused(source: Source) -> None:
    source.run("CREATE TABLE t (id INT)", "CREATE TABLE T (id INT)")
    with pytest.raises(DeliveryError, match=r"shop\.T: .* has a table t in this schema"):
        source.commit()


def test_an_older_history_is_refused(tmp_path: Path) -> None:
    history = tmp_path / "history"
    history.write_text("twelve bytes")
    offsets = DuckDbOffsets(tmp_path / "tables.duckdb", "tables", "p", history)
    offsets.save(SourceOffset("binlog.000001", 4))
    assert offsets.load() is not None
    history.write_text("less")
    with pytest.raises(OffsetStoreError, match=r"has 4 bytes, but the tables .* with 12 bytes of it"):
        offsets.load()
    history.unlink()
    with pytest.raises(OffsetStoreError, match="has 0 bytes"):
        offsets.load()


def test_one_process_writes_at_a_time(source: Source) -> None:
    script = f"from tests.connector.delivery.tables import test_duckdb as t; t.other_process({str(source.path)!r})"
    source.sink.commit(SourceOffset("binlog.000001", 4))
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=False)
    assert "DuckDB lets one process at a time write to a file" in done.stdout, done.stderr


def other_process(file: str) -> None:
    try:
        DuckDbOffsets(Path(file), "tables", "p").load()
    except OffsetStoreError as error:
        print(error)


def test_a_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    other = tmp_path / "text.duckdb"
    other.write_text("no database, but a text that is long enough to be looked at " * 100)
    for path in (other, tmp_path / "missing" / "tables.duckdb", tmp_path):
        sink = TableSink(DuckDbStore(DuckDbOffsets(path, "tables", "p")))
        with pytest.raises(DeliveryError, match=f"the tables in {path} cannot be opened: .*"):
            sink.open()


def test_a_full_disk_loses_nothing(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed(source)
    source.commit()

    def full(*_: object) -> None:
        raise duckdb.IOException("IO Error: Could not write file: No space left on device")

    source.insert("t", (3, "n"))
    monkeypatch.setattr(DuckDbOffsets, "store", full)
    with pytest.raises(SinkUnavailable, match=r"cannot be written: IO Error: .*No space left"):
        source.commit()
    monkeypatch.undo()
    assert source.rows() == TWO


def test_a_change_that_the_file_refuses_is_not_tried_again(source: Source) -> None:
    """Such as a table of somebody else's with the new name of a renamed one."""
    keyed(source)
    source.commit()
    with duckdb.connect(source.path) as connection:
        connection.execute("CREATE TABLE shop.other (x INT)")
    source.run("RENAME TABLE t TO other")
    with pytest.raises(DeliveryError, match=r"reject a change: Catalog Error: .*Nothing is lost") as refused:
        source.commit()
    assert not isinstance(refused.value, SinkUnavailable)


def test_a_missing_package_is_named() -> None:
    script = (
        "import sys; sys.modules['duckdb'] = None\n"
        "from rowtide.connector.delivery.errors import DeliveryError\n"
        "try:\n import rowtide.connector.delivery.tables.duckdb\nexcept DeliveryError as error:\n print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("pip install 'rowtide[duckdb]'")
