"""Column converters in Python: the values that they get, what becomes of their results, and their errors."""

import ast
import datetime as dt
import json
import pickle
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.change import Row
from rowtide.connector.records.codecs.builder import warn_unknown
from rowtide.connector.records.codecs.python_values import python_conversion
from rowtide.connector.records.settings import PipelineSettings
from rowtide.envelope.column_converters import (
    ColumnConverterError,
    ColumnConverters,
)
from rowtide.envelope.custom_converter import Registration, RelationalColumn
from rowtide.envelope.schema import DECIMAL, FLOAT64, INT64, STRING, Schema
from rowtide.envelope.table import RecordRules, build_table_schema
from rowtide.envelope.transforms import Plugin
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.recordings.golden import Case, written

HERE = f"python:{__name__}."
TYPES = ("numeric-types", "temporal-types", "strings-and-charsets", "enum-set-json", "geometry-and-vector")


class Shown:
    """Registers the representation of values for all columns but those of keys."""

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        if column.name not in ("id", "k", "n"):
            registration.register(STRING, repr)


class Chosen:
    """Registers ``result`` of a value for one column."""

    result: Callable[[Any], Any] = staticmethod(lambda value: value)
    schema = INT64
    seen: list[RelationalColumn] = []  # noqa: RUF012 - each test has its own

    def configure(self, options: dict[str, str]) -> None:
        self.column = options["column"]

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        if column.name == self.column:
            self.seen.append(column)
            registration.register(self.schema, self.result)


class Refusing:
    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        raise KeyError(column.name)


class Untyped:
    def converter_for(self, _column: RelationalColumn, registration: Registration) -> None:
        registration.register("string", repr)  # type: ignore[arg-type]


class Nothing:
    pass


def settings_of(name: str, kind: str, **more: str) -> PipelineSettings:
    converter = {"converters": "c", "c.type": HERE + kind}
    properties = {key: value for key, value in Case(name).properties().items() if not key.startswith("notification.")}
    return replace(pipeline_settings(from_properties(properties | converter | more), "run"), schema_changes=False)


def rows(case: str, settings: PipelineSettings) -> list[dict[str, Any]]:
    """The rows of all records, in order."""
    found = []
    for output in replay(Case(case).binlog, settings, Case(case).start, lambda: 1):
        for message in written([output]) if isinstance(output, Batch) else ():
            if message.value is not None and '"op":"' in message.value:
                value = json.loads(message.value, parse_float=Decimal)
                value = value.get("payload", value)
                found += [row for row in (value["before"], value["after"]) if row is not None]
    return found


def changed_rows(case: str, settings: PipelineSettings) -> list[Row]:
    """The rows of all changes that the engine gives, in order."""
    changes = replay(Case(case).binlog, replace(settings, changes=True), Case(case).start, lambda: 1)
    return [
        row
        for batch in changes
        if isinstance(batch, Batch)
        for change in batch.changes
        for row in (change.before, change.after)
        if row is not None
    ]


class Typed(Chosen):
    """Gives the number of a value, as the schema's name wants it."""

    value: Any = None

    def converter_for(self, column: RelationalColumn, registration: Registration) -> None:
        if column.name == self.column:
            registration.register(self.schema, lambda _value: self.value)


@pytest.mark.parametrize(
    ("schema", "value", "wanted"),
    [
        (Schema("int32", name="io.debezium.time.Date", version=1), 19782, dt.date(2024, 2, 29)),
        (
            Schema("int64", name="io.debezium.time.MicroTimestamp", version=1),
            1,
            dt.datetime(1970, 1, 1, 0, 0, 0, 1),  # noqa: DTZ001 - as a DATETIME
        ),
        (
            Schema("string", name="io.debezium.time.ZonedTimestamp", version=1),
            "2024-02-29T10:00:00Z",
            dt.datetime(2024, 2, 29, 10, tzinfo=dt.UTC),
        ),
        (Schema("bytes", name=DECIMAL, version=1, parameters=(("scale", "2"),)), -1999, Decimal("-19.99")),
        (Schema("string", name="io.debezium.data.Json", version=1), '{"a": [1]}', {"a": [1]}),
        (Schema("float"), 1.100000023841858, 1.1),
        (Schema("bytes", name="io.debezium.data.Bits", version=1), b"\x01\x01", 257),
        (STRING, "__debezium_unavailable_value", "__debezium_unavailable_value"),
    ],
)
def test_the_engine_gives_the_python_value_of_the_schema(
    schema: Schema, value: Any, wanted: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Typed, "schema", schema)
    monkeypatch.setattr(Typed, "value", value)
    changes = changed_rows("numeric-types", settings_of("numeric-types", "Typed", **{"c.column": "ii"}))
    found = [row["ii"] for row in changes if row.get("ii") is not None]
    assert found == [wanted] * len(found)
    assert {type(one) for one in found} == {type(wanted)}


def test_a_date_that_python_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Typed, "schema", Schema("int32", name="io.debezium.time.Date", version=1))
    monkeypatch.setattr(Typed, "value", 2**31 - 1)
    mode = {"event.converting.failure.handling.mode": "fail"}
    settings = settings_of("numeric-types", "Typed", **{"c.column": "ii"}, **mode)
    assert rows("numeric-types", settings)
    with pytest.raises(ConnectorError, match=r"column ii \(int\): a value cannot be converted"):
        changed_rows("numeric-types", settings)


@pytest.mark.parametrize("case", TYPES)
def test_the_engine_gives_the_values_that_records_have(case: str) -> None:
    settings = settings_of(case, "Shown")
    found = [{name: row[name] for name in row if name not in ("id", "k", "n")} for row in changed_rows(case, settings)]
    assert [found_row.items() <= row.items() for found_row, row in zip(found, rows(case, settings), strict=True)] == [
        True
    ] * len(found)


@pytest.mark.parametrize("case", TYPES)
def test_a_converter_gets_the_values_that_the_engine_gives(case: str) -> None:
    settings = settings_of(case, "Shown")
    found = rows(case, settings)
    unconverted = replace(settings, rules=replace(settings.rules, converters=ColumnConverters()))
    wanted = changed_rows(case, unconverted)
    assert len(found) == len(wanted) > 0
    compared = 0
    for row, values in zip(found, wanted, strict=True):
        for name, value in values.items():
            if name not in ("id", "k", "n"):
                if name in ("j", "jn") and row[name] is not None:  # a converter gets the text of a document
                    assert json.loads(ast.literal_eval(row[name])) == value
                    continue
                assert row[name] == (None if value is None else repr(value)), name
                compared += 1
    assert compared


def case_with(result: Callable[[Any], Any], schema: Schema, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Chosen, "result", staticmethod(result))
    monkeypatch.setattr(Chosen, "schema", schema)
    monkeypatch.setattr(Chosen, "seen", [])


def table_of(columns: str) -> Table:
    tables = Tables(Server(Flavor.MYSQL))
    tables.apply(QueryEvent("create database d", database="d"))
    tables.apply(QueryEvent(f"create table t (id int primary key, {columns})", database="d"))
    (found,) = tables
    return found


def schema_of(table: Table, column: str = "v", **rules: Any) -> Schema:
    converters = ColumnConverters([Plugin("c", f"{HERE}Chosen", {"column": column})], python_conversion)
    built = build_table_schema(table, "t", RecordRules(converters=converters, **rules), "stream", warn_unknown)
    schema = built.key if column == "id" else built.row
    assert schema is not None
    field = schema.field(column)
    assert field is not None
    return field.schema


@pytest.mark.parametrize(
    ("column", "result", "schema", "wanted"),
    [
        ("v int", int, INT64, INT64.with_optional(True)),
        ("v int not null", int, INT64, INT64),
        ("v int not null default 5", lambda value: value * 2, INT64, replace(INT64, default=10)),
        ("v int default 5", str, STRING, replace(STRING, optional=True, default="5")),
        ("v int default null", int, replace(INT64, default=7), replace(INT64, optional=True, default=7)),
        ("v decimal(5,2) not null default 1.5", float, FLOAT64, replace(FLOAT64, default=1.5)),
        ("v enum('a','b') not null default 'b'", str.upper, STRING, replace(STRING, default="B")),
        ("v timestamp not null default current_timestamp", str, STRING, STRING),
        ("v text not null", len, INT64, INT64.with_optional(True)),  # NOBLOB omits it
        ("v text not null", str, STRING, STRING),
    ],
)
def test_a_schema_is_optional_as_the_column_and_has_its_converted_default(
    column: str, result: Callable[[Any], Any], schema: Schema, wanted: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_with(result, schema, monkeypatch)
    assert schema_of(table_of(column)) == wanted


def test_a_converter_sees_the_description_of_a_column(monkeypatch: pytest.MonkeyPatch) -> None:
    case_with(str, STRING, monkeypatch)
    schema_of(table_of("v decimal(5,2) not null default 1.5"))
    seen = RelationalColumn("v", "d.t", "DECIMAL", "DECIMAL", 5, 2, False, True, Decimal("1.50"), None, 3)
    assert Chosen.seen == [seen]
    schema_of(table_of("v varchar(9) character set latin1"))
    assert Chosen.seen[1] == RelationalColumn(
        "v", "d.t", "VARCHAR", "VARCHAR", 9, has_default=True, charset="latin1", jdbc_type=12
    )


def test_a_key_is_converted_as_the_row(monkeypatch: pytest.MonkeyPatch) -> None:
    case_with(str, STRING, monkeypatch)
    assert schema_of(table_of("v int"), "id") == STRING


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("Refusing", r"table d\.t, column id: converters: c \(python:.*Refusing\) raised KeyError: 'id'"),
        ("Untyped", "raised TypeError: the schema must be a rowtide.envelope.schema.Schema, not a str"),
    ],
)
def test_a_converter_that_fails_for_a_column(kind: str, message: str) -> None:
    rules = RecordRules(converters=ColumnConverters([Plugin("c", HERE + kind, {})], python_conversion))
    with pytest.raises(ColumnConverterError, match=message):
        build_table_schema(table_of("v int"), "t", rules, "stream", warn_unknown)
    with pytest.raises(ConnectorError, match=r"converters: c \(python:"):
        rows("keys", settings_of("keys", kind))


def test_a_default_that_a_converter_refuses_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    case_with(lambda value: 1 / value, FLOAT64, monkeypatch)
    with pytest.raises(ColumnConverterError, match=r"column v: the default of the column: .* ZeroDivisionError"):
        schema_of(table_of("v int default 0"))


def test_a_decimal_is_written_in_the_format_of_the_json_converter(monkeypatch: pytest.MonkeyPatch) -> None:
    case_with(lambda value: value * 10, Schema("bytes", name=DECIMAL, parameters=(("scale", "2"),)), monkeypatch)
    options = {"c.column": "n", "value.converter": "org.apache.kafka.connect.json.JsonConverter"}
    options |= {"value.converter.decimal.format": "NUMERIC", "table.include.list": r"k\.str"}
    found = rows("keys", settings_of("keys", "Chosen", **options))
    assert {row["n"] for row in found} <= {Decimal("0.00"), Decimal("0.10"), Decimal("0.20"), 0}
    assert Decimal("0.20") in {row["n"] for row in found}


@pytest.mark.parametrize(
    ("column", "result", "schema", "message"),
    [
        ("n", lambda value: 1 / 0, INT64, r"converters: c \(python:.*Chosen\) raised ZeroDivisionError \(errors\.log"),
        ("n", str, INT64, r"returned a str, which does not fit its schema"),
        ("s", lambda value: None, STRING, r"returned null, which does not fit its schema"),
        ("n", lambda value: 2**63, INT64, r"returned a int, which does not fit its schema"),
    ],
)
def test_a_converter_that_fails_names_itself_the_column_and_the_table(
    column: str, result: Callable[[Any], Any], schema: Schema, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case_with(result, schema, monkeypatch)
    for mode in ("fail", "warn", "skip"):  # null instead would hide a mistake in the user's code
        options = {"c.column": column, "event.converting.failure.handling.mode": mode, "table.include.list": r"k\.str"}
        with pytest.raises(
            ConnectorError, match=rf"table k\.str, column {column} \(.*{message}.*\(at binlog\.0+1:\d+\)"
        ):
            rows("keys", settings_of("keys", "Chosen", **options))


def test_a_message_shows_a_value_only_if_it_may(monkeypatch: pytest.MonkeyPatch) -> None:
    case_with(lambda value: {}[f"<{value}>"], INT64, monkeypatch)
    options = {"c.column": "n", "table.include.list": r"k\.str"}
    for shows in ("true", "false"):
        with pytest.raises(ConnectorError) as caught:
            rows("keys", settings_of("keys", "Chosen", **options, **{"errors.log.include.messages": shows}))
        assert ("<2>" in str(caught.value)) == (shows == "true")


def test_a_mask_needs_a_string(monkeypatch: pytest.MonkeyPatch) -> None:
    case_with(str, STRING, monkeypatch)
    options = {"c.column": "s", "table.include.list": r"k\.str", "column.mask.with.3.chars": r"k\.str\.s"}
    assert {row["s"] for row in rows("keys", settings_of("keys", "Chosen", **options))} == {"***"}
    monkeypatch.setattr(Chosen, "schema", INT64)
    with pytest.raises(ConnectorError, match="a converter gives int64, but a property that masks"):
        rows("keys", settings_of("keys", "Chosen", **options))


def test_converters_can_be_pickled_for_the_processes_that_decode() -> None:
    converters = ColumnConverters([Plugin("c", f"{HERE}Chosen", {"column": "v"})], python_conversion)
    assert pickle.loads(pickle.dumps(converters)) == converters


@pytest.mark.parametrize(
    ("properties", "problem"),
    [
        ({"c.type": HERE + "Nothing"}, "c.type: python:{}Nothing is not a class with a method converter_for"),
        ({"c.type": HERE + "Missing"}, "c.type: python:{}Missing cannot be used: AttributeError"),
        ({"c.type": "python:nowhere.Missing"}, "c.type: python:nowhere.Missing: No module named 'nowhere'. Install it"),
        ({"c.type": "python:Missing"}, "c.type: python:Missing has no module"),
        ({"c.type": HERE + "Chosen"}, "c.type: python:{}Chosen cannot be used: KeyError: 'column'"),
        ({"c.type": HERE + "Shown", "c.a": "b"}, "c.type: python:{}Shown has no method configure, which takes a"),
        ({}, "c.type: is required: write a class in Python"),
        (
            {"c.type": "io.debezium.connector.binlog.converters.TinyIntToBooleanConverter"},
            "module.Class; did you mean io.debezium.connector.binlog.converters.TinyIntOneToBooleanConverter?",
        ),
    ],
)
def test_a_wrong_configuration(properties: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_properties(Case("keys").properties() | {"converters": "c"} | properties)
    assert problem.replace("python:{}", HERE) in str(caught.value)
