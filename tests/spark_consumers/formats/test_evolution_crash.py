"""A crash at any commit of a batch that adds columns: existing rows have the defaults after the next run."""

from __future__ import annotations

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
NOTE = {"type": "string", "optional": True, "field": "note", "default": "none"}
SIZE = {"type": "int32", "optional": False, "field": "size", "default": 5}
PLAIN = {"type": "string", "optional": True, "field": "plain"}


def _crash_after(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """End the run after a number of Delta's commits, or before the offsets are stored."""
    from pyspark.sql import DataFrameWriter, SparkSession

    from rowtide.spark_consumers.state import StateStore

    left = [count]

    def counted(function):
        def call(self, *arguments, **settings):
            text = str(arguments[0]) if arguments else ""
            commits = function.__name__ == "save" or text.startswith(("ALTER", "UPDATE", "MERGE"))
            if function.__name__ == "finish" or (commits and not left[0]):
                raise ZeroDivisionError
            left[0] -= commits
            return function(self, *arguments, **settings)

        return call

    monkeypatch.setattr(SparkSession, "sql", counted(SparkSession.sql))
    monkeypatch.setattr(DataFrameWriter, "save", counted(DataFrameWriter.save))
    monkeypatch.setattr(StateStore, "finish", counted(StateStore.finish))


@pytest.mark.parametrize(
    ("partitions", "added"), [(2, [NOTE, SIZE, PLAIN]), pytest.param(1, [PLAIN], marks=pytest.mark.nightly)]
)
def test_existing_rows_have_the_default_of_a_new_column_after_a_crash_at_any_commit(
    run, rows_of, tmp_path, monkeypatch, partitions, added
) -> None:
    for commits in range(3):
        topic = Topic(f"p.d.t{commits}", [ID], ["id"])
        for number in range(4):
            topic.change("c", None, {"id": number}, number, partition=number % partitions)
        assert run(topic.records)[topic.name].error is None
        topic.columns = [ID, *added]
        names = [column["field"] for column in topic.columns]
        old = {"id": 0, "note": "none", "size": 5, "plain": None}
        new = {"id": 0, "note": "a", "size": 1, "plain": "b"}
        topic.change("u", *({name: row[name] for name in names} for row in (old, new)), 10)
        with monkeypatch.context() as patched:
            _crash_after(commits, patched)
            with pytest.raises(ZeroDivisionError):
                run(topic.records)
        assert run(topic.records)[topic.name].error is None
        same_rows(rows_of(str(tmp_path / topic.name)), fold(topic.records))
