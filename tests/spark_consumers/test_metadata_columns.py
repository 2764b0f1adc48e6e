"""Metadata columns (``--metadata``): the fields of the last record of each row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowtide.spark_consumers.columns.metadata import FIELD_NAMES, metadata_fields
from tests.support.kafka.change_topics import Topic

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
FIELDS = metadata_fields(["op", "file", "pos", "source.ts", "gtid", "kafka.offset", "ts_ms"])
NAMES = ["id", "text", "__op", "__source_pos", "__kafka_offset"]


OTHERS = ("iceberg", "parquet")


def values(rows: list[dict[str, Any]], *names: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.get(name) for name in names or NAMES) for row in rows), key=repr)


@pytest.mark.parametrize("table_format", ["delta", *(pytest.param(name, marks=pytest.mark.nightly) for name in OTHERS)])
def test_rows_have_the_fields_of_their_last_records(run, rows_of, tmp_path, table_format) -> None:
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    settings: dict[str, Any] = {"format": table_format, "metadata": FIELDS}
    for number in range(3):
        topic.change("r", None, {"id": number, "text": "a"}, 10, file=None)
    topic.change("u", {"id": 0, "text": "a"}, {"id": 0, "text": "b"}, 20, file=7)
    assert run(topic.records, **settings)["p.d.t"].error is None
    rows = rows_of(str(tmp_path / "p.d.t"), table_format)
    assert values(rows) == [(0, "b", "u", 20, 3), (1, "a", "r", 10, 1), (2, "a", "r", 10, 2)]
    places = values(rows, "__source_file", "__source_ts", "__source_gtid", "__ts_ms")
    assert places == [(7, 20_000, None, None), *[(None, 10_000, None, None)] * 2]
    topic.change("d", {"id": 1, "text": "a"}, None, 30)
    topic.tombstone({"id": 1})
    topic.change("u", {"id": 2, "text": "a"}, {"id": 2, "text": "c"}, 40)
    topic.change("c", None, {"id": 3, "text": "d"}, 50)
    assert run(topic.records, **settings)["p.d.t"].error is None
    found = values(rows_of(str(tmp_path / "p.d.t"), table_format))
    assert found == [(0, "b", "u", 20, 3), (2, "c", "u", 40, 6), (3, "d", "c", 50, 7)]


def test_a_large_batch_has_them_too(run, rows_of, spark, tmp_path, monkeypatch) -> None:
    from rowtide.spark_consumers import job

    monkeypatch.setattr(job, "is_small", lambda _records: False)
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for number in range(4):
        topic.change("r", None, {"id": number % 2, "text": "a"}, number)
    assert run(topic.records, metadata=metadata_fields(FIELD_NAMES))["p.d.t"].error is None
    rows = rows_of(str(tmp_path / "p.d.t"))
    assert values(rows) == [(0, "a", "r", 2, 2), (1, "a", "r", 3, 3)]
    kinds = dict(spark.read.format("delta").load(str(tmp_path / "p.d.t")).dtypes)
    assert {name: kind for name, kind in kinds.items() if name.startswith("__")} == {
        field.column: field.type for field in metadata_fields(FIELD_NAMES)
    }


@pytest.mark.parametrize("table_format", ["delta", pytest.param("iceberg", marks=pytest.mark.nightly)])
def test_rows_without_a_key_are_found_whatever_their_metadata(run, rows_of, tmp_path, table_format) -> None:
    topic = Topic("p.d.bag", [ID, TEXT])
    settings: dict[str, Any] = {"format": table_format, "metadata": FIELDS}
    same = {"id": 1, "text": None}
    for pos in (10, 20, 30):
        topic.change("c", None, same, pos)
    assert run(topic.records, **settings)["p.d.bag"].error is None
    repeated = topic.change("c", None, {"id": 2, "text": "x"}, 40)
    again = topic.again(repeated)  # the connector has processed it at another time
    again.value = json.dumps(content := json.loads(again.value or ""))
    content["payload"]["ts_ms"] = 5
    topic.change("d", same, None, 50)
    topic.change("u", same, {"id": 1, "text": "y"}, 60)
    topic.change("u", {"id": 2, "text": "x"}, {"id": 2, "text": "x"}, 70)
    outcome = run(topic.records, **settings)["p.d.bag"]
    assert (outcome.error, outcome.unmatched) == (None, 0)
    rows = rows_of(str(tmp_path / "p.d.bag"), table_format)
    assert values(rows, "id", "text", "__source_pos") == [(1, "y", 60), (1, None, 30), (2, "x", 70)]


def test_appended_changes_have_more_fields_by_choice(run, rows_of, tmp_path) -> None:
    from rowtide.spark_consumers.settings import Keyless

    topic = Topic("p.d.log", [ID])
    topic.change("c", None, {"id": 1}, 10)
    topic.change("d", {"id": 1}, None, 20)
    fields = metadata_fields(["server_id", "op"])
    assert run(topic.records, keyless=Keyless.APPEND, metadata=fields)["p.d.log"].error is None
    rows = rows_of(str(tmp_path / "p.d.log"))
    assert values(rows, "id", "__op", "__source_pos", "__source_server_id") == [(1, "c", 10, 1), (1, "d", 20, 1)]


def test_a_column_that_is_chosen_later_is_null_in_older_rows(run, rows_of, tmp_path) -> None:
    from rowtide.spark_consumers.settings import ChangePolicy, SchemaChange

    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for number in range(2):
        topic.change("c", None, {"id": number, "text": "a"}, 10 * number)
    assert run(topic.records)["p.d.t"].error is None
    topic.change("t", None, None, 1, file=0)  # is ignored; a batch without rows adds the column as well
    settings: dict[str, Any] = {"metadata": metadata_fields(["op"]), "changes": ChangePolicy(SchemaChange.IGNORE)}
    topic.change("u", {"id": 0, "text": "a"}, {"id": 0, "text": "b"}, 30)
    assert run(topic.records, **settings)["p.d.t"].error is None
    rows = rows_of(str(tmp_path / "p.d.t"))
    assert values(rows, "id", "text", "__op") == [(0, "b", "u"), (1, "a", None)]
    topic.change("u", {"id": 0, "text": "b"}, {"id": 0, "text": "c"}, 40)
    (note,) = run(topic.records)["p.d.t"].notes
    assert "--metadata does not name __op any more" in note
    assert values(rows_of(str(tmp_path / "p.d.t")), "id", "__op") == [(0, None), (1, None)]


def test_a_column_that_mysql_has_is_not_replaced(run, tmp_path) -> None:
    topic = Topic("p.d.t", [ID, {**TEXT, "field": "__OP"}], key=["id"])
    topic.change("c", None, {"id": 1, "__OP": "mine"}, 10)
    outcome = run(topic.records, metadata=FIELDS)["p.d.t"]
    assert "table p.d.t has a column __op in MySQL" in str(outcome.error)
    assert "remove it from --metadata" in str(outcome.error)
    assert not (tmp_path / "p.d.t").exists()


def test_a_truncation_alone_makes_no_table_of_metadata(run, tmp_path) -> None:
    topic = Topic("p.d.t", [ID], key=["id"])
    topic.change("t", None, None, 10)
    assert run(topic.records, metadata=FIELDS)["p.d.t"].error is None
    assert not (tmp_path / "p.d.t").exists()


@pytest.mark.parametrize("name", ["op", "source.ts_ms", "pos", "kafka.offset"])
def test_a_field_has_debeziums_name_and_column(name: str) -> None:
    (field,) = metadata_fields([name])
    assert field.column == {"pos": "__source_pos"}.get(name, "__" + name.replace(".", "_"))
    assert (field,) == metadata_fields([name, field.name]), "each once"


def test_an_unknown_field_is_named() -> None:
    with pytest.raises(ValueError, match=r"'lsn' is unknown; there are op, ts_ms, source\.ts"):
        metadata_fields(["op", "lsn"])
