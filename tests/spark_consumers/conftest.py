"""One Spark session for all tests, with settings for a quick start."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

HERE = Path(__file__).parent

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rowtide.spark_consumers.outcome import Outcome
    from tests.support.recordings.recorded_tables import Recorded


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ignore the sockets that PySpark leaves to the garbage collector after each collect()."""
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("spark"):
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))


@pytest.fixture(autouse=True)
def _sockets_of_this_test(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect the garbage while the warning is filtered."""
    yield
    if request.node.get_closest_marker("spark"):
        gc.collect()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from rowtide_demo.steps.tables import SMALL
    from rowtide_stack import spark_jars

    from rowtide.spark_consumers.jvm.session import build_session

    session = build_session(
        delta=True,
        master="local[2]",
        jars=",".join(map(str, spark_jars())),
        settings={
            **SMALL,
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.databricks.delta.snapshotPartitions": "1",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        },
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture(scope="session")
def frame_of(spark: SparkSession) -> Callable[[list[Recorded]], DataFrame]:
    """Return a function that returns records like the Kafka source."""
    import pyarrow as pa

    schema = pa.schema(
        {"topic": pa.string(), "partition": pa.int32(), "offset": pa.int64(), "key": pa.binary(), "value": pa.binary()}
    )

    def make(records: list[Recorded]) -> DataFrame:
        columns = {name: [getattr(record, name) for record in records] for name in schema.names}
        for name in ("key", "value"):
            columns[name] = [None if text is None else text.encode() for text in columns[name]]
        # Spark reads Arrow's memory itself. Each task that reads a list of Python needs a process of Python.
        return spark.createDataFrame(pa.table(columns, schema))

    return make


@pytest.fixture(scope="session")
def rows_of(spark: SparkSession) -> Callable[..., list[dict[str, Any]]]:
    """Return a function that reads a table's rows with the Python values of :func:`recorded_tables.value`."""

    def read(path: str, table_format: str = "delta") -> list[dict[str, Any]]:
        frame = spark.read.format(table_format).load(path)
        columns = []
        for found in frame.schema.fields:
            name = "`" + found.name.replace("`", "``") + "`"
            zoned = found.dataType.simpleString() == "timestamp"
            columns.append(f"unix_micros({name}) AS {name}" if zoned else name)
        return [
            {name.lower(): _plain(value) for name, value in row.asDict(recursive=True).items()}
            for row in frame.selectExpr(*columns).collect()
        ]

    return read


@pytest.fixture
def run(
    spark: SparkSession, frame_of: Callable[[list[Recorded]], DataFrame], tmp_path: Path
) -> Callable[..., dict[str, Outcome]]:
    """Return a function that brings the tables of some records up to date and returns the outcomes by topic."""

    def update(records: list[Recorded], *, first: int = 0, **settings: Any) -> dict[str, Outcome]:
        from rowtide.spark_consumers.job import update_tables
        from rowtide.spark_consumers.settings import Settings
        from tests.support.frame_source import FrameSource

        kept = [record for record in records if record.offset >= first]
        outcomes = update_tables(
            spark, FrameSource(frame_of(kept)), Settings(str(tmp_path), str(tmp_path / "_rowtide"), **settings), ".*"
        )
        return {outcome.name.topic: outcome for outcome in outcomes}

    return update


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return {name: _plain(part) for name, part in value.items()} if isinstance(value, dict) else value
