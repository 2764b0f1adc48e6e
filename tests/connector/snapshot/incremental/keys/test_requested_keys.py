"""Rows that are requested by their keys: which of them are deleted if they do not exist, and by which record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from rowtide.connector.config.load import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.topic_conflicts import TopicOwners
from rowtide.connector.snapshot.incremental.read_chunks.attempts import Attempts
from rowtide.connector.snapshot.incremental.scan_start import new_scan
from rowtide.connector.snapshot.incremental.state import IncrementalTable
from rowtide.connector.snapshot.records import ReadTime
from rowtide.envelope.schema import STRING
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.configurations import PROPERTIES

CREATED = "CREATE TABLE t (id INT PRIMARY KEY, n INT NOT NULL, txt VARCHAR(9) NOT NULL)"


def deletions(properties: Mapping[str, str], created: str = CREATED, flavor: Flavor = Flavor.MYSQL) -> list[Any]:
    """The row of the record of deletion of the row 7, if one is sent."""
    tables = Tables(Server(flavor))
    for statement in (created, "CREATE TABLE t2 (id INT PRIMARY KEY)"):
        tables.apply(QueryEvent(statement, "d", position=""))
    settings = pipeline_settings(from_properties(PROPERTIES | properties), "run")
    structure = tables.table("d", "t")
    assert isinstance(structure, Table)
    wanted = IncrementalTable("d.t", TableId("d", "t"), "s", key_names=("id",), keys=(("7",),))
    scan = new_scan(wanted, structure, settings, TopicOwners(settings, tables), Attempts(10))
    assert scan.requested is not None
    rows = [*scan.requested.gone([]).values()]
    messages = scan.table.deletions(rows, ReadTime(0, SourceOffset("", 0), lambda: 0))
    values = [json.loads(value) for _key, value, _headers in messages if value is not None]
    return [value.get("payload", value)["before"] for value in values]


def transform(*classes: str, **options: str) -> dict[str, str]:
    names = "abc"[: len(classes)]
    types = {f"transforms.{name}.type": one for name, one in zip(names, classes, strict=True)}
    last = {f"transforms.{names[-1]}.{name.replace('_', '.')}": value for name, value in options.items()}
    return {"transforms": ",".join(names), **types, **last}


KAFKA, DEBEZIUM = "org.apache.kafka.connect.transforms.", "io.debezium.transforms."
UNWRAP = DEBEZIUM + "ExtractNewRecordState"
REWRITE = {"transforms.a.delete.tombstone.handling.mode": "rewrite"}
ROUTED = {"regex": "(.*)[.]t2?", "replacement": "all"}
LOGICAL = {"topic_regex": "(.*)[.]t2?", "topic_replacement": "all"}


@pytest.mark.parametrize(
    "properties",
    [
        {},
        transform(UNWRAP),
        transform(KAFKA + "ExtractField$Key", field="id"),
        transform(KAFKA + "RegexRouter", regex=".*[.](t2?)", replacement="$1"),
        transform(DEBEZIUM + "ByLogicalTableRouter", **LOGICAL),
        transform(
            DEBEZIUM + "partitions.PartitionRouting", partition_payload_fields="change.id", partition_topic_num="9"
        ),
    ],
)
def test_a_row_is_deleted_if_its_record_depends_on_its_key_only(properties: Mapping[str, str]) -> None:
    assert deletions(properties) == [{"id": 7, "n": 0, "txt": ""}]


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        (transform(UNWRAP, KAFKA + "ValueToKey", fields="n") | REWRITE, "from columns other than those of its key"),
        (
            transform(
                DEBEZIUM + "partitions.PartitionRouting", partition_payload_fields="change.txt", partition_topic_num="2"
            ),
            "from columns other than those of its key",
        ),
        (transform(KAFKA + "RegexRouter", **ROUTED), "rows of topic shop.d.t2 with the same keys"),
        (
            transform(DEBEZIUM + "ByLogicalTableRouter", **LOGICAL, key_enforce_uniqueness="false"),
            "rows of topic shop.d.t2 with the same keys",
        ),
        (transform(KAFKA + "ExtractField$Key", field="absent"), "absent"),
        ({"converters": "c", "c.type": f"python:{__name__}.Picky"}, "RuntimeError"),
    ],
)
def test_a_row_is_not_deleted_if_the_record_could_be_that_of_another_row(
    properties: Mapping[str, str], reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """ValueToKey gave the record the key of the row whose column has the value that means nothing."""
    assert deletions(properties) == []
    assert reason in caplog.text


class Picky:
    """A column converter that refuses empty texts."""

    def converter_for(self, column: Any, registration: Any) -> None:
        if column.name == "txt":
            registration.register(STRING, self.convert)

    def convert(self, value: Any) -> str:
        if not value:
            raise RuntimeError("empty")
        return str(value)


@pytest.mark.parametrize(
    ("kind", "flavor", "value"),
    [
        ("MULTIPOLYGON", Flavor.MYSQL, {"wkb": "AQEAAAAAAAAAAAAAAAAAAAAAAAAA", "srid": None}),
        ("VECTOR(2)", Flavor.MYSQL, [0.0, 0.0]),
        ("UUID", Flavor.MARIADB, "00000000-0000-0000-0000-000000000000"),
        ("INET6", Flavor.MARIADB, "::0"),
        ("INET4", Flavor.MARIADB, "0.0.0.0"),
    ],
)
def test_a_column_that_is_not_null_has_a_value(kind: str, flavor: Flavor, value: Any) -> None:
    connector = (
        {"connector.class": "io.debezium.connector.mariadb.MariaDbConnector"} if flavor is Flavor.MARIADB else {}
    )
    created = f"CREATE TABLE t (id INT PRIMARY KEY, n {kind} NOT NULL)"
    assert deletions(connector, created, flavor) == [{"id": 7, "n": value}]
