"""Consecutive and overlapping runs: new records, crashes, repeated and reordered records, deleted records."""

import dataclasses
import hashlib
import os
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from rowtide.envelope.claim_check import ClaimCheck
from tests.support.kafka.change_topics import Topic
from tests.support.recordings.recorded_tables import fold, recorded, same_rows

pytestmark = pytest.mark.spark

ID = {"type": "int32", "optional": False, "field": "id"}
TEXT = {"type": "string", "optional": True, "field": "text"}


@pytest.mark.parametrize(
    "table_format", ["delta", *(pytest.param(name, marks=pytest.mark.nightly) for name in ("iceberg", "parquet"))]
)
def test_a_crash_between_table_and_offsets_applies_nothing_twice(
    run, rows_of, tmp_path, monkeypatch, table_format
) -> None:
    from rowtide.spark_consumers.state import StateStore

    topics = ["keys.k.nopk", *(["defaults-in-schemas.def.t"] if table_format != "parquet" else [])]
    records = {topic: [r for r in recorded(topic.split(".")[0]) if r.topic == topic] for topic in topics}
    half = {topic: found[: len(found) // 2] for topic, found in records.items()}
    for part in (half, records):
        everything = [record for found in part.values() for record in found]
        with monkeypatch.context() as patched:
            patched.setattr(StateStore, "finish", _crash)
            with pytest.raises(ZeroDivisionError):
                run(everything, format=table_format)
        again = run(everything, format=table_format)
        assert {topic: outcome.error for topic, outcome in again.items()} == dict.fromkeys(topics)
        for topic in topics:
            same_rows(rows_of(str(tmp_path / topic), table_format), fold(part[topic]))
    before = _files(tmp_path)
    third = run(everything, format=table_format)
    assert all(not outcome.ranges and not outcome.error for outcome in third.values())
    assert _files(tmp_path) == before


def _crash(*_: object) -> None:
    raise ZeroDivisionError


def _files(directory: Path) -> set[str]:
    return {str(path) for path in directory.rglob("*")}


def test_repeated_and_reordered_records(run, rows_of, tmp_path) -> None:
    repeated = Topic("p.d.repeated", [ID, TEXT], key=["id"])
    repeated.change("r", None, {"id": 1, "text": "a"}, 0)
    tail = [
        repeated.change("u", {"id": 1, "text": "a"}, {"id": 1, "text": "b"}, 10),
        repeated.change("d", {"id": 1, "text": "b"}, None, 20),  # a change of the key, 1 to 2
        repeated.tombstone({"id": 1}),
        repeated.change("c", None, {"id": 2, "text": "b"}, 20),
        repeated.change("u", {"id": 2, "text": "b"}, {"id": 2, "text": "c"}, 30),
    ]
    for record in tail[1:]:
        repeated.again(record)
    # A partition was added and the key moved there: offsets do not show which record is newer
    moved = Topic("p.d.moved", [ID, TEXT], key=["id"])
    for number in range(5):
        moved.change("c", None, {"id": 10 + number, "text": "x"}, number)
    moved.change("u", None, {"id": 1, "text": "old"}, 999, file=999_999)
    moved.change("u", None, {"id": 1, "text": "new"}, 5, file=1_000_000, partition=1)
    bag = Topic("p.d.bag", [ID, TEXT])
    inserts = [bag.change("c", None, {"id": 1, "text": None}, pos) for pos in (10, 20)]
    for record in inserts:
        bag.again(record)
    bag.change("d", {"id": 1, "text": None}, None, 30)
    bag.change("d", {"id": 7, "text": "never seen"}, None, 40)

    outcomes = run([*repeated.records, *moved.records, *bag.records])

    assert [outcome.error for outcome in outcomes.values()] == [None, None, None]
    same_rows(rows_of(str(tmp_path / "p.d.repeated")), [{"id": 2, "text": "c"}])
    assert {row["id"]: row["text"] for row in rows_of(str(tmp_path / "p.d.moved"))}[1] == "new"
    same_rows(rows_of(str(tmp_path / "p.d.bag")), [{"id": 1, "text": None}])
    assert outcomes["p.d.bag"].unmatched == 1

    for record in [*inserts, bag.change("c", None, {"id": 2, "text": None}, 50)]:
        bag.again(record)  # in a later run, too
    assert run(bag.records)["p.d.bag"].error is None
    same_rows(rows_of(str(tmp_path / "p.d.bag")), [{"id": 1, "text": None}, {"id": 2, "text": None}])


def test_a_relative_output_is_below_the_working_directory(spark, frame_of, rows_of, tmp_path) -> None:
    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    topic.change("r", None, {"id": 1, "text": "a"}, 0)
    output = os.path.relpath(tmp_path)
    for number in (1, 2):
        settings = Settings(output, f"{output}/_rowtide", "p")
        (outcome,) = update_tables(spark, FrameSource(frame_of(topic.records[:number])), settings)
        assert outcome.error is None
        same_rows(rows_of(str(tmp_path / "d/t")), fold(topic.records[:number]))
        topic.change("u", {"id": 1, "text": "a"}, {"id": 1, "text": "b"}, 10)


def test_the_progress_of_a_table_is_reported_before_each_batch(spark, frame_of, tmp_path) -> None:
    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for number in range(5):
        topic.change("r", None, {"id": number, "text": "a"}, number)
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), "p", max_records=2)
    seen: list[tuple[str, int, int]] = []
    for _ in range(2):
        (outcome,) = update_tables(
            spark,
            FrameSource(frame_of(topic.records)),
            settings,
            progress=lambda name, *n: seen.append((name.topic, *n)),
        )
        assert outcome.error is None
    assert seen == [("p.d.t", 0, 5), ("p.d.t", 2, 5), ("p.d.t", 4, 5)]


def test_changes_can_be_appended_instead_of_applied(run, rows_of, tmp_path) -> None:
    from rowtide.spark_consumers.settings import Keyless

    topic = Topic("p.d.log", [ID])
    topic.change("c", None, {"id": 1}, 10)
    topic.change("u", {"id": 1}, {"id": 2}, 20, file=3)
    topic.change("d", {"id": 2}, None, 30)
    topic.change("t", None, None, 40)
    assert run(topic.records, keyless=Keyless.APPEND)["p.d.log"].error is None
    rows = rows_of(str(tmp_path / "p.d.log"))
    assert sorted((row["__source_pos"], row["__op"], row["id"], row["__source_file"]) for row in rows) == [
        (10, "c", 1, 1),
        (20, "u", 2, 3),
        (30, "d", 2, 1),
        (40, "t", None, 1),
    ]


def test_messages_without_schemas_need_supplied_ones(run, rows_of, tmp_path) -> None:
    day = {"type": "int32", "optional": True, "field": "day", "name": "io.debezium.time.Date"}
    more = {"type": "string", "optional": True, "field": "more", "default": "new"}
    topics = {name: Topic(f"p.d.{name}", [ID, day], ["id"], schemas=False) for name in ("supplied", "bare", "partial")}
    for topic in topics.values():
        topic.change("c", None, {"id": 1, "day": 365}, 10)
        topic.change("c", None, {"id": 2, "day": None}, 20)
    records = [record for topic in topics.values() for record in topic.records]
    schemas = {
        "p.d.supplied": {"key": _struct([ID]), "value": topics["supplied"]._envelope()},
        "p.d.partial": {"key": _struct([ID]), "value": Topic("", [ID])._envelope()},
    }
    outcomes = run(records, schemas=schemas)
    assert outcomes["p.d.supplied"].error is None
    for name, field in [("bare", "id"), ("partial", "day")]:
        error = str(outcomes[f"p.d.{name}"].error)
        assert f"topic p.d.{name}: the messages have no schemas" in error
        assert f"field {field!r}" in error
        assert "--config" in error
        assert "--schemas" in error
        assert not (tmp_path / f"p.d.{name}").exists()
    rows = rows_of(str(tmp_path / "p.d.supplied"))
    assert sorted((row["id"], str(row["day"])) for row in rows) == [(1, "1971-01-01"), (2, "None")]

    # A column is added: older rows and older messages have its default, null is null
    topic = topics["supplied"]
    topic.change("c", None, {"id": 3, "day": None}, 30)
    topic.columns = [ID, day, more]
    topic.change("c", None, {"id": 4, "day": 1, "more": None}, 40)
    schemas = {"p.d.supplied": {"key": _struct([ID]), "value": topic._envelope()}}
    assert run(topic.records, schemas=schemas)["p.d.supplied"].error is None
    rows = {row["id"]: row["more"] for row in rows_of(str(tmp_path / "p.d.supplied"))}
    assert rows == {1: "new", 2: "new", 3: "new", 4: None}


def _struct(fields):
    return {"type": "struct", "fields": fields, "optional": False}


def test_an_error_of_one_table_does_not_stop_the_others(run, rows_of, tmp_path) -> None:
    good, lost = (Topic(f"p.d.{name}", [ID], key=["id"]) for name in ("good", "lost"))
    other, odd = Topic("p.d.other", [ID], key=["id"]), Topic("p.d.odd", [ID], key=["id"])
    for topic in (good, lost):
        topic.change("c", None, {"id": 1}, 10)
    unwrapped = other._message(_struct([ID]), {"id": 1, "op": "c"})
    other._append(0, unwrapped, unwrapped)
    odd.change("x", None, {"id": 1}, 10)
    bare = Topic("p.d.bare", [ID], key=["id"])
    bare.change("c", None, {"id": 1}, 10).key = bare._message({"type": "int32", "optional": False}, 1)
    large = Topic("p.d.large", [ID], key=["id"])
    large.change("c", None, {"id": 1}, 10)
    check = ClaimCheck(f"s3://bucket/p.d.large/{'0' * 64}", "0" * 64, 2_000_000)
    large.change("c", None, {"id": 2}, 10).value = check.record_value().decode()
    first = run([*good.records, *lost.records, *other.records, *odd.records, *bare.records, *large.records])
    assert first["p.d.good"].error is first["p.d.lost"].error is None
    assert "p.d.other" in str(first["p.d.other"].error)
    assert "no change events" in str(first["p.d.other"].error)
    assert "--topics" in str(first["p.d.other"].error)
    assert "unknown operation 'x'" in str(first["p.d.odd"].error)
    assert "p.d.large, partition 0, offset 1: the value of the record is not in Kafka" in str(first["p.d.large"].error)
    assert "--claim-checks" in str(first["p.d.large"].error)
    assert "p.d.bare: the keys are values of type int32" in str(first["p.d.bare"].error)

    for number in range(2, 5):
        lost.change("c", None, {"id": number}, 10 * number)
    second = run(lost.records, first=3)
    assert "offsets 1 to 2 were deleted by Kafka" in str(second["p.d.lost"].error)
    assert rows_of(str(tmp_path / "p.d.lost")) == [{"id": 1}]

    (state,) = (tmp_path / "_rowtide" / "p.d.good").glob("*.done.json")
    kept = state.read_text()
    state.write_text("{")
    assert "cannot be read" in str(run(good.records)["p.d.good"].error)
    for file in state.parent.iterdir():
        file.unlink()
    assert "holds no offsets" in str(run(good.records)["p.d.good"].error)
    state.write_text(kept)
    (tmp_path / "p.d.good").rename(tmp_path / "elsewhere")
    assert "is missing from" in str(run(good.records)["p.d.good"].error)


@pytest.mark.parametrize("table_format", ["delta", "iceberg", pytest.param("parquet", marks=pytest.mark.nightly)])
@pytest.mark.parametrize("locks", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["local", "object store"])
def test_overlapping_runs_lose_nothing(run, rows_of, tmp_path, monkeypatch, table_format, locks) -> None:
    from contextlib import nullcontext

    from rowtide.spark_consumers.jvm.files import HadoopFiles
    from rowtide.spark_consumers.state import StateStore

    if not locks:  # neither are there files that only one run can create
        monkeypatch.setattr(HadoopFiles, "lock", lambda _files, _path: nullcontext())
        monkeypatch.setattr(HadoopFiles, "create_new", HadoopFiles.create)
    topic = Topic("p.d.t", [ID])
    plan = StateStore.plan
    for batch_end in (10, 20):  # the batch that creates the table, and the next one
        for number in range(batch_end - 10, batch_end):
            topic.change("c", None, {"id": number}, number)
        inner = {}

        def overlapped(store, batch, inner=inner) -> None:
            monkeypatch.setattr(StateStore, "plan", plan)
            inner.update(run(topic.records[:-4], format=table_format))
            plan(store, batch)

        monkeypatch.setattr(StateStore, "plan", overlapped)
        outer = run(topic.records, format=table_format)["p.d.t"]
        if locks:
            assert "another run of rowtide tables is updating this table (process" in inner["p.d.t"].error
            assert outer.error is None
        else:
            assert inner["p.d.t"].error is None
            assert "written to the table by another run of rowtide tables" in outer.error
        assert run(topic.records, format=table_format)["p.d.t"].error is None
        same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), [{"id": number} for number in range(batch_end)])


def test_a_run_that_another_one_overtook_reads_nothing(spark, frame_of, tmp_path) -> None:
    from rowtide.spark_consumers.job import table_jobs
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    topic = Topic("p.d.t", [ID], key=["id"])
    for number in range(4):
        topic.change("c", None, {"id": number}, number)
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), "p")
    (job,) = table_jobs(spark, FrameSource(frame_of(topic.records)), settings, None)
    started_earlier = dataclasses.replace(job, bounds={0: (0, 2)})
    outcomes = [found.run(lambda *_: None) for found in (job, started_earlier)]
    assert [(outcome.error, outcome.records) for outcome in outcomes] == [(None, 4), (None, 0)]


def test_an_old_image_matches_a_row_of_the_snapshot_with_other_digits(run, rows_of, tmp_path) -> None:
    topic = Topic("p.d.t", [{"type": "float", "optional": True, "field": "x"}])
    for _ in range(2):
        topic.change("r", None, {"x": 0.333333}, 0)
    topic.change("r", None, {"x": 0.25}, 0)
    assert run(topic.records)["p.d.t"].rows.inserted == 3
    topic.change("d", {"x": 0.33333334}, None, 10)
    outcome = run(topic.records)["p.d.t"]
    assert (outcome.rows.deleted, outcome.unmatched, outcome.error) == (1, 0, None)
    assert sorted(round(row["x"], 6) for row in rows_of(str(tmp_path / "p.d.t"))) == [0.25, 0.333333]


def test_snapshot_records_that_come_to_rows_of_a_table_without_a_key_are_counted(run) -> None:
    bag, keyed = Topic("p.d.bag", [ID, TEXT]), Topic("p.d.keyed", [ID, TEXT], key=["id"])
    for topic in (bag, keyed):
        for number in range(3):
            topic.change("r", None, {"id": number, "text": "a"}, 0)
    first = run([*bag.records, *keyed.records], max_records=2)
    assert [outcome.reread for outcome in first.values()] == [0, 0], "the first run builds the tables, in two batches"
    for topic in (bag, keyed):
        topic.change("c", None, {"id": 3, "text": "a"}, 10)
        for number in range(4):
            topic.change("r", None, {"id": number, "text": "a"}, 20)
    again = run([*bag.records, *keyed.records])
    assert (again["p.d.bag"].reread, again["p.d.bag"].rows.inserted, again["p.d.keyed"].reread) == (4, 5, 0)


@pytest.mark.parametrize(
    "table_format",
    ["delta", pytest.param("iceberg", marks=pytest.mark.nightly), pytest.param("parquet", marks=pytest.mark.nightly)],
)
def test_wider_types_and_defaults_of_one_batch(run, rows_of, tmp_path, monkeypatch, table_format) -> None:
    from rowtide.spark_consumers.state import StateStore

    number = {"type": "int32", "optional": True, "field": "number"}
    topic = Topic("p.d.t", [ID, number], ["id"])
    topic.change("c", None, {"id": 1, "number": 5}, 10)
    assert run(topic.records, format=table_format)["p.d.t"].error is None
    topic.columns = [ID, {**number, "type": "int64"}, {"type": "int32", "field": "more", "default": 7}]
    topic.change("c", None, {"id": 2, "number": 2**40, "more": 8}, 20)
    with monkeypatch.context() as patched:
        patched.setattr(StateStore, "finish", _crash)
        with pytest.raises(ZeroDivisionError):
            run(topic.records, format=table_format)
    assert run(topic.records, format=table_format)["p.d.t"].error is None
    expected = [{"id": 1, "number": 5, "more": 7}, {"id": 2, "number": 2**40, "more": 8}]
    same_rows(rows_of(str(tmp_path / "p.d.t"), table_format), expected)


def test_a_connector_with_a_longer_prefix_is_omitted(spark, frame_of, tmp_path) -> None:
    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    topics = {"shop.eu.db.t": "shop.eu", "shop.db.u.v": "shop", "shop.db.t": "shop"}
    records = []
    for name, prefix in topics.items():
        topic = Topic(name, [ID], ["id"], connector=prefix)
        topic.tombstone({"id": 1})
        topic.change("c", None, {"id": 1}, 10)
        records += topic.records
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"), prefix="shop")
    outcomes = {o.name.topic: o for o in update_tables(spark, FrameSource(frame_of(records)), settings)}
    assert {topic: (outcome.records, outcome.error) for topic, outcome in outcomes.items()} == {
        "shop.eu.db.t": (0, None), "shop.db.u.v": (2, None), "shop.db.t": (2, None),
    }  # fmt: skip
    assert "topic.prefix shop.eu" in outcomes["shop.eu.db.t"].notes[0]
    assert not (tmp_path / "eu").exists()


@pytest.mark.nightly
def test_special_names_of_columns(run, rows_of, tmp_path) -> None:
    names = ["{rows}", "{value}", "{snapshot}", "a`b", "it's"]
    columns = [ID, *({"type": "string", "optional": True, "field": name} for name in names)]
    topic = Topic("p.d.t", columns, ["id"])
    bag = Topic("p.d.bag", columns)
    for number in range(2):
        row = {"id": 1, **{name: f"{name} {number}" for name in names}}
        topic.change("c", None, row, number)
        bag.change("c", None, row, number)
        assert [outcome.error for outcome in run([*topic.records, *bag.records]).values()] == [None, None]
    same_rows(rows_of(str(tmp_path / "p.d.t")), [row])
    bag.change("d", row, None, 10)
    assert run(bag.records)["p.d.bag"].rows.deleted == 1


def test_a_table_can_be_built_again(spark, frame_of, run, rows_of, tmp_path) -> None:
    from rowtide.spark_consumers.errors import SettingsError
    from rowtide.spark_consumers.job import restart_tables
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    topic = Topic("p.d.t", [ID], key=["id"])
    topic.change("c", None, {"id": 1}, 10)
    run(topic.records)
    source = FrameSource(frame_of([dataclasses.replace(record) for record in topic.records]))
    settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"))
    with pytest.raises(SettingsError, match=r"no topic has this table; there are p\.d\.t"):
        restart_tables(spark, source, settings, ["d.u"], ".*")
    restart_tables(spark, source, settings, ["p.d.t"], ".*")
    assert not (tmp_path / "p.d.t").exists()
    assert run(topic.records)["p.d.t"].records == 1
    assert rows_of(str(tmp_path / "p.d.t")) == [{"id": 1}]


@pytest.mark.parametrize("partitions", [1, 2])
def test_values_in_a_folder_are_read_from_there(run, rows_of, tmp_path, partitions) -> None:
    folder = tmp_path / "claims"
    (folder / "p.d.t").mkdir(parents=True)
    topic = Topic("p.d.t", [ID, TEXT], key=["id"])
    for number in range(4):
        row = {"id": number, "text": f"n{number}"}
        record = topic.change("c", None, row, 10 + number, partition=number % partitions)
        if number in (1, 2):
            value = record.value.encode()
            digest = hashlib.sha256(value).hexdigest()
            (folder / "p.d.t" / digest).write_bytes(value)
            record.value = ClaimCheck(f"s3://elsewhere/p.d.t/{digest}", digest, len(value)).record_value().decode()
    assert run(topic.records, claim_checks=str(folder))["p.d.t"].error is None
    rows = sorted((row["id"], row["text"]) for row in rows_of(str(tmp_path / "p.d.t")))
    assert rows == [(number, f"n{number}") for number in range(4)]


@pytest.mark.parametrize("damage", ["missing", "changed"])
def test_a_value_that_cannot_be_read_stops_its_table(run, tmp_path, damage) -> None:
    folder = tmp_path / "claims"
    (folder / "p.d.t").mkdir(parents=True)
    topic = Topic("p.d.t", [ID], key=["id"])
    digest = "0" * 64
    topic.change("c", None, {"id": 1}, 10).value = (
        ClaimCheck(f"s3://elsewhere/p.d.t/{digest}", digest, 9).record_value().decode()
    )
    if damage == "changed":
        (folder / "p.d.t" / digest).write_bytes(b"123456789")
    error = str(run(topic.records, claim_checks=str(folder))["p.d.t"].error)
    assert digest in error
    assert ("was changed or damaged" in error) == (damage == "changed")


def test_changes_that_existing_rows_lack_are_noted_by_the_run_that_meets_them(run) -> None:
    a, b, size = ({"type": kind, "optional": True, "field": name} for name, kind in
                  (("a", "int32"), ("b", "int32"), ("size", "double")))  # fmt: skip
    topic = Topic("p.d.t", [ID, a, b, size], ["id"])
    topic.change("c", None, {"id": 1, "a": 1, "b": 2, "size": 1.5}, 10)
    assert run(topic.records)["p.d.t"].notes == []
    topic.columns = [ID, b, a, {**size, "type": "int32"}]  # RENAME COLUMN a TO b, RENAME COLUMN b TO a, MODIFY size INT
    topic.change("c", None, {"id": 2, "b": 1, "a": 2, "size": 2}, 20)
    renamed, converted = run(topic.records)["p.d.t"].notes
    assert "(a and b, b and a)" in renamed
    assert "column size was changed from double to int" in converted
    topic.change("c", None, {"id": 3, "b": 1, "a": 2, "size": 2}, 30)
    assert run(topic.records)["p.d.t"].notes == []


@pytest.mark.nightly
def test_a_key_column_that_older_rows_have_no_value_in_stops_the_table(run, rows_of, tmp_path) -> None:
    number = {**ID, "field": "number"}
    topics = [Topic(f"p.d.{name}", [ID, TEXT], ["id"]) for name in ("renamed", "emptied", "empty")]
    renamed, emptied, empty = topics
    for topic in topics:
        topic.change("c", None, {"id": 1, "text": "a"}, 10)
    empty.change("t", None, None, 20)  # DROP TABLE and CREATE TABLE: the new rows come in a later run
    outcomes = run([record for topic in topics for record in topic.records])
    assert [outcome.error for outcome in outcomes.values()] == [None, None, None]
    emptied.change("t", None, None, 20)
    for topic in topics:
        topic.columns, topic.key = [number, TEXT], ["number"]  # CHANGE id number INT
        topic.change("u", {"number": 1, "text": "a"}, {"number": 1, "text": "b"}, 30)
    for _ in range(2):
        error = str(run(renamed.records)["p.d.renamed"].error)
        assert "column number: from topic p.d.renamed, partition 0, offset 1" in error
        assert "--restart p.d.renamed" in error
        assert rows_of(str(tmp_path / "p.d.renamed")) == [{"id": 1, "text": "a"}]
    outcomes = run(emptied.records + empty.records)
    for topic in (emptied, empty):
        assert outcomes[topic.name].error is None
        same_rows(rows_of(str(tmp_path / topic.name)), [{"number": 1, "text": "b"}])


def test_a_topic_that_was_made_again_is_noticed_without_topic_ids(spark, frame_of, rows_of, tmp_path) -> None:
    from rowtide.spark_consumers.job import update_tables
    from rowtide.spark_consumers.kafka.offsets import LastRecord
    from rowtide.spark_consumers.settings import Settings
    from tests.support.frame_source import FrameSource

    class OldBroker(FrameSource):
        """The topics of a broker before Kafka 2.8."""

        def last_records(self, topic, ranges):
            rows = self.read(spark, topic, ranges).orderBy("offset").collect()
            return {row.partition: LastRecord.of(row.offset, 1000, row.key, row.value) for row in rows}

    def update(topic: Topic, first: int = 0) -> str | None:
        kept = [record for record in topic.records if record.offset >= first]
        settings = Settings(str(tmp_path), str(tmp_path / "_rowtide"))
        [outcome] = update_tables(spark, OldBroker(frame_of(kept)), settings, ".*")
        return outcome.error

    def topic(*texts: str) -> Topic:
        made = Topic("p.d.again", [ID, TEXT], key=["id"])
        for number, text in enumerate(texts):
            made.change("c", None, {"id": number, "text": text}, number)
        return made

    assert update(topic("a", "b")) is None
    assert update(topic("a", "b")) is None  # nothing new
    assert update(topic("a", "b", "c")) is None
    rows = rows_of(str(tmp_path / "p.d.again"))
    # Its end is the stored offset, or after it: the number alone is valid in both.
    for again in (topic("a", "b", "x"), topic("a", "b", "x", "y")):
        assert "topic p.d.again was deleted and re-created: partition 0" in str(update(again))
        assert rows_of(str(tmp_path / "p.d.again")) == rows
    assert update(topic("a", "b", "c", "d", "e"), first=3) is None  # Kafka has deleted what was read
    assert {row["text"] for row in rows_of(str(tmp_path / "p.d.again"))} == {"a", "b", "c", "d", "e"}


@pytest.fixture
def job_of(monkeypatch):
    """Return a function that makes the job of a table whose format is given, with its state in memory."""
    from rowtide.spark_consumers import job as module
    from rowtide.spark_consumers.formats import FORMATS
    from rowtide.spark_consumers.kafka.naming import TableName
    from rowtide.spark_consumers.settings import Settings
    from tests.support.memory_files import MemoryFiles

    def make(**table):
        files = MemoryFiles()
        monkeypatch.setattr(module, "HadoopFiles", lambda _spark: files)
        found = SimpleNamespace(path=lambda _name: "t", **table)
        monkeypatch.setitem(FORMATS, "fake", lambda _spark, _settings: found)
        name, settings = TableName("p.d.t", "d", "t"), Settings("out", "state", format="fake")
        return module.TableJob(None, None, settings, name, {}, session=lambda: None)

    return make


@pytest.mark.parametrize(
    ("planned", "newest", "exists", "is_forgotten"),
    [
        pytest.param(1, None, False, True, id="the first batch, of which nothing was written"),
        pytest.param(3, 2, True, True, id="the table has the batch before"),
        pytest.param(3, 3, True, False, id="the table has a part of the batch"),
        pytest.param(3, None, True, False, id="the log was cleaned, so the table may have a part"),
        pytest.param(3, None, False, True, id="no batch has made the table yet"),
    ],
)
def test_a_plan_is_forgotten_only_if_the_table_has_nothing_of_it(job_of, planned, newest, exists, is_forgotten) -> None:
    from rowtide.spark_consumers.state import Batch, Commit

    def newest_commit(_path: str, app_id: str) -> Commit | None:
        return None if newest is None else Batch(app_id, number=newest).commit(1)

    job = job_of(exists=lambda _path: exists, newest_commit=newest_commit)
    batch = Batch("a", number=planned - 1).next({0: (5, 9)})
    if planned > 1:
        job.state.finish(Batch("a", number=planned - 1))
    job.state.plan(batch)

    job._forget_plan()

    assert job.state.load().planned == (None if is_forgotten else batch)


def test_a_table_is_not_deleted_while_another_process_takes_care_of_it(job_of, monkeypatch) -> None:
    from rowtide.spark_consumers import job as module

    held: list[str] = []
    steps: list[tuple[str, ...]] = []

    @contextmanager
    def turn(_files: object, path: str):
        held.append(path)
        yield
        held.clear()

    monkeypatch.setattr(module, "turn", turn)
    job_of(delete=lambda path: steps.append((path, *held))).restart()
    assert steps == [("t", "state/p.d.t~upkeep")]
