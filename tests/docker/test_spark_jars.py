"""The jars in addition to those of pyspark: complete for Delta tables and Kafka, and without duplicates."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from rowtide_stack import spark_jars
from rowtide_stack.programs import catalogue

from tests.support.quick_spark import quick_spark_folder

JOB = """
import sys
from pyspark.sql import SparkSession

jars, folder = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.databricks.delta.snapshotPartitions", "1")
    .config("spark.sql.warehouse.dir", folder)
    .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
    .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    .getOrCreate()
)
spark.range(3).write.format("delta").save(folder + "/table")
print("delta", spark.read.format("delta").load(folder + "/table").count())
try:
    spark.read.format("kafka").load()
except Exception as error:
    print("kafka", "subscribe" in str(error))
spark.stop()
"""


@pytest.mark.nightly  # all tests with Spark use the same jars
@pytest.mark.spark
def test_spark_can_write_delta_tables_and_read_kafka(tmp_path: Path) -> None:
    # In a process of its own, because a running JVM loads no further jars. The error of Kafka's source about a missing
    # option (subscribe) shows that the source is loaded. A pattern, as in the image.
    jars = str(spark_jars()[0].parent / "*.jar")
    environment = {**os.environ, "SPARK_CONF_DIR": quick_spark_folder(tmp_path / "conf")}
    job = [sys.executable, "-c", JOB, jars, str(tmp_path)]
    done = subprocess.run(job, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split("\n")[:2] == ["delta 3", "kafka True"], done.stderr


@pytest.mark.spark
def test_there_are_no_duplicate_libraries() -> None:
    import pyspark

    own = {catalogue._artifact(jar) for jar in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
    extra = [catalogue._artifact(jar) for jar in spark_jars()]
    assert len(set(extra)) == len(extra)
    assert not own & set(extra)
    assert {"delta-spark_4.1_2.13", "spark-sql-kafka-0-10_2.13"} <= set(extra)
