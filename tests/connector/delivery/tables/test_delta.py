"""What is particular to tables of Delta Lake: transactions over several tables, files, directories."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import deltalake
import duckdb
import pytest

from rowtide.connector.delivery.errors import DeliveryError, OffsetStoreError, SinkUnavailable
from rowtide.connector.delivery.tables.delta import DeltaOffsets, DeltaStore, directory_name
from rowtide.connector.delivery.tables.sink import TableSink
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.table_events import TableEvent
from rowtide.schema_history.model import Column, TableId
from tests.support.table_sinks import Source, keyed

TWO = [(1, "x"), (2, None)]


@pytest.fixture
def source(tmp_path: Path) -> Iterator[Source]:
    made = Source(tmp_path, "delta")
    yield made
    made.sink.close()


def crash(monkeypatch: pytest.MonkeyPatch, source: Source, at: int) -> None:
    """Let a commit end at its n-th storing of the state, as a crash would, and start again."""
    replace, calls = DeltaOffsets.replace, []

    def crashing(self: DeltaOffsets, state: object) -> None:
        calls.append(state)
        if len(calls) == at:
            raise KeyboardInterrupt
        replace(self, state)  # type: ignore[arg-type]

    monkeypatch.setattr(DeltaOffsets, "replace", crashing)
    with pytest.raises(KeyboardInterrupt):
        source.commit()
    monkeypatch.undo()
    source.restart()


def test_what_was_written_before_a_crash_is_undone(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed(source)
    source.run("CREATE TABLE plain (a INT)")
    source.insert("plain", (1,), (1,))
    source.commit()
    stored = source.offsets.load()
    source.change("u", "t", (1, "x"), (1, "y"))
    source.change("d", "plain", (1,), None)
    crash(monkeypatch, source, 1)
    assert source.rows() == [(1, "y"), (2, None)]  # until the connector writes again
    assert source.offsets.load() == stored
    source.insert("t", (3, "n"))
    source.commit()
    assert source.rows() == [*TWO, (3, "n")]
    assert source.rows("plain") == [(1,), (1,)]


def test_a_change_of_structure_is_undone(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed(source)
    source.commit()
    source.run("ALTER TABLE t DROP a, ADD b INT NOT NULL DEFAULT 5")
    crash(monkeypatch, source, 1)
    assert source.columns() == ["id", "b"]
    stored = source.offsets.load()
    assert stored is not None
    source.sink.commit(stored)
    assert source.columns() == ["id", "a"]
    assert source.rows() == TWO


@pytest.mark.parametrize("at", [1, 2, 3, 4])
def test_tables_exchange_their_names_over_a_crash(source: Source, monkeypatch: pytest.MonkeyPatch, at: int) -> None:
    keyed(source)
    source.run("CREATE TABLE u (id INT PRIMARY KEY)")
    source.insert("u", (7,))
    source.commit()
    source.run("RENAME TABLE t TO tmp, u TO t, tmp TO u")
    crash(monkeypatch, source, at)
    exchanged = at > 1
    stored = source.offsets.load()
    assert stored is not None
    source.sink.commit(stored)
    assert source.rows("u") == (TWO if exchanged else [(7,)])
    assert source.rows("t") == ([(7,)] if exchanged else TWO)
    assert source.names() == ["t", "u"]


def test_a_table_that_was_not_stored_is_not_there(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed(source)
    crash(monkeypatch, source, 3)  # the first two are those of CREATE TABLE and of its directory
    source.sink.commit(SourceOffset("binlog.000001", 1))
    assert source.rows() == []
    source.run("CREATE TABLE more (id INT)")
    crash(monkeypatch, source, 1)
    assert source.names() == ["t"]
    source.sink.commit(SourceOffset("binlog.000001", 1))
    assert [one.name for one in (source.path / "_rowtide").iterdir() if one.is_dir()] == []
    source.table_event(TableEvent("create", TableId("shop", "more"), after=column(source, "more")))
    crash(monkeypatch, source, 2)  # after the position was stored
    source.sink.commit(SourceOffset("binlog.000001", 1))
    assert source.names() == ["more", "t"]


def test_an_undone_table_is_not_undone_again(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files that another program merges and deletes afterwards would be missed."""
    keyed(source)
    source.commit()
    source.insert("t", (3, "n"))
    source.commit()
    source.change("u", "t", (1, "x"), (1, "y"))
    crash(monkeypatch, source, 1)
    recover(source)
    table = deltalake.DeltaTable(source.folder("shop", "t"))
    table.optimize.compact()
    table.vacuum(0, dry_run=False, enforce_retention_duration=False)
    source.restart()
    recover(source)
    assert source.rows() == [*TWO, (3, "n")]
    assert deltalake.DeltaTable(source.folder("shop", "t")).version() == table.version()


@pytest.mark.parametrize("name", ["delta.deletedFileRetentionDuration", "delta.logRetentionDuration"])
def test_nothing_is_deleted_before_the_position_is_stored(
    source: Source, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    keyed(source)
    source.commit()
    table = deltalake.DeltaTable(source.folder("shop", "t"))
    table.alter.set_table_properties({name: "interval 0 seconds", "delta.checkpointInterval": "1"})
    for _ in range(6):  # the store merges files after five versions
        source.change("u", "t", (1, "x"), (1, "y"))
        crash(monkeypatch, source, 1)
        recover(source)
        assert source.rows() == TWO
        source.insert("t", (2, None))
        source.commit()
    assert (source.folder("shop", "t") / "_delta_log" / "_last_checkpoint").exists()  # written after a position


def test_a_log_that_others_have_cleaned_is_named(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed(source)
    source.commit()
    clean(source)  # which does no harm without a crash
    source.change("u", "t", (1, "x"), (1, "y"))
    source.commit()
    source.change("u", "t", (1, "y"), (1, "z"))
    crash(monkeypatch, source, 1)
    clean(source)
    with pytest.raises(DeliveryError, match=r"shop\.t: the log in .* was truncated after version \d+, so what was"):
        recover(source)


def clean(source: Source) -> None:
    """Write versions that only the last checkpoint tells of, as other programs do."""
    table = deltalake.DeltaTable(source.folder("shop", "t"))
    table.alter.set_table_properties({"delta.randomizeFilePrefixes": "false"})
    table.create_checkpoint()
    for file in sorted((source.folder("shop", "t") / "_delta_log").glob("*.json"))[:-1]:
        file.unlink()


def recover(source: Source) -> None:
    """Commit nothing at the stored position."""
    stored = source.offsets.load()
    assert stored is not None
    source.sink.commit(stored)


def test_directories_of_one_transaction_stay_apart(source: Source) -> None:
    source.run("CREATE TABLE x (id INT)", "CREATE TABLE y (id INT)")
    source.commit()
    x, y, columns = TableId("shop", "x"), TableId("shop", "y"), column(source, "x")
    a, b, new_x = (TableEvent("create", TableId("shop", name), after=columns) for name in "abx")
    source.table_event(TableEvent("drop", x), a, new_x, b)
    source.commit()
    assert source.names() == ["a", "b", "x", "y"]
    source.table_event(TableEvent("drop", x), TableEvent("rename", x, former=y), TableEvent("drop", x), new_x)
    source.commit()
    assert source.names() == ["a", "b", "x"]


def column(source: Source, name: str) -> Sequence[Column]:
    table = source.tables.table("shop", name)
    assert table is not None
    return table.columns


def test_a_copy_of_a_table_stays(source: Source) -> None:
    keyed(source)
    source.commit()
    shutil.copytree(source.folder("shop", "t"), source.folder("shop", "copy"))
    source.restart()
    source.insert("t", (3, "n"))
    source.commit()
    assert source.rows("copy") == TWO


def test_small_files_are_merged(source: Source) -> None:
    keyed(source)
    for number in range(10, 30):
        source.insert("t", (number, "n"))
        source.commit()
    table = deltalake.DeltaTable(source.folder("shop", "t"))
    assert len(table.file_uris()) < 7
    assert "OPTIMIZE" in {entry["operation"] for entry in table.history()}
    assert len(source.rows()) == 22


def test_what_others_do_to_the_files_is_kept(source: Source) -> None:
    keyed(source)
    source.commit()
    source.insert("t", (3, "n"))
    source.commit()
    source.sink.close()
    deltalake.DeltaTable(source.folder("shop", "t")).optimize.compact()
    source.restart()
    source.insert("t", (4, "n"))
    source.commit()
    table = deltalake.DeltaTable(source.folder("shop", "t"))
    assert [entry["operation"] for entry in table.history(2)] == ["MERGE", "OPTIMIZE"]
    assert source.rows() == [*TWO, (3, "n"), (4, "n")]


def test_properties_of_a_table_stay(source: Source) -> None:
    keyed(source)
    source.commit()
    table = deltalake.DeltaTable(source.folder("shop", "t"))
    table.alter.set_table_properties({"delta.logRetentionDuration": "interval 2 days"})
    source.run("ALTER TABLE t ADD b INT")
    source.commit()
    table = deltalake.DeltaTable(source.folder("shop", "t"))
    assert table.metadata().configuration["delta.logRetentionDuration"] == "interval 2 days"
    assert table.metadata().configuration["delta.deletedFileRetentionDuration"] == "interval 1 days"


def test_a_commit_names_its_position(source: Source) -> None:
    keyed(source)
    source.commit()
    (entry,) = deltalake.DeltaTable(source.folder("shop", "t")).history(1)
    assert SourceOffset.from_json(entry["rowtideOffset"]).pos == 3


def test_duckdb_reads_the_tables(source: Source) -> None:
    source.run('CREATE TABLE t (id INT PRIMARY KEY, `a.b c` VARCHAR(10), `back``tick` INT, `q"` BIGINT UNSIGNED)')
    source.insert("t", (1, "x", 5, 2**64 - 1))
    source.commit()
    source.change("u", "t", (1, "x", 5, 2**64 - 1), (1, "y", 6, 0))
    source.commit()
    (row,) = deltalake.DeltaTable(source.folder("shop", "t")).to_pyarrow_table().to_pylist()
    assert row == {"id": 1, "a.b c": "y", "back`tick": 6, 'q"': 0}
    rows = deltalake.DeltaTable(source.folder("shop", "t")).to_pyarrow_dataset()
    assert duckdb.sql('SELECT "a.b c", "q""" FROM rows').fetchall() == [("y", 0)], rows


@pytest.mark.parametrize("name", ["with space", "a%b", "a#b?c", "ä", "[x]*", "a/b", "..", "back\\slash", "a~b"])
def test_names_of_tables_become_directories(source: Source, name: str) -> None:
    source.run(f"CREATE TABLE `{name}` (id INT PRIMARY KEY)")
    source.insert(name, (1,))
    source.commit()
    source.change("u", name, (1,), (2,))
    source.commit()
    assert source.rows(name) == [(2,)]
    assert directory_name(name) not in (".", "..")


def test_no_two_tables_have_the_same_directory() -> None:
    assert [directory_name(name) for name in (".b", "\u02eb", "~2eb")] == ["~2eb", "~u02eb", "~7e2eb"]


def test_a_column_may_have_any_name(source: Source) -> None:
    source.run("CREATE TABLE t (id INT PRIMARY KEY, GONE INT, `gone_` INT, s INT, `T` INT)")
    source.insert("t", (1, 1, 1, 1, 1), (2, 2, 2, 2, 2))
    source.commit()
    source.change("u", "t", (1, 1, 1, 1, 1), (1, 3, 4, 5, 6))
    source.change("d", "t", (2, 2, 2, 2, 2), None)
    source.commit()
    assert source.rows() == [(1, 3, 4, 5, 6)]


def test_a_table_of_somebody_else_is_not_replaced(source: Source) -> None:
    folder = source.folder("shop", "t")
    deltalake.DeltaTable.create(folder, deltalake.Schema([deltalake.Field("mine", "long")]))
    source.run("CREATE TABLE t (id INT)")
    with pytest.raises(DeliveryError, match=f"{folder} is not a table of Delta Lake that this sink has created"):
        source.commit()
    source.run("CREATE TABLE u (id INT)")
    source.commit()
    source.run("RENAME TABLE u TO t")
    with pytest.raises(DeliveryError, match=rf"shop\.u was renamed to shop\.t, and {folder} was not created"):
        source.commit()
    assert [field.name for field in deltalake.DeltaTable(folder).schema().fields] == ["mine"]


def test_the_directory_of_the_sink_is_not_a_database(source: Source) -> None:
    source.run("CREATE TABLE _rowtide.t (id INT)")
    with pytest.raises(DeliveryError, match=r"table _rowtide\.t: the sink keeps its own files in _rowtide"):
        source.commit()
    source.run("CREATE TABLE t (id INT)")
    source.commit()
    source.run("RENAME TABLE t TO _rowtide.new1")
    with pytest.raises(DeliveryError, match=r"table _rowtide\.new1: the sink keeps its own files in _rowtide"):
        source.commit()


def test_one_process_writes_at_a_time(source: Source) -> None:
    script = f"from tests.connector.delivery.tables import test_delta as t; t.other_process({str(source.path)!r})"
    root = Path(__file__).parents[4]
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=root, check=False)
    assert "another process writes the tables in" in done.stdout, done.stderr


def other_process(path: str) -> None:
    try:
        TableSink(DeltaStore(DeltaOffsets(Path(path), "tables", "p"))).open()
    except DeliveryError as error:
        print(error)


def test_the_tables_of_another_connector_are_refused(source: Source) -> None:
    source.commit()
    with pytest.raises(OffsetStoreError, match=r"belong to the connector tables with topic\.prefix=p"):
        DeltaOffsets(source.path, "other", "p").load()


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"versions": [["shop"]]}'])
def test_a_damaged_state_is_named(source: Source, text: str) -> None:
    source.commit()
    (source.path / "_rowtide" / "state.json").write_text(text)
    with pytest.raises(OffsetStoreError, match=r"state\.json is damaged: .*Restore the directory, or delete"):
        source.offsets.load()


def test_an_older_or_missing_table_is_named(source: Source) -> None:
    keyed(source)
    source.commit()
    backup = source.path.parent / "backup"
    shutil.copytree(source.folder("shop", "t"), backup)
    source.insert("t", (3, "n"))
    source.commit()
    shutil.rmtree(source.folder("shop", "t"))
    shutil.copytree(backup, source.folder("shop", "t"))
    source.restart()
    source.insert("t", (4, "n"))
    with pytest.raises(DeliveryError, match=r"shop\.t: .* it is from an older backup.*Restore the whole directory, or"):
        source.commit()
    shutil.rmtree(source.folder("shop", "t"))
    source.insert("t", (4, "n"))
    with pytest.raises(DeliveryError, match=r"shop\.t: .* is missing or damaged"):
        source.commit()


def test_a_full_disk_loses_nothing(source: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed(source)
    source.commit()

    def full(*_: object, **__: object) -> None:
        raise deltalake.exceptions.DeltaError(
            "Generic LocalFileSystem error \x1b[31m↳\x1b[0m No space left on device (os error 28)"
        )

    source.insert("t", (3, "n"))
    monkeypatch.setattr(DeltaStore, "replace", full)
    with pytest.raises(SinkUnavailable, match=r"cannot be written: Generic LocalFileSystem error ↳ No space left"):
        source.commit()
    monkeypatch.undo()
    source.insert("t", (3, "n"))
    source.commit()
    assert source.rows() == [*TWO, (3, "n")]


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DeliveryError, match="cannot be opened: Not a directory"):
        TableSink(DeltaStore(DeltaOffsets(tmp_path / "file", "tables", "p"))).open()


def test_a_missing_package_is_named() -> None:
    script = (
        "import sys; sys.modules['deltalake'] = None\n"
        "from rowtide.connector.delivery.errors import DeliveryError\n"
        "try:\n import rowtide.connector.delivery.tables.delta\nexcept DeliveryError as error:\n print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("pip install 'rowtide[delta]'")


def test_the_state_has_the_versions(source: Source) -> None:
    keyed(source)
    source.commit()
    state = json.loads((source.path / "_rowtide" / "state.json").read_text())
    assert state["versions"] == [["shop", "t", deltalake.DeltaTable(source.folder("shop", "t")).version()]]
    assert state["steps"] == []
