"""What an engine answers without a server: wrong arguments, use after its end, the structures of a history file."""

from __future__ import annotations

import asyncio
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rowtide
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_record import history_record

PROPERTIES: dict[str, Any] = {
    "name": "shop",
    "connector.class": "io.debezium.connector.mysql.MySqlConnector",
    "topic.prefix": "shop",
    "database.hostname": "localhost",
    "database.user": "rowtide",
    "database.password": "secret",
    "database.server.id": 5401,
    "offset.storage.file.filename": "offsets.dat",
}
IN_MEMORY = {"schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory"}


@pytest.fixture
def engine() -> rowtide.Engine:
    return rowtide.Engine(PROPERTIES | IN_MEMORY)


def test_a_file_name_for_properties_names_the_way_out() -> None:
    with pytest.raises(TypeError, match=r"properties is a str.*Engine\.from_config reads a file"):
        rowtide.Engine("shop.properties")  # type: ignore[arg-type]


def test_a_history_in_memory_has_no_structures_to_look_up(engine: rowtide.Engine) -> None:
    with pytest.raises(rowtide.SchemaHistoryError, match="connector shop keeps its schema history in memory only"):
        engine.table_at("shop.customers")


def test_lists_and_booleans_are_properties() -> None:
    made = rowtide.Engine(PROPERTIES | IN_MEMORY, table_include_list=["shop.orders", "shop.lines"], include_query=True)
    captures = made.config.capture.tables.captures
    assert [captures("shop", name) for name in ("orders", "lines", "other")] == [True, True, False]
    assert made.config.values.include_query


def test_a_wrong_value_is_a_configuration_error() -> None:
    with pytest.raises(rowtide.ConfigurationError, match=r"database\.password: is None"):
        rowtide.Engine(PROPERTIES | IN_MEMORY, database_password=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("paths", [(), (5,), (PROPERTIES,), (None,)])
def test_from_config_takes_paths(paths: tuple[Any, ...]) -> None:
    with pytest.raises(rowtide.EngineTypeError, match="takes paths of configuration files"):
        rowtide.Engine.from_config(*paths)


@pytest.mark.parametrize("path", ["/nonexistent/x.properties", "/", "a\0b", ""])
def test_a_file_that_cannot_be_read(path: str) -> None:
    with pytest.raises(rowtide.ConfigurationError, match="cannot be read"):
        rowtide.Engine.from_config(path)


@pytest.mark.parametrize("size", ["5", 1.5, None, True])
def test_a_size_of_another_type(engine: rowtide.Engine, size: Any) -> None:
    with pytest.raises(rowtide.EngineTypeError, match="size must be a number, not"):
        engine.get(size=size)


@pytest.mark.parametrize(("size", "timeout"), [(0, None), (-1, None), (1, -1), (1, float("nan"))])
def test_a_number_that_is_too_small(engine: rowtide.Engine, size: int, timeout: float | None) -> None:
    with pytest.raises(rowtide.EngineError, match="must be at least"):
        engine.get(size=size, timeout=timeout)


def test_a_timeout_of_another_type(engine: rowtide.Engine) -> None:
    with pytest.raises(rowtide.EngineTypeError, match="timeout must be a number, not '5'"):
        engine.get(timeout="5")  # type: ignore[arg-type]


def test_an_engine_that_was_not_started(engine: rowtide.Engine) -> None:
    with pytest.raises(rowtide.EngineError, match="was not started"):
        engine.get()
    assert engine.state == "STARTING"
    assert not engine.ended
    assert engine.rollback() == 0
    engine.close()


async def _async_iteration(engine: rowtide.Engine) -> None:
    async for _ in engine:
        pass


@pytest.mark.parametrize(
    "call",
    [
        rowtide.Engine.get,
        rowtide.Engine.start,
        list,
        lambda engine: engine.signal("log"),
        lambda engine: engine.run(print),
        lambda engine: asyncio.run(_async_iteration(engine)),
    ],
)
def test_use_after_close(engine: rowtide.Engine, call: Callable[[rowtide.Engine], Any]) -> None:
    engine.close()
    engine.close()
    with pytest.raises(rowtide.EngineError, match="the engine was closed"):
        call(engine)


@pytest.mark.parametrize("target", [None, "print", 5, rowtide.FileSink, object()])
def test_run_takes_a_function_or_a_sink(engine: rowtide.Engine, target: Any) -> None:
    with pytest.raises(rowtide.EngineTypeError, match=r"run\(\) takes a function, or a sink with the methods"):
        engine.run(target)


def test_capture_takes_a_function() -> None:
    with pytest.raises(rowtide.EngineTypeError, match=r"capture\(\) takes a function"):
        rowtide.capture("shop.properties", "print")  # type: ignore[arg-type]


def test_an_action_is_a_function(engine: rowtide.Engine) -> None:
    with pytest.raises(rowtide.EngineTypeError, match=r"on_signal\(\) takes a function, not 5"):
        engine.on_signal("mine", 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("kind", "data", "signal_id"),
    [
        (5, None, None),
        ("", None, None),
        ("log", "x", None),
        ("log", [1], None),
        ("log", 5, None),
        ("log", {}, 5),
        ("log", {"b": "\ud800"}, None),
    ],
)
def test_what_is_not_a_signal(engine: rowtide.Engine, kind: Any, data: Any, signal_id: Any) -> None:
    with pytest.raises(rowtide.SignalError):
        engine.signal(kind, data, signal_id=signal_id)


def test_data_that_contains_itself_is_not_a_signal(engine: rowtide.Engine) -> None:
    data: dict[str, Any] = {}
    data["itself"] = data
    with pytest.raises(rowtide.SignalError, match="cannot be written as JSON"):
        engine.signal("log", data)


@pytest.fixture
def with_history(tmp_path: Path) -> rowtide.Engine:
    """An engine whose history has a table, to which a column was added."""
    path, tables = tmp_path / "history", Tables(Server(Flavor.MYSQL))
    store = FileSchemaHistory(path)
    for number, sql in enumerate(("CREATE TABLE orders (id INT)", "ALTER TABLE orders ADD name TEXT"), 1):
        place = {"ts_sec": 1_700_000_000 + number, "file": "binlog.000001", "pos": number * 100}
        for change in tables.apply(QueryEvent(sql, "shop")).changes:
            store.append(history_record(change, "shop", place, 5))
    store.close()
    return rowtide.Engine(PROPERTIES, schema_history_internal_file_filename=path)


@pytest.mark.parametrize(
    ("at", "columns"),
    [
        ("end", 2),
        ("binlog.000001:100", 1),
        (1_700_000_001, 1),
        (dt.datetime(2023, 11, 14, 22, 13, 21, tzinfo=dt.UTC), 1),
        (dt.datetime(2023, 11, 14, 22, 13, 22, tzinfo=dt.UTC), 2),
    ],
)
def test_the_structure_of_a_table(with_history: rowtide.Engine, at: Any, columns: int) -> None:
    assert len(with_history.table_at("shop.orders", at).columns) == columns


@pytest.mark.parametrize("name", ["shop.order", "orders", "", "shop.", ".orders", "shop.orders.id"])
def test_an_unknown_table(with_history: rowtide.Engine, name: str) -> None:
    with pytest.raises(rowtide.UnknownTable, match=r"no table .* \(database.table\) at end; it has shop.orders"):
        with_history.table_at(name)


@pytest.mark.parametrize("at", ["tomorrow", "", "binlog:x", -1, True])
def test_a_point_in_time_that_is_none(with_history: rowtide.Engine, at: Any) -> None:
    with pytest.raises(rowtide.InvalidPointInTime, match="invalid point in time"):
        with_history.table_at("shop.orders", at)


@pytest.mark.parametrize(("name", "at"), [(5, "end"), (None, "end"), ("shop.orders", 1.5), ("shop.orders", None)])
def test_a_table_and_a_point_in_time_of_another_type(with_history: rowtide.Engine, name: Any, at: Any) -> None:
    with pytest.raises(rowtide.EngineTypeError, match="table_at takes a table as a string and a point in time"):
        with_history.table_at(name, at)
