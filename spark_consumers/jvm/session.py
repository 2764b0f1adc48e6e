"""A Spark session that can read Kafka and write Delta Lake."""

from collections.abc import Mapping

from pyspark.sql import SparkSession

KAFKA_PACKAGE = "org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.0"
DELTA_PACKAGE = "io.delta:delta-spark_2.13:4.0.0"
"""Newer ones do not resolve everywhere: the token provider of later Kafka packages is missing in places."""

_DELTA_SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}


def build_session(
    *,
    delta: bool,
    master: str | None = None,
    jars: str | None = None,
    packages: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """Start Spark, or take the session that is there (under ``spark-submit``).

    Args:
        delta: whether Delta Lake is needed.
        master: Spark's master; ``None`` leaves it to ``spark-submit``, else ``local[*]``.
        jars: paths of jars, separated by commas; with it nothing is downloaded.
        packages: Maven coordinates instead of the usual ones.
        settings: more Spark settings; they win.
    """
    builder = SparkSession.builder.appName("rowtide tables")
    if master:
        builder = builder.master(master)
    if jars:
        builder = builder.config("spark.jars", jars)
    else:
        usual = ",".join([KAFKA_PACKAGE, *([DELTA_PACKAGE] if delta else [])])
        builder = builder.config("spark.jars.packages", packages or usual)
    for name, value in {**(_DELTA_SETTINGS if delta else {}), **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


_LOG_PARTITIONS = "spark.databricks.delta.snapshotPartitions"
_RECORDS_OF_A_PARTITION = 50_000
_BYTES_OF_A_PARTITION = 64 << 20
_MOST_PARTITIONS = 200


def fit_partitions(session: SparkSession, records: int, table_bytes: int) -> None:
    """Let shuffles have as many partitions as the work is worth: 200 for a handful of rows take longer than the rows.

    A number that the user gave Spark stays.
    """
    name = "spark.sql.shuffle.partitions"
    if session.sparkContext.getConf().contains(name):
        return
    wanted = max(records // _RECORDS_OF_A_PARTITION, table_bytes // _BYTES_OF_A_PARTITION)
    session.conf.set(name, str(min(_MOST_PARTITIONS, max(session.sparkContext.defaultParallelism, wanted))))


def own_session(spark: SparkSession) -> SparkSession:
    """A session of the same application with settings of its own.

    Conversions must not depend on the user's settings: times without a zone are read as UTC, and a value that does not
    fit is an error, not null.
    """
    session = spark.newSession()
    session.conf.set("spark.sql.session.timeZone", "UTC")
    session.conf.set("spark.sql.ansi.enabled", "true")
    session.conf.set("spark.sql.caseSensitive", "false")
    if not session.sparkContext.getConf().contains(_LOG_PARTITIONS):
        # Delta's own log: 50 tasks at each commit unless it is told.
        session.conf.set(_LOG_PARTITIONS, str(session.sparkContext.defaultParallelism))
    # What is merged is in Spark's cache already, and reading the same offsets again gives the same rows.
    session.conf.set("spark.databricks.delta.merge.materializeSource", "none")
    return session
