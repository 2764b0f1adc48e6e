"""A recorded stream in the envelope of Debezium's first releases (``source.struct.version=v1``)."""

import json
from typing import Any

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from tests.support.recordings.golden import Case, written

Rows = list[tuple[Any, dict[str, Any] | None]]


def replayed(name: str, **more: str) -> dict[str, Rows]:
    case = Case(name)
    settings = pipeline_settings(from_properties(case.properties() | more), "run")
    topics: dict[str, Rows] = {}
    for message in written(replay(case.binlog, settings, case.start, lambda: 1_000_000)):
        key = json.loads(message.key)["payload"] if message.key else None
        value = json.loads(message.value)["payload"] if message.value else None
        topics.setdefault(message.topic, []).append((key, value))
    return topics


def test_every_record_has_the_same_content_in_the_old_envelope() -> None:
    today, old = replayed("keys"), replayed("keys", **{"source.struct.version": "v1"})
    assert today.keys() == old.keys()
    for topic, records in today.items():
        assert len(old[topic]) == len(records)
        for (key, value), (old_key, old_value) in zip(records, old[topic], strict=True):
            assert old_key == key
            if value is None or old_value is None:
                assert old_value is value
                continue
            source, old_source = value["source"], old_value["source"]
            assert list(old_source) == ["name", "server_id", "ts_sec", "gtid", "file", "pos", "row", "snapshot"]
            assert old_source["ts_sec"] == source["ts_ms"] // 1000
            assert old_source["snapshot"] is None
            for field in ("name", "server_id", "gtid", "file", "pos", "row"):
                assert old_source[field] == source[field]
            if "ddl" in value:
                assert old_value | {"source": None} == value | {"source": None}
            else:
                assert list(old_value) == ["op", "before", "after", "source", "ts_ms"]
                assert {name: old_value[name] for name in ("op", "before", "after", "ts_ms")} == {
                    name: value[name] for name in ("op", "before", "after", "ts_ms")
                }


def test_transforms_work_on_the_old_envelope() -> None:
    transforms = {
        "source.struct.version": "v1",
        "transforms": "unwrap",
        "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.unwrap.add.fields": "op,source.ts_sec",
    }
    rows = replayed("keys", **transforms)["keys.k.late"]
    assert rows
    for _, value in rows:
        assert value is not None
        assert list(value)[-2:] == ["__op", "__source_ts_sec"]
