"""Records without values that the binlog did not have."""

from __future__ import annotations

import base64

import pytest

from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}
DATA = {"type": "bytes", "optional": True, "field": "the `data`"}
ROWS = 40
PLACEHOLDER = "__debezium_unavailable_value"
SIZES_AND_FORMATS = pytest.mark.parametrize(
    ("size", "table_format"),
    [
        ("small", "delta"),
        pytest.param("small", "parquet", marks=pytest.mark.nightly),
        pytest.param("large", "delta", marks=pytest.mark.nightly),
        pytest.param("large", "parquet", marks=pytest.mark.nightly),
    ],
)
PLACEHOLDER_BYTES = base64.b64encode(PLACEHOLDER.encode()).decode()


def row(number: int, text: str | None = "a", data: str | None = "YQ==") -> dict[str, object]:
    return {"id": number, "text": text, DATA["field"]: data}


def snapshot(name: str = "p.d.t", key: tuple[str, ...] = ("id",)) -> Topic:
    topic = Topic(name, [ID, TEXT, DATA], key=key)
    for number in range(ROWS):
        topic.change("r", None, row(number), 0)
    return topic


@SIZES_AND_FORMATS
def test_a_row_that_takes_an_unavailable_value_is_an_error(
    run, rows_of, tmp_path, monkeypatch, size, table_format
) -> None:
    from rowtide.spark_consumers import job

    if size == "large":
        monkeypatch.setattr(job, "is_small", lambda _records: False)
    topics = {name: snapshot(f"p.d.{name}") for name in ("text", "data")}
    for topic in topics.values():
        assert run(topic.records, format=table_format)[topic.name].error is None
    topics["text"].change("u", row(7, PLACEHOLDER), row(7, PLACEHOLDER, None), 10)
    topics["data"].change("u", row(7), row(7, "b", PLACEHOLDER_BYTES), 10)
    for number in range(8, ROWS):
        for topic in topics.values():
            topic.change("u", row(number), row(number, "b"), 20)
    for topic, column in zip(topics.values(), ("text", DATA["field"]), strict=True):
        error = str(run(topic.records, format=table_format)[topic.name].error)
        assert (
            f"table {topic.name}, column {column}: the record at topic {topic.name}, partition 0, offset 40 " in error
        )
        assert "binlog_row_image=FULL" in error
        assert f"--restart {topic.name}" in error
        left = [{**row(number), DATA["field"]: b"a"} for number in range(ROWS)]
        same_rows(rows_of(str(tmp_path / topic.name), table_format), left)


@pytest.mark.parametrize("size", ["small", "large"])
def test_values_that_no_row_takes_may_be_unavailable(run, rows_of, tmp_path, monkeypatch, size) -> None:
    from rowtide.spark_consumers import job

    if size == "large":
        monkeypatch.setattr(job, "is_small", lambda _records: False)
    topic = snapshot()
    unavailable = row(1, PLACEHOLDER, PLACEHOLDER_BYTES)
    topic.change("u", unavailable, row(1, "b", None), 10)
    topic.change("u", row(2), {**unavailable, "id": 2}, 20)
    topic.change("r", None, row(2, "read again", None), 30)
    topic.change("d", {**unavailable, "id": 3}, None, 40)
    topic.change("c", None, row(ROWS, f"not {PLACEHOLDER}"), 50)
    outcome = run(topic.records)["p.d.t"]
    assert (outcome.error, outcome.records) == (None, len(topic.records))
    rows = {found["id"]: found["text"] for found in rows_of(str(tmp_path / "p.d.t"))}
    changed = {1: "b", 2: "read again", ROWS: f"not {PLACEHOLDER}"}
    assert rows == {number: changed.get(number, "a") for number in range(ROWS + 1) if number != 3}


@pytest.mark.parametrize("op", ["c", "d"])
@pytest.mark.parametrize("keyless", ["apply", "append"])
def test_an_unavailable_value_of_a_table_without_a_key_is_an_error(run, op, keyless) -> None:
    from rowtide.spark_consumers.settings import Keyless

    topic = snapshot(key=())
    unavailable = row(1, PLACEHOLDER)
    topic.change(op, *((None, unavailable) if op == "c" else (unavailable, None)), 10)
    error = str(run(topic.records, keyless=Keyless(keyless))["p.d.t"].error)
    assert "column text" in error
    assert "offset 40 " in error


def test_an_unavailable_value_in_a_key_is_an_error(run) -> None:
    topic = snapshot(key=("id", "text"))
    topic.change("d", row(1, PLACEHOLDER), None, 10)
    error = str(run(topic.records)["p.d.t"].error)
    assert "column text" in error
    assert "offset 40 " in error


@pytest.mark.parametrize(
    "placeholder", ["é", pytest.param("?", marks=pytest.mark.nightly), "a \"quoted\" \\ {value} 'x'", ""]
)
def test_the_placeholder_of_a_connector_may_be_another(run, rows_of, tmp_path, placeholder) -> None:
    topic = snapshot()
    topic.change("u", row(1), row(1, PLACEHOLDER), 10)
    assert run(topic.records, unavailable_placeholder=placeholder.encode())["p.d.t"].error is None
    assert sum(found["text"] == PLACEHOLDER for found in rows_of(str(tmp_path / "p.d.t"))) == 1
    topic.change("u", row(2), row(2, placeholder), 20)
    error = str(run(topic.records, unavailable_placeholder=placeholder.encode())["p.d.t"].error)
    assert "offset 41 " in error


def test_bytes_that_are_no_text_may_be_the_placeholder(run) -> None:
    topic = snapshot()
    topic.change("u", row(1), row(1, "a", base64.b64encode(b"\xff\xfe").decode()), 10)
    error = str(run(topic.records, unavailable_placeholder=b"\xff\xfe")["p.d.t"].error)
    assert f"column {DATA['field']}" in error


def test_a_message_without_schemas_may_lack_values(run) -> None:
    topic = snapshot()
    schema = topic._envelope()
    topic.schemas = False
    topic.records.clear()
    topic.ends.clear()
    topic.change("u", row(1), row(1, PLACEHOLDER), 10)
    key = {"type": "struct", "fields": [ID], "optional": False}
    error = str(run(topic.records, schemas={"p.d.t": {"key": key, "value": schema}})["p.d.t"].error)
    assert "column text" in error
    assert "offset 0 " in error


@SIZES_AND_FORMATS
def test_a_row_with_the_text_as_its_value(run, rows_of, tmp_path, monkeypatch, size, table_format) -> None:
    """A snapshot has no unavailable values. An update is refused until the row has another value."""
    from rowtide.spark_consumers import job

    if size == "large":
        monkeypatch.setattr(job, "is_small", lambda _records: False)
    topic = snapshot()
    topic.change("r", None, row(ROWS, PLACEHOLDER, PLACEHOLDER_BYTES), 0)
    assert run(topic.records, format=table_format)["p.d.t"].error is None
    topic.change("u", row(7), row(7, PLACEHOLDER), 10)
    for _ in range(2):
        error = str(run(topic.records, format=table_format)["p.d.t"].error)
        assert f"offset {ROWS + 1} " in error
        assert "--unavailable-placeholder" in error
    topic.change("u", row(7, PLACEHOLDER), row(7, "other"), 20)
    assert run(topic.records, format=table_format)["p.d.t"].error is None
    rows = {found["id"]: found["text"] for found in rows_of(str(tmp_path / "p.d.t"), table_format)}
    assert rows == dict.fromkeys(range(ROWS), "a") | {7: "other", ROWS: PLACEHOLDER}
