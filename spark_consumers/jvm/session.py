"""The Spark session: packages for Kafka, Avro, Delta Lake and Iceberg, and the settings that conversions depend on."""

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.jvm.collector import parallel_collector

KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.1.1"
DELTA_PACKAGE = "io.delta:delta-spark_4.1_2.13:4.4.0"
AVRO_PACKAGE = "org.apache.spark:spark-avro_2.13:4.1.1"
ICEBERG_PACKAGE = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
"""For the PySpark of pyproject.toml. Of the later versions of Spark, a jar is missing in some mirrors."""

_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

_DEFAULTS = {
    # Queries have about 20 classes for each table, which tables with the same columns share. Spark keeps 100.
    "spark.sql.codegen.cache.maxEntries": "1000",
    # Consumers are cached for a single query, with the records after its last one. Spark keeps them for five minutes,
    # 20 MB for each large table.
    "spark.kafka.consumer.cache.timeout": "5s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "2s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "5s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "2s",
}


def build_session(
    *,
    delta: bool,
    iceberg: bool = False,
    avro: bool = False,
    master: str | None = None,
    jars: str | None = None,
    packages: str | None = None,
    settings: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
) -> SparkSession:
    """Start Spark, or return the session of this process or of ``spark-submit``.

    With ``output``, the output of a Spark that is started here, such as that of package downloads, goes to this file
    instead of standard output and standard error. See :func:`session_settings` for the other arguments, and
    :func:`parallel_collector` for a setting of Java.

    Raises:
        SettingsError: no Java that can run Spark is installed.
    """
    builder = SparkSession.builder.appName("rowtide tables")
    submitted = "PYSPARK_GATEWAY_PORT" in os.environ  # spark-submit has started the driver
    found = session_settings(
        delta=delta,
        iceberg=iceberg,
        avro=avro,
        master=master,
        jars=jars,
        packages=packages,
        settings=settings,
        submitted=submitted,
    )
    starts = not submitted and SparkSession.getActiveSession() is None
    if starts and found.get("spark.master", "local").startswith("local"):
        found |= parallel_collector(found, os.environ, _configuration_folder())
    for name, value in found.items():
        builder = builder.config(name, value)
    try:
        if output is not None and starts:
            conf = SparkConf().setAll(list(found.items())).setAppName("rowtide tables")
            gateway = launch_gateway(conf, {"stdout": output, "stderr": output})  # type: ignore[no-untyped-call]
            SparkContext(conf=conf, gateway=gateway)  # which the builder uses
        return builder.getOrCreate()
    except (PySparkRuntimeError, FileNotFoundError) as error:
        if isinstance(error, PySparkRuntimeError) and error.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SettingsError(
            "Spark did not start. If Java's output names packages that were not found or downloaded, give their files "
            "with --jars. Otherwise, Spark needs Java 17 or newer: install it, for example with apt-get install "
            "openjdk-17-jre-headless, and set JAVA_HOME if java is not on the PATH. --verbose shows Java's output"
        ) from error


def session_settings(
    *,
    delta: bool,
    iceberg: bool = False,
    avro: bool = False,
    master: str | None = None,
    jars: str | None = None,
    packages: str | None = None,
    settings: Mapping[str, str] | None = None,
    submitted: bool = False,
) -> dict[str, str]:
    """Return the settings of the session.

    In local mode Spark's web UI is off: it would listen on all interfaces, without a password.

    Args:
        delta: whether Delta Lake is needed.
        iceberg: whether Iceberg is needed.
        avro: whether Spark's package for Avro is needed.
        master: Spark's master; ``None`` for that of ``spark-submit``, or else ``local[*]``.
        jars: paths of jars, separated by commas; with it nothing is downloaded.
        packages: Maven coordinates that replace the default ones.
        settings: more Spark settings, which take precedence.
        submitted: whether ``spark-submit`` runs this process; its master is then used if there is no other.
    """
    found = {**_DEFAULTS, **({"spark.master": master} if master else {})}
    if jars:
        found["spark.jars"] = jars
    else:
        wanted = ((True, KAFKA_PACKAGE), (delta, DELTA_PACKAGE), (iceberg, ICEBERG_PACKAGE), (avro, AVRO_PACKAGE))
        found["spark.jars.packages"] = packages or ",".join(package for needed, package in wanted if needed)
    more = settings or {}
    if (more.get("spark.master") or master or ("" if submitted else "local[*]")).startswith("local"):
        found["spark.ui.enabled"] = "false"
    return {**found, **(_DELTA_SETTINGS if delta else {}), **more}


def _configuration_folder() -> Path:
    """Return the directory in which Spark's launcher looks for its configuration."""
    home = os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent
    return Path(os.environ.get("SPARK_CONF_DIR") or Path(home) / "conf")


_FIRST_VERSION_SOURCES = "spark.sql.sources.useV1SourceList"

_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_LOG_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
_RECORDS_OF_A_PARTITION = 50_000
_BYTES_OF_A_PARTITION = 64 << 20
_MOST_PARTITIONS = 200
_FEW_RECORDS = 2_000


def is_small(records: int) -> bool:
    """Return whether a batch has so few records that the preparation of its queries takes longer than their work."""
    return records < _FEW_RECORDS


def fit_session(session: SparkSession, records: int, table_bytes: int) -> None:
    """Fit the settings of a session to the size of a batch and of its table.

    For a few rows, Spark's 200 partitions, the compilation of each plan and its adaptation take longer than the work. A
    number of partitions that the user configured stays.
    """
    small = is_small(records) and table_bytes < _BYTES_OF_A_PARTITION
    _set_compilation(session, on=not small)
    session.conf.set("spark.sql.adaptive.enabled", str(not small).lower())
    cores = session.sparkContext.defaultParallelism
    _set_default(session, _SHUFFLE_PARTITIONS, 1 if small else partitions(records, table_bytes, cores))
    _set_default(session, _LOG_PARTITIONS, 1 if small else cores)  # by default, Delta reads its log with 50 tasks


def partitions(records: int, table_bytes: int, cores: int) -> int:
    """Return the number of partitions for a large batch, a multiple of the cores, so that no core is idle."""
    needed = max(records // _RECORDS_OF_A_PARTITION, table_bytes // _BYTES_OF_A_PARTITION, 1)
    return -(-min(_MOST_PARTITIONS, needed) // cores) * cores


@contextmanager
def uncompiled(session: SparkSession) -> Iterator[None]:
    """Run the queries in the context without compilation, for a few rows of a large batch."""
    _set_compilation(session, on=False)
    try:
        yield
    finally:
        _set_compilation(session, on=True)


def _set_compilation(session: SparkSession, *, on: bool) -> None:
    session.conf.set("spark.sql.codegen.wholeStage", str(on).lower())
    session.conf.set("spark.sql.codegen.factoryMode", "FALLBACK" if on else "NO_CODEGEN")


def _set_default(session: SparkSession, name: str, value: int) -> None:
    if not session.sparkContext.getConf().contains(name):
        session.conf.set(name, str(value))


@contextmanager
def configured(session: SparkSession, settings: Mapping[str, str]) -> Iterator[None]:
    """Set settings of a session while the context is open."""
    for name, value in settings.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in settings:
            session.conf.unset(name)


def own_session(spark: SparkSession) -> SparkSession:
    """Return a session of the same application with its own settings.

    Conversions must not depend on the user's settings: times without a zone are read as UTC, and a value that does not
    fit is an error instead of null.
    """
    session = spark.newSession()
    for name, value in spark.conf.getAll.items():  # it has only those catalogs that Spark was started with
        if name.startswith("spark.sql.catalog."):
            session.conf.set(name, value)
            if value.startswith("org.apache.iceberg.spark."):  # another session may change a table that is cached
                session.conf.set(f"{name}.cache-enabled", "false")
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.caseSensitive", "false")
    # The first version of Kafka's source, the default for batches, converts each record to a Java row and back.
    sources = (session.conf.get(_FIRST_VERSION_SOURCES) or "").split(",")
    session.conf.set(_FIRST_VERSION_SOURCES, ",".join(name for name in sources if name.strip().lower() != "kafka"))
    # The cached records are read once or twice: compressing them costs more than it saves. Arrays of more than half a
    # megabyte burden the garbage collector.
    session.conf.set("spark.sql.inMemoryColumnarStorage.compressed", "false")
    session.conf.set("spark.sql.inMemoryColumnarStorage.batchSize", "500")
    session.conf.set("spark.databricks.delta.history.metricsEnabled", "true")  # has the number of rows
    return session


class SessionOfThread(threading.local):
    """Returns the session of the calling thread, with :func:`own_session`'s settings.

    A session takes a tenth of a second to make, and tables that are updated at the same time need different ones.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._session: SparkSession | None = None

    def __call__(self) -> SparkSession:
        if self._session is None:
            self._session = own_session(self._spark)
        return self._session
