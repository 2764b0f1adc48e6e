"""The garbage collector that Java starts with."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from rowtide.spark_consumers.jvm.collector import parallel_collector

DEFAULT = "spark.driver.defaultJavaOptions"
EXTRA = "spark.driver.extraJavaOptions"
PARALLEL = {DEFAULT: "-XX:+UseParallelGC"}


def test_it_is_the_parallel_one_without_other_settings(tmp_path: Path) -> None:
    assert parallel_collector({}, {}, tmp_path / "missing") == PARALLEL
    (tmp_path / "spark-defaults.conf").write_text(f"spark.driver.memory 4g\n{EXTRA} -Xlog:gc -XX:MaxGCPauseMillis=50\n")
    environment = {"JAVA_TOOL_OPTIONS": "-Xss4m -Duser=a@b", "PYSPARK_SUBMIT_ARGS": "--driver-memory 4g pyspark-shell"}
    assert parallel_collector({EXTRA: "-XX:+UseStringDeduplication"}, environment, tmp_path) == PARALLEL


@pytest.mark.parametrize("flag", ["-XX:+UseG1GC", "-Xmx1g -XX:+UseZGC", "-XX:-UseParallelGC", "-XX:Flags=java.flags"])
@pytest.mark.parametrize(
    "variable", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS", "SPARK_SUBMIT_OPTS", "PYSPARK_SUBMIT_ARGS"]
)
def test_the_collector_of_the_environment_stays(variable: str, flag: str, tmp_path: Path) -> None:
    assert parallel_collector({}, {variable: flag}, tmp_path) == {}


@pytest.mark.parametrize(
    "settings", [{EXTRA: "-XX:+UseSerialGC"}, {DEFAULT: "-XX:+UseG1GC"}, {DEFAULT: "-Dmine=1"}, {EXTRA: "@arguments"}]
)
def test_the_collector_of_the_settings_stays(settings: Mapping[str, str], tmp_path: Path) -> None:
    assert parallel_collector(settings, {}, tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("spark-defaults.conf", f"{EXTRA} -XX:+UseG1GC"),
        ("spark-defaults.conf", f"{DEFAULT}=-Dmine=1"),
        ("java-opts", "-XX:+UseShenandoahGC"),
        ("spark-env.sh", ". ./other.sh"),  # it may set each of the variables
    ],
)
def test_the_collector_of_the_configuration_files_stays(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    assert parallel_collector({}, {}, tmp_path) == {}


@pytest.mark.parametrize("argument", ["--properties-file mine.conf", f"--conf {DEFAULT}=-Dmine=1"])
def test_the_arguments_of_pyspark_stay(argument: str, tmp_path: Path) -> None:
    environment = {"PYSPARK_SUBMIT_ARGS": f"{argument} pyspark-shell"}
    assert parallel_collector({}, environment, tmp_path) == {}


@pytest.mark.spark
def test_spark_starts_java_with_it_and_the_options_of_the_user() -> None:
    import pyspark

    jars = Path(pyspark.__file__).parent / "jars"
    launcher = ["java", "-cp", f"{jars}/*", "org.apache.spark.launcher.Main", "org.apache.spark.deploy.SparkSubmit"]
    settings = {**PARALLEL, EXTRA: "-Dmine=1"}
    arguments = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
    environment = {**os.environ, "SPARK_HOME": str(jars.parent), "SPARK_SCALA_VERSION": "2.13"}
    command = subprocess.run(
        [*launcher, *arguments, "pyspark-shell"], env=environment, check=True, capture_output=True, text=True
    ).stdout.split("\0")
    java = command[: command.index("org.apache.spark.deploy.SparkSubmit")]
    assert java.index("-XX:+UseParallelGC") < java.index("-Dmine=1")
