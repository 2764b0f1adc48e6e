"""The topics of a table's records if transforms change them: known, or chosen by the row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config.load import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import KeyedFold, Record
from rowtide.verify.positions import RecordPlace
from rowtide.verify.routing import Routing, routing
from tests.support.configurations import PROPERTIES
from tests.support.processes.worker_process import Worker, WorkerConfig
from tests.verify.damages import MORE, found, report

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

KAFKA, DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium.transforms."
ROUTER = {"type": KAFKA + "RegexRouter", "regex": "(.*)", "replacement": "$1.routed"}
CONTENT = {"type": DEBEZIUM + "ContentBasedRouter", "language": "python"}
DROPPING = {"type": DEBEZIUM + "Filter", "language": "python", "condition": "value.after.region == 'eu'"}
REJECTING = {"type": KAFKA + "TimestampConverter$Key", "field": "id", "target.type": "string", "format": "yyyy"}
HOOK = """
from dataclasses import replace

def same(record):
    return replace(record, topic=record.topic + ".x")

def by_row(record):
    return replace(record, topic=record.topic + "." + str(record.key["id"] % 2))

def failing(record):
    raise ValueError("no such value")
"""


def transforms(*chain: Mapping[str, str]) -> dict[str, str]:
    names = [f"s{number}" for number in range(len(chain))]
    options = {
        f"transforms.{name}.{key}": text for name, one in zip(names, chain, strict=True) for key, text in one.items()
    }
    return {"transforms": ",".join(names), **options}


def topics(more: Mapping[str, str]) -> Routing:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("CREATE TABLE t (id INT PRIMARY KEY, region VARCHAR(9) NOT NULL)", "d", position=""))
    structure = tables.table("d", "t")
    assert isinstance(structure, Table)
    config = from_properties(PROPERTIES | more)
    return routing(SnapshotTable(structure, pipeline_settings(config, "run")), config.transforms)


TOPIC = PROPERTIES["topic.prefix"] + ".d.t"
BY_ROW = Routing([], "transforms.s0")


@pytest.mark.parametrize(
    ("chain", "expected"),
    [
        ((), Routing([TOPIC])),
        (({"type": KAFKA + "InsertHeader", "header": "h", "value.literal": "1"},), Routing([TOPIC])),
        ((ROUTER,), Routing([TOPIC + ".routed"])),
        (({**ROUTER, "regex": "(other)"},), Routing([TOPIC])),
        ((DROPPING, ROUTER), Routing([TOPIC + ".routed"])),
        ((REJECTING, ROUTER), Routing([TOPIC + ".routed"])),
        (({**CONTENT, "topic.expression": "topic + '.us' if value.after.region == 'us' else topic"},), BY_ROW),
        (({**CONTENT, "topic.expression": "'t-' + str(key.id)"},), BY_ROW),
        (({**CONTENT, "topic.expression": " topic + '.x' "},), Routing([TOPIC + ".x"])),
        (({**CONTENT, "topic.regex": "other", "topic.expression": "value.after.region"},), Routing([TOPIC])),
        (({"type": "python:hook_of_routing.same"},), Routing([TOPIC + ".x"])),
        (({"type": "python:hook_of_routing.by_row"},), BY_ROW),
        (({"type": "python:hook_of_routing.failing"},), BY_ROW),
    ],
)
def test_the_topics_are_known_unless_the_row_determines_them(
    chain: tuple[Mapping[str, str], ...], expected: Routing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hook_of_routing.py").write_text(HOOK)
    monkeypatch.syspath_prepend(tmp_path)
    assert topics(transforms(*chain) if chain else {}) == expected


def test_a_predicate_may_depend_on_the_row() -> None:
    more = {"predicates": "p", "predicates.p.type": KAFKA + "predicates.HasHeaderKey", "predicates.p.name": "h"}
    assert topics(transforms({**ROUTER, "predicate": "p"}) | more) == BY_ROW


def test_a_key_with_records_in_two_topics_is_not_decided(tmp_path: Path) -> None:
    """The topics are read one after the other, so the row of the first one seemed to be the older one."""
    fold = KeyedFold(tmp_path / "rows")
    fold.add(Record(("i1",), b"1", {"region": "seu"}, RecordPlace(0, 9, "u")))
    with pytest.raises(Undecided, match="in several topics"):
        fold.add(Record(("i1",), b"1", {"region": "sus"}, RecordPlace(0, 3, "u", topic=1)))
    fold.close()


@pytest.mark.servers
@pytest.mark.nightly
def test_rows_in_topics_that_transforms_choose(tmp_path: Path, mysql_db: Database, kafka: Kafka) -> None:
    """The topic of RegexRouter was not read for an empty table, and a difference was undecided for another one."""
    config = WorkerConfig(tmp_path, mysql_db.server, kafka.bootstrap, MORE | {"database.include.list": mysql_db.name})
    router = {**CONTENT, "topic.regex": ".*[.]t", "topic.expression": "topic + '.' + value.after.region"}
    config.properties |= transforms({**ROUTER, "regex": "(.*[.](?:emptied|other))"}, router)
    create = "CREATE TABLE {} (id INT PRIMARY KEY, region VARCHAR(9))"
    for name in ("emptied", "other", "t"):
        mysql_db.execute(create.format(name), f"INSERT INTO {name} VALUES (1, 'eu'), (2, 'us')")
    with Worker(config).streaming() as worker:
        status, document = report(config)
        assert {one["table"].partition(".")[2]: one["outcome"] for one in document["tables"]} == {
            "emptied": "equal", "other": "equal", "t": "undecided",
        }, document  # fmt: skip
        mysql_db.execute(
            "SET sql_log_bin = 0", "DELETE FROM emptied", "DELETE FROM other WHERE id = 1", "DELETE FROM t"
        )
        status, document = report(config)
        assert (status, found(document)) == (
            1, {("emptied", "extra", "1", ""), ("emptied", "extra", "2", ""), ("other", "extra", "1", "")},
        ), document  # fmt: skip
        worker.stop()
    reasons = [one["reason"] for one in document["tables"] if one["table"].endswith(".t")]
    assert "transforms.s1 chooses the topic by the row" in reasons[0]
