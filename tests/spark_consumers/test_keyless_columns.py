"""Tables without a key whose columns change."""

from __future__ import annotations

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}


@pytest.mark.parametrize(
    "built", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["existing table", "new table"]
)
def test_old_images_match_rows_from_before_a_dropped_column(run, rows_of, tmp_path, built) -> None:
    topic = Topic("p.d.bag", [ID, TEXT])
    for number in (1, 1, 2, 3):
        topic.change("c", None, {"id": number, "text": f"row {len(topic.records)}"}, 10 * len(topic.records))
    if built:
        assert run(topic.records)["p.d.bag"].error is None
    topic.change("d", {"id": 3, "text": "row 3"}, None, 100)
    topic.columns = [ID]
    topic.change("c", None, {"id": 3}, 200)
    topic.change("d", {"id": 1}, None, 300)
    topic.change("u", {"id": 2}, {"id": 4}, 400)
    topic.change("d", {"id": 9}, None, 500)
    outcome = run(topic.records)["p.d.bag"]
    assert (outcome.error, outcome.unmatched) == (None, 1)
    rows = rows_of(str(tmp_path / "p.d.bag"))
    same_rows([{"id": row["id"]} for row in rows], [{"id": number} for number in (1, 3, 4)])


@pytest.mark.parametrize(
    "cut", [1, pytest.param(3, marks=pytest.mark.nightly)], ids=["only old columns", "old and new columns"]
)
def test_repeated_records_from_before_a_new_column_keep_its_values(run, rows_of, tmp_path, cut) -> None:
    topic = Topic("p.d.bag", [ID])
    topic.change("c", None, {"id": 1}, 10)
    topic.columns = [ID, TEXT]
    for number in (2, 3):
        topic.change("c", None, {"id": number, "text": "x"}, 10 * number)
    assert run(topic.records)["p.d.bag"].error is None
    repeated = topic.records[:]
    for record in repeated[:cut]:
        topic.again(record)
    assert run(topic.records)["p.d.bag"].error is None
    for record in repeated[cut:]:
        topic.again(record)
    topic.change("c", None, {"id": 4, "text": "x"}, 40)
    assert run(topic.records)["p.d.bag"].error is None
    expected = [{"id": number, "text": "x" if number > 1 else None} for number in range(1, 5)]
    same_rows(rows_of(str(tmp_path / "p.d.bag")), expected)
