"""Two tables whose names lead to the same topic, where the second one is created while the connector runs."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.errors import TopicClash
from rowtide.connector.records.batch import Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.mysql.live_database import configured, snapshot, streamed
from tests.support.recordings.golden import Case, written
from tests.support.recordings.live_snapshot import binlog_end

if TYPE_CHECKING:
    from rowtide_stack import Database

FIRST, SECOND = TableId("d", "a b"), TableId("d", "a$b")
UNICODE = {"topic.naming.strategy": "io.debezium.schema.DefaultUnicodeTopicNamingStrategy"}


def tables(*statements: str) -> Tables:
    made = Tables(Server(Flavor.MYSQL))
    for statement in ("create database d", *statements):
        made.apply(QueryEvent(statement, database="d"))
    return made


def guard(known: Tables, **more: str) -> TopicOwners:
    return TopicOwners(pipeline_settings(from_properties(Case("keys").properties() | more), "run"), known)


BOTH = tables("create table `a b` (id int)", "create table `a$b` (id int)")


def test_the_topic_belongs_to_the_first_table() -> None:
    guarded = guard(BOTH)
    assert guarded.topic(FIRST) == "keys.d.a_b"
    with pytest.raises(TopicClash, match=r"tables d\.a b and d\.a\$b would both .* topic 'keys\.d\.a_b'.*exclude it"):
        guarded.topic(SECOND)
    assert guarded.topic(FIRST) == "keys.d.a_b"


def test_a_table_that_is_not_captured_owns_no_topic() -> None:
    assert guard(BOTH, **{"table.exclude.list": "d\\.a b"}).topic(SECOND) == "keys.d.a_b"


def test_settings_that_resolve_a_conflict() -> None:
    assert guard(BOTH, **UNICODE).topic(SECOND) == "keys.d.a_u0024b"
    regex = {
        "topic.naming.strategy": "io.debezium.schema.DefaultRegexTopicNamingStrategy",
        "topic.regex": "(.*)a_b",
        "topic.replacement": "$1both",
    }
    assert guard(BOTH, **regex).topic(SECOND) == "keys.d.both"


@pytest.mark.parametrize("statement", ["drop table `a b`", "rename table `a b` to c"])
def test_a_topic_is_released_when_its_table_is_gone(statement: str) -> None:
    known = tables("create table `a b` (id int)")
    guarded = guard(known)
    for text in (statement, "create table `a$b` (id int)"):
        known.apply(QueryEvent(text, database="d"))
    guarded.register(SECOND)
    assert guarded.topic(SECOND) == "keys.d.a_b"


def test_the_connectors_own_topics_are_never_available() -> None:
    with pytest.raises(TopicClash, match="transaction metadata"):
        guard(tables(), **{"topic.naming.strategy": "io.debezium.schema.SchemaTopicNamingStrategy"}).topic(
            TableId("d", "transaction")
        )


def keys_of(outputs: list[Output]) -> dict[str, list[int]]:
    """The keys of each table's topic."""
    found: dict[str, list[int]] = {}
    for message in written(outputs):
        if message.key and '"op":' in str(message.value):
            found.setdefault(message.topic.rpartition(".")[2], []).append(json.loads(message.key)["id"])
    return found


@pytest.mark.servers
def test_the_stream_stops_before_the_second_table(mysql_db: Database, caplog: pytest.LogCaptureFixture) -> None:
    mysql_db.execute("CREATE TABLE `a b` (id INT PRIMARY KEY)")
    taken = snapshot(configured(mysql_db))
    list(taken.outputs())
    mysql_db.execute(
        "CREATE TABLE `a$b` (id INT PRIMARY KEY)",
        "INSERT INTO `a b` VALUES (1)",
        "INSERT INTO `a$b` VALUES (2)",
        "INSERT INTO `a b` VALUES (3)",
    )
    end = binlog_end(mysql_db.server)

    def run(start: SourceOffset, structure: Tables, more: Mapping[str, str]) -> list[Output]:
        found: list[Output] = []
        reached.clear()
        for step in streamed(configured(mysql_db, more), structure, start, end):
            found += step.outputs
            reached.append(found)
        return found

    reached: list[list[Output]] = []
    name = mysql_db.name
    message = rf"tables {name}\.a b and {name}\.a\$b would both be written to topic 'live\.{name}\.a_b'.*\(at binlog\."
    with caplog.at_level(logging.WARNING), pytest.raises(TopicClash, match=message):
        run(taken.offset, taken.tables.copy(), {})
    assert keys_of(reached[-1]) == {"a_b": [1]}
    assert any(f"stops at the first row of {name}.a$b" in line for line in caplog.messages)
    excluded = {"table.exclude.list": rf"{name}\.a\$b"}
    assert keys_of(run(taken.offset, taken.tables.copy(), excluded)) == {"a_b": [1, 3]}
    assert keys_of(run(taken.offset, taken.tables.copy(), UNICODE)) == {"a_u0020b": [1, 3], "a_u0024b": [2]}
    with pytest.raises(TopicClash):  # a table made between the check and the snapshot
        list(snapshot(configured(mysql_db)).outputs())
