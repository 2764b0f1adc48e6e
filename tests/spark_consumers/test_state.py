"""The stored state survives every crash; overlapping runs and unreadable files are errors."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.spark_consumers.errors import StateError
from rowtide.spark_consumers.state import (
    RENAMES,
    Batch,
    ColumnNames,
    Commit,
    Computed,
    Projection,
    RowFilter,
    StateStore,
    Truncation,
)
from tests.support.memory_files import MemoryFiles

_OFFSETS = st.dictionaries(st.integers(0, 9), st.integers(0, 10**15), max_size=3)
_BATCHES = st.builds(
    Batch,
    app_id=st.text(),
    number=st.integers(0, 10**6),
    offsets=_OFFSETS,
    ranges=st.dictionaries(st.integers(0, 9), st.tuples(st.integers(0, 9), st.integers(10, 99)), max_size=3),
    columns=st.none() | st.lists(st.text()).map(tuple),
    types=st.none() | st.lists(st.text()).map(tuple),
    metadata=st.lists(st.text()).map(tuple),
    layout=st.none() | st.sampled_from(["rows", "append", "soft-delete"]),
    truncation=st.none() | st.builds(Truncation, st.integers(0), st.integers(0)),
    seen=st.dictionaries(st.integers(0, 9), st.lists(st.integers(-(2**63), 2**63 - 1)).map(tuple), max_size=3),
    where=st.none() | st.builds(RowFilter, st.text(), st.dictionaries(st.text(), st.text())),
    projection=st.none()
    | st.builds(Projection, st.lists(st.text()).map(tuple), st.lists(st.none() | st.text()).map(tuple)),
    computed=st.none() | st.builds(Computed, *[st.dictionaries(st.text(), st.text())] * 2),
    names=st.none() | st.builds(ColumnNames, st.lists(st.dictionaries(st.text(), st.text())), st.integers(0)),
)


@given(_BATCHES)
def test_a_batch_is_restored_from_its_file(batch: Batch) -> None:
    assert Batch.from_json(batch.to_json()) == batch


def test_hashes_of_a_topic_with_one_partition_are_a_list_as_older_releases_read_and_write_it() -> None:
    text = Batch("a", seen={0: (1, 2)}).to_json()
    assert json.loads(text)["seen"] == [1, 2]
    assert Batch.from_json(text).seen == {0: (1, 2)}


def test_runs_that_start_a_table_have_one_identity_and_plans_of_their_own() -> None:
    first, second = StateStore(MemoryFiles(), "s/a").load(), StateStore(MemoryFiles(), "s/a").load()
    assert first.is_new
    assert first.planned is None
    assert first.done.app_id == second.done.app_id != StateStore(MemoryFiles(), "s/b").load().done.app_id
    assert first.done.next({}).plan_id != second.done.next({}).plan_id


def test_an_unfinished_plan_is_found_under_its_number() -> None:
    store = StateStore(MemoryFiles(), "state/t")
    planned = store.load().done.next({0: (0, 5)})
    store.plan(planned)
    assert store.load().planned == planned
    assert store.load().done.app_id == planned.app_id
    store.finish(planned)
    assert store.load().planned is None
    assert store.load().done == planned
    following = planned.next({0: (5, 8), 1: (0, 2)})
    store.plan(following)
    found = store.load()
    assert (found.done, found.planned) == (planned, following)
    assert following.offsets == {0: 8, 1: 2}
    assert following.commit(RENAMES).version > planned.commit(998).version
    assert [planned.commit(step).batch for step in (RENAMES, 0, 998)] == [planned.number] * 3


def test_what_is_added_to_a_plan_belongs_to_this_batch_only() -> None:
    store = StateStore(MemoryFiles(), "s")
    planned = store.load().done.next({})
    store.plan(planned)
    names = ColumnNames([{"a": "b"}], 0)
    store.amend(replace(planned, names=names))
    found = store.load().planned
    assert found is not None
    assert (found.names, found.plan_id) == (names, planned.plan_id)
    assert found.next({}).names is None


def test_old_files_are_deleted() -> None:
    files = MemoryFiles()
    store = StateStore(files, "s")
    batch = store.load().done
    for number in range(20):
        batch = batch.next({0: (number, number + 1)})
        store.plan(batch)
        store.finish(batch)
    assert store.load().done == batch
    assert len(files.names("s")) == 12
    store.reset()
    assert store.load().is_new


NO_OFFSETS = '{"version": 1, "app_id": "x", "batch": 1, "offsets": null, "ranges": {}}'
NO_NUMBER = '{"version": 1, "app_id": "x", "batch": 1, "offsets": {"0": "five"}, "ranges": {}}'


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"version": 3, "app_id": "x"}', NO_OFFSETS, NO_NUMBER])
def test_an_unreadable_file_is_an_error_with_its_path(text: str) -> None:
    store = StateStore(MemoryFiles({"s/00000003.done.json": text}), "s")
    with pytest.raises(StateError, match=r"s/00000003\.done\.json cannot be read .*--restart"):
        store.load()


def test_a_batch_of_too_many_steps_is_an_error() -> None:
    with pytest.raises(StateError, match="--max-records"):
        Batch("a").commit(999)


def test_a_second_plan_of_the_same_batch_is_an_error() -> None:
    files = MemoryFiles()
    first, second = StateStore(files, "s"), StateStore(files, "s")
    batch = first.load().done
    first.plan(batch.next({0: (0, 5)}))
    with pytest.raises(StateError, match=r"s/00000001\.plan\.json exists: another run"):
        second.plan(batch.next({0: (0, 9)}))
    assert first.load().planned.ranges == {0: (0, 5)}


def test_a_step_of_another_plan_in_the_table_is_an_error() -> None:
    batch = Batch("a").next({0: (0, 5)})
    rival = Batch("a").next({0: (0, 9)})
    step = batch.commit(1)
    assert Commit.from_json(step.to_json()) == step
    assert step.is_applied(step)
    assert step.is_applied(batch.commit(2))
    for newest in (None, batch.commit(0), Commit("b", 10**9, "x")):
        assert not step.is_applied(newest)
    for newest in (rival.commit(1), rival.next({}).commit(1), Commit("a", 1001)):
        with pytest.raises(StateError, match=r"batch 1 was written .* by another run .*--restart"):
            step.is_applied(newest)


def test_an_older_release_left_a_plan_without_an_id() -> None:
    old = '{"version": 1, "app_id": "a", "batch": 1, "offsets": {"0": 5}, "ranges": {"0": [0, 5]}}'
    planned = StateStore(MemoryFiles({"s/00000001.plan.json": old}), "s").load().planned
    assert planned is not None
    assert planned.commit(1).is_applied(Commit("a", 1001))


@pytest.mark.parametrize("text", ["", "null", "[]", "{}", "by hand"])
def test_commits_of_other_writers_have_no_identity(text: str) -> None:
    assert Commit.from_json(text) is None


def test_older_releases_refuse_the_state_of_a_table_whose_rows_they_do_not_know() -> None:
    plain = Batch("a", 1, metadata=("__op",), layout="rows")
    soft, some = replace(plain, layout="soft-delete"), replace(plain, where=RowFilter("a > 1", {"a": "b"}))
    few = replace(some, projection=Projection(("id", "a"), ("id", None)))
    more = replace(few, computed=Computed({"b": "a + 1"}, {"a": "x"}))
    batches = [Batch("a"), plain, soft, some, few, more, replace(plain, shard_column="shard")]
    assert [json.loads(batch.to_json())["version"] for batch in batches] == [1, 1, 2, 3, 4, 5, 5]
    assert [Batch.from_json(batch.to_json()) for batch in batches] == batches
