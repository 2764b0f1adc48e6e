"""Access to the Java side of Spark's driver: the only module that uses private parts of PySpark."""

from typing import Any

from pyspark.sql import SparkSession

from rowtide.spark_consumers.errors import SettingsError


def java_class(spark: SparkSession, name: str) -> Any:
    """Return a class of the driver's Java by its full name: of Kafka's client, Hadoop's file systems, Delta Lake.

    The full name is looked up at once: attribute by attribute, Java would search all jars for a class ``org``, for
    ``org.apache`` and so on. A class that Java lacks is returned as a package, and a call of it raises ``TypeError``.

    Raises:
        SettingsError: the session is one of Spark Connect, which gives no access to its driver.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise SettingsError("rowtide tables needs a classic Spark session: Spark Connect gives no access to its driver")
    return getattr(jvm, name)


def hadoop_configuration(spark: SparkSession) -> Any:
    """Return Hadoop's configuration: file systems and their credentials."""
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001


def java_session(spark: SparkSession) -> Any:
    """Return the session's Java object."""
    return spark._jsparkSession  # noqa: SLF001
