"""The settings of the Spark session."""

import io
import re
from typing import Never

import pytest
from pyspark.errors import PySparkRuntimeError
from rowtide_stack.programs.catalogue import SPARK_PACKAGES

from rowtide.spark_consumers.errors import SettingsError
from rowtide.spark_consumers.jvm import session as sessions
from rowtide.spark_consumers.jvm.session import fit_session, own_session, partitions, session_settings, uncompiled
from tests.support.pages import PAGES

UI = "spark.ui.enabled"


@pytest.mark.parametrize(
    ("master", "submitted", "settings", "ui"),
    [
        (None, False, {}, "false"),
        ("local[*]", False, {}, "false"),
        ("local", True, {}, "false"),
        (None, False, {"spark.master": "local[4]"}, "false"),
        ("local[2]", False, {UI: "true"}, "true"),
        (None, True, {}, None),  # the master is that of spark-submit
        ("spark://h:7077", False, {}, None),
        (None, False, {"spark.master": "yarn"}, None),
    ],
)
def test_the_web_ui_is_off_in_local_mode(
    master: str | None, submitted: bool, settings: dict[str, str], ui: str | None
) -> None:
    assert session_settings(delta=False, master=master, submitted=submitted, settings=settings).get(UI) == ui


def test_a_java_that_ends_may_have_lacked_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    def end(*_: object) -> Never:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.delenv("PYSPARK_GATEWAY_PORT", raising=False)
    monkeypatch.setattr(sessions.SparkSession, "getActiveSession", lambda: None)
    monkeypatch.setattr(sessions, "launch_gateway", end)
    with pytest.raises(SettingsError, match=r"or downloaded, give their files with --jars\..*needs Java 17 or newer"):
        sessions.build_session(delta=True, output=io.BytesIO())


def test_jars_replace_packages() -> None:
    assert "spark.jars.packages" not in session_settings(delta=True, jars="a.jar")
    assert session_settings(delta=True, packages="x:y:1")["spark.jars.packages"] == "x:y:1"
    assert "delta" in session_settings(delta=True)["spark.jars.packages"]


def test_the_packages_are_those_of_the_tests_and_of_the_page() -> None:
    packages = set(session_settings(delta=True, iceberg=True, avro=True)["spark.jars.packages"].split(","))
    assert packages == set(SPARK_PACKAGES)
    assert packages == set(re.findall(r"`([\w.]+:[\w.-]+:[\w.]+)`", PAGES["spark"]))


@pytest.mark.spark
def test_plans_are_compiled_for_many_records_or_a_large_table_only(spark) -> None:
    own = spark.newSession()
    compiled = []
    for records, table_bytes in [(1_999, 0), (2_000, 0), (1, 64 << 20), (0, (64 << 20) - 1)]:
        fit_session(own, records, table_bytes)
        compiled.append(own.conf.get("spark.sql.codegen.wholeStage"))
        assert own.conf.get("spark.sql.shuffle.partitions") == "2"  # as the session was configured
    assert compiled == ["false", "true", "true", "false"]


@pytest.mark.parametrize(
    ("records", "table_bytes", "cores", "expected"),
    [
        (2_000, 0, 2, 2),
        (150_000, 0, 2, 4),
        (199_999, 0, 1, 3),
        (0, 5 << 26, 4, 8),
        (10**9, 0, 8, 200),
        (10**9, 0, 64, 256),
    ],
)
def test_all_cores_work_on_the_partitions_of_a_batch(records, table_bytes, cores, expected) -> None:
    assert partitions(records, table_bytes, cores) == expected


@pytest.mark.spark
def test_queries_of_a_few_rows_are_not_compiled(spark) -> None:
    names = ("spark.sql.codegen.wholeStage", "spark.sql.codegen.factoryMode")
    own = spark.newSession()
    fit_session(own, 2_000, 0)
    with uncompiled(own):
        inside = [own.conf.get(name) for name in names]
    assert inside == ["false", "NO_CODEGEN"]
    assert [own.conf.get(name) for name in names] == ["true", "FALLBACK"]


@pytest.mark.spark
def test_kafka_is_read_by_its_source_of_the_second_version_and_nothing_else_is(spark) -> None:
    name = "spark.sql.sources.useV1SourceList"
    theirs = spark.newSession()
    before, after = (session.conf.get(name).split(",") for session in (theirs, own_session(theirs)))
    assert "kafka" in before
    assert after == [source for source in before if source != "kafka"]
    options = {"kafka.bootstrap.servers": "127.0.0.1:9", "subscribe": "t"}
    plans = []
    for session in (theirs, own_session(theirs)):
        frame = session.read.format("kafka").options(**options).load()
        plans.append(frame._jdf.queryExecution().analyzed().toString())
    assert ["RelationV2" in plan for plan in plans] == [False, True]
