"""The Java side of Spark's driver: the one place that uses what PySpark keeps to itself."""

from typing import Any

from pyspark.sql import SparkSession

from rowtide.spark_consumers.errors import SettingsError


def driver(spark: SparkSession) -> Any:
    """The driver's Java classes, for Kafka's client, Hadoop's file systems and Delta Lake.

    Raises:
        SettingsError: a Spark Connect session has no driver in reach.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise SettingsError("rowtide tables needs a classic Spark session: Spark Connect gives no access to its driver")
    return jvm


def hadoop_configuration(spark: SparkSession) -> Any:
    """Hadoop's settings: file systems and their credentials."""
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001


def java_session(spark: SparkSession) -> Any:
    """The session as Java has it."""
    return spark._jsparkSession  # noqa: SLF001
