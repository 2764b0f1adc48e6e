"""Columns that MySQL renames: in the table they are renamed by their id, and no row is written anew."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXTS = {name: {"type": "string", "optional": True, "field": name} for name in "abcd"}
FILES = {"delta": "*.parquet", "iceberg": "data/*.parquet", "parquet": "*.parquet"}
OTHERS = pytest.param("parquet", marks=pytest.mark.nightly)


class Structures:
    """A schema history: each structure is a text such as ``ab``, and a column has the number of its place in it.

    Args:
        texts: the names of the columns, ``-`` for one that is gone, and ``!`` if the key is named ``no``.
    """

    def __init__(self, *texts: str) -> None:
        self.texts, self.calls = texts, 0

    def __call__(self, topic: str) -> Sequence[Mapping[str, int]]:
        self.calls += 1
        return [
            {"no" if "!" in text else "id": -1} | {name: place for place, name in enumerate(text) if name.isalpha()}
            for text in self.texts
        ]


def columns(names: str) -> list[Mapping[str, Any]]:
    return [ID, *(TEXTS[name] for name in names)]


def row(number: int, **texts: str) -> dict[str, Any]:
    return {"id": number, **texts}


def rows_without_spark(path: Path, table_format: str) -> list[dict[str, Any]]:
    """Return a table's rows as deltalake or pyiceberg reads them."""
    if table_format == "iceberg":
        from pyiceberg.table import StaticTable

        version = (path / "metadata/version-hint.text").read_text().strip()
        return StaticTable.from_metadata(f"{path}/metadata/v{version}.metadata.json").scan().to_arrow().to_pylist()
    import deltalake
    import pyarrow as pa

    table = deltalake.DeltaTable(path)
    # It would read a table that does not name its features wrongly instead.
    with pytest.raises(deltalake.exceptions.DeltaProtocolError, match="columnMapping"):
        table.to_pyarrow_table()
    return pa.table(deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()).to_pylist()


@pytest.mark.parametrize("table_format", ["delta", "iceberg", OTHERS])
def test_a_column_is_renamed_without_writing_its_rows(run, spark, rows_of, tmp_path, table_format) -> None:
    """Exchanged names, a name of a dropped column, a renamed key, and records from before all of that."""
    topic, path, history = Topic("p.d.t", columns("abc"), ["id"]), tmp_path / "p.d.t", Structures("abc")
    given = {"format": table_format, "structures": history}
    for number in range(6):
        topic.change(
            "c", None, row(number, a=f"a{number}", b=f"b{number}", c=f"c{number}"), number, partition=number % 2
        )
    assert run(topic.records, **given)["p.d.t"].error is None
    assert history.calls == 0
    files = {*path.glob(FILES[table_format])}
    topic.columns = columns("bad")
    history.texts = ("abc", "bac", "bad")
    topic.change("u", row(0, b="a0", a="b0", d="c0"), row(0, b="new", a="b0", d="c0"), 20)
    outcome = run(topic.records, **given)["p.d.t"]
    note = f"{path} has column mapping now (delta.columnMapping.mode=name): readers must know it"
    assert (outcome.error, outcome.notes) == (None, [note] if table_format == "delta" else [])
    assert outcome.renamed == (("a", "b"), ("b", "a"), ("c", "d"))
    if table_format == "iceberg":
        assert files <= {*path.glob(FILES[table_format])}
    if table_format == "delta":
        [renaming] = [text for log in path.glob("_delta_log/*.json") if "RENAME COLUMN" in (text := log.read_text())]
        assert [next(iter(json.loads(line))) for line in renaming.splitlines()] == ["commitInfo", "metaData", "txn"]
    expected = [row(number, b=f"a{number}", a=f"b{number}", d=f"c{number}") for number in range(6)]
    expected[0]["b"] = "new"
    same_rows(rows_of(str(path), table_format), expected)
    if table_format != "parquet":
        same_rows(rows_without_spark(path, table_format), expected)
    # The other partition has older records. Then a and d are dropped, and b gets the name of one of them.
    topic.columns = columns("abc")
    topic.change("u", row(1, a="a1", b="b1", c="c1"), row(1, a="late", b="b1", c="c1"), 10, partition=1)
    expected[1]["b"] = "late"
    topic.columns, topic.key = [{**ID, "field": "no"}, TEXTS["a"]], ["no"]
    history.texts = ("abc", "bac", "bad", "a--!")
    topic.change("d", {"no": 2, "a": "a2"}, None, 30)
    topic.tombstone({"no": 2})
    outcome = run(topic.records, **given)["p.d.t"]
    assert (outcome.error, outcome.notes, outcome.renamed) == (None, [], (("id", "no"), ("b", "a")))
    del expected[2]
    same_rows(rows_of(str(path), table_format), [{"no": r["id"], "a": r["b"], "d": r["d"]} for r in expected])
    assert history.calls == 2


STEPS = ["before the rename", "after the rename", "after new columns", "after the rows"]


def _crash(step: str, table_format: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from rowtide.spark_consumers.formats import FORMATS
    from rowtide.spark_consumers.state import StateStore

    name = {STEPS[2]: "evolve", STEPS[3]: "finish"}.get(step, "rename")
    before = step in {STEPS[0], STEPS[3]}
    owner = StateStore if name == "finish" else FORMATS[table_format]
    known = getattr(owner, name)

    def crashing(self, *arguments, **settings):
        if not before:
            known(self, *arguments, **settings)
        raise ZeroDivisionError

    monkeypatch.setattr(owner, name, crashing)


@pytest.mark.nightly
@pytest.mark.parametrize("key", [["id"], []], ids=["key", "no key"])
@pytest.mark.parametrize("table_format", list(FILES))
def test_exchanged_names_survive_a_crash_at_each_step(run, rows_of, tmp_path, monkeypatch, table_format, key) -> None:
    """Also if the schema history cannot be read, or says something else, when the batch is repeated."""
    for count, step in enumerate(STEPS):
        topic, history = Topic(f"p.d.t{count}", columns("ab"), key), Structures("ab")
        given = {"format": table_format, "structures": history}
        for number in range(3):
            topic.change("c", None, row(number, a=f"a{number}", b=f"b{number}"), number)
        assert run(topic.records, **given)[topic.name].error is None
        topic.change("c", None, row(3, a="a3", b="b3"), 10)
        topic.columns = columns("bad")
        history.texts = ("ab", "bad")
        topic.change("u", row(0, b="a0", a="b0", d=None), row(0, b="new", a="b0", d="d"), 20)
        topic.change("d", row(1, b="a1", a="b1", d=None), None, 21)
        with monkeypatch.context() as patched:
            _crash(step, table_format, patched)
            with pytest.raises(ZeroDivisionError):
                run(topic.records, **given)
        history.texts = ("ab", "bad", "ab", "bad", "abd")
        later = {"format": table_format} if count % 2 else given
        outcome = run(topic.records, **later)[topic.name]
        assert outcome.error is None
        expected = [row(0, b="new", a="b0", d="d"), *(row(n, b=f"a{n}", a=f"b{n}", d=None) for n in (2, 3))]
        same_rows(rows_of(str(tmp_path / topic.name), table_format), expected)


@pytest.mark.nightly
def test_tables_that_cannot_be_renamed_stop_and_name_the_way_out(run, spark, rows_of, tmp_path, monkeypatch) -> None:
    from py4j.java_gateway import JavaPackage

    from rowtide.spark_consumers.formats import delta

    topic, history, path = Topic("p.d.t", columns("a"), ["id"]), Structures("a"), tmp_path / "p.d.t"
    topic.change("c", None, row(1, a="old"), 1)
    assert run(topic.records, structures=history)["p.d.t"].error is None
    topic.columns, history.texts = columns("b"), ("a", "b")
    topic.change("c", None, row(2, b="new"), 2)
    spark.sql(f"ALTER TABLE delta.`{path}` ADD CONSTRAINT short CHECK (a < 'x')")
    error = run(topic.records, structures=history)["p.d.t"].error
    assert "a cannot be renamed, because the table has a CHECK constraint" in error
    known = delta.java_class

    def lacking(session, name: str) -> Any:
        return JavaPackage(name, None) if name.endswith(".DeltaLog") else known(session, name)

    with monkeypatch.context() as patched:
        patched.setattr(delta, "java_class", lacking)
        assert "(RENAME COLUMN a TO b)" in run(topic.records, structures=history)["p.d.t"].error
        spark.sql(f"ALTER TABLE delta.`{path}` DROP CONSTRAINT short")
        spark.sql(f"ALTER TABLE delta.`{path}` RENAME COLUMN a TO b")
        assert run(topic.records, structures=history)["p.d.t"].error is None
    same_rows(rows_of(str(path)), [row(1, b="old"), row(2, b="new")])


def test_without_a_proof_the_column_is_added_and_the_old_one_stays(run, rows_of, tmp_path) -> None:
    from rowtide.spark_consumers.errors import HistoryError, SettingsError

    topic = Topic("p.d.t", columns("a"), ["id"])
    topic.change("c", None, row(1, a="old"), 1)
    assert run(topic.records)["p.d.t"].error is None
    topic.columns = columns("b")
    topic.change("c", None, row(2, b="new"), 2)

    def broken(_: str) -> Any:
        raise HistoryError("no answer")

    def lacking(_: str) -> Any:
        raise SettingsError("in memory only")

    assert "no answer" in run(topic.records, structures=broken)["p.d.t"].error
    [note] = run(topic.records, structures=lacking)["p.d.t"].notes
    assert "(a and b)" in note
    assert "in memory only" in note
    same_rows(rows_of(str(tmp_path / "p.d.t")), [row(1, a="old", b=None), row(2, a=None, b="new")])


def test_changes_that_are_dropped_ignored_or_refused(run, rows_of, tmp_path) -> None:
    """Columns that go, as in MySQL; those that are kept out; and an error after which nothing is lost."""
    from rowtide.spark_consumers.settings import ChangePolicy, SchemaChange

    topic, history, path = Topic("p.d.t", columns("ab"), ["id"]), Structures("ab"), str(tmp_path / "p.d.t")

    def update(behavior: str, include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> Any:
        policy = ChangePolicy(SchemaChange(behavior), include, exclude)
        return run(topic.records, structures=history, changes=policy, format="parquet")["p.d.t"]

    topic.change("c", None, row(1, a="a1", b="b1"), 1)
    assert update("exception").error is None
    topic.columns, history.texts = columns("c"), ("ab", "c-")
    topic.change("c", None, row(2, c="a2"), 2)
    assert "rename.column (a to c), drop.column (b)" in update("exception").error
    outcome = update("evolve", ("column",))
    assert (outcome.error, outcome.renamed, outcome.dropped) == (None, (("a", "c"),), ("b",))
    same_rows(rows_of(path, "parquet"), [row(1, c="a1"), row(2, c="a2")])
    topic.columns = [{**ID, "type": "int64"}, TEXTS["c"], TEXTS["d"]]
    topic.change("c", None, row(3, c="a3", d="d3"), 3)
    topic.change("t", None, None, 4)
    topic.change("c", None, row(4, c="a4", d="d4"), 5)
    outcome = update("ignore")
    assert (outcome.error, outcome.notes) == (None, ["p.d.t: the new column d is ignored"])
    expected = [row(number, c=f"a{number}") for number in range(1, 5)]
    same_rows(rows_of(path, "parquet"), expected)
    topic.change("c", None, row(2**40, c="large", d=None), 6)
    assert "does not fit into int, the type that the column keeps" in update("ignore").error
    assert update("lenient").widened == (("id", "int", "bigint"),)
    same_rows(rows_of(path, "parquet"), [*expected, row(2**40, c="large")])
