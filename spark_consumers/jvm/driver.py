"""Access to the Java side of Spark's driver: the only module that uses private parts of PySpark."""

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, Observation, SparkSession

from rowtide.spark_consumers.errors import SettingsError

_OBSERVATION_WAIT_S = 5.0


def java_class(spark: SparkSession, name: str) -> Any:
    """Return a class of the driver's Java by its full name: of Kafka's client, Hadoop's file systems, Delta Lake.

    The full name is looked up in one step: attribute by attribute, Java would search all jars for a class ``org``, for
    ``org.apache`` and so on. A class that Java lacks is returned as a package, and a call of it raises ``TypeError``.

    Raises:
        SettingsError: the session is one of Spark Connect, which gives no access to its driver.
    """
    jvm = getattr(spark, "_jvm", None)
    if jvm is None:
        raise SettingsError(
            "rowtide tables needs a classic Spark session: Spark Connect gives no access to its driver. Run it on the "
            "cluster, by spark-submit or in a job"
        )
    return getattr(jvm, name)


def hadoop_configuration(spark: SparkSession) -> Any:
    """Return Hadoop's configuration: file systems and their credentials."""
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001


def java_session(spark: SparkSession) -> Any:
    """Return the session's Java object."""
    return spark._jsparkSession  # noqa: SLF001


def activate(spark: SparkSession) -> None:
    """Make Java code that this thread calls directly use the session's settings, as the session's queries do."""
    java_class(spark, "org.apache.spark.sql.SparkSession").setActiveSession(java_session(spark))


def scala_sequence(spark: SparkSession, items: Iterable[Any]) -> Any:
    """Return a Scala sequence."""
    found = java_class(spark, "java.util.ArrayList")()
    for item in items:
        found.add(item)
    return java_class(spark, "scala.jdk.javaapi.CollectionConverters").asScala(found).toSeq()


def observe(frame: DataFrame, *metrics: Column) -> tuple[DataFrame, Callable[[], Mapping[str, Any] | None]]:
    """Compute metrics of a frame's rows while another query uses them.

    Returns:
        The frame to use, and a function that returns the metrics of its first query, which must have ended; ``None``
        if Spark has lost them. They arrive through a queue, which drops events when it is full:
        ``Observation.get`` would then wait forever.
    """
    observation = Observation()
    used = frame.observe(observation, *metrics)
    java: Any = observation._jo  # noqa: SLF001

    def found() -> Mapping[str, Any] | None:
        until = time.monotonic() + _OBSERVATION_WAIT_S
        while not java.future().isCompleted():
            if time.monotonic() > until:
                return None
            time.sleep(0.01)
        return observation.get

    return used, found


def text_with_causes(error: Exception) -> str:
    """Return the message of a Spark error and those of its causes in Java."""
    return f"{error}\n{getattr(error, '_stackTrace', '')}"
