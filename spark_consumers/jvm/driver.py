"""Access to the Java side of Spark's driver: the only module that uses private parts of PySpark."""

from typing import Any

from pyspark.sql import SparkSession

from rowtide.spark_consumers.errors import SettingsError


def driver(spark: SparkSession) -> Any:
    """Return the root of the driver's Java classes: Kafka's client, Hadoop's file systems, Delta Lake.

    Raises:
        SettingsError: the session is one of Spark Connect, which gives no access to its driver.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise SettingsError("rowtide tables needs a classic Spark session: Spark Connect gives no access to its driver")
    return jvm


def hadoop_configuration(spark: SparkSession) -> Any:
    """Return Hadoop's configuration: file systems and their credentials."""
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001


def java_session(spark: SparkSession) -> Any:
    """Return the session's Java object."""
    return spark._jsparkSession  # noqa: SLF001
