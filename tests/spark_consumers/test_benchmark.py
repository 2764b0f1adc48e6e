"""The benchmark of tables with few rows: rowtide and the plain job have the same result."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.spark


@pytest.mark.nightly
def test_both_jobs_apply_the_same_changes(spark, rows_of, tmp_path: Path) -> None:
    from tests.bench.tables import Bench
    from tests.support.recordings.recorded_tables import same_rows

    bench = Bench(tmp_path)
    bench.batch(spark, 300, rounds=1)
    rows = rows_of(str(tmp_path / "batch/t"))
    assert len(rows) == 300
    assert len({row["text_0"] for row in rows}) == 300
    for other in ("plain-batch", "vectors/t"):
        same_rows(rows, rows_of(str(tmp_path / other)))
    assert set(bench.figures) == {"table of 3 rows, rowtide"} | {
        f"1 % of 300 rows, {where}, {job}"
        for where in ("anywhere", "newest")
        for job in ("plain", "rowtide", "rowtide, deletion vectors")
    }


@pytest.mark.nightly
@pytest.mark.servers
def test_both_jobs_build_the_same_table_in_processes_of_their_own(
    kafka, rows_of, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.bench.table_jobs import TableJob
    from tests.bench.tables import create_topics, produce
    from tests.support.quick_spark import quick_spark_folder
    from tests.support.recordings.recorded_tables import same_rows

    monkeypatch.setenv("SPARK_CONF_DIR", quick_spark_folder(tmp_path / "conf"))
    create_topics(kafka, ["built"])
    produce(kafka, ["built"], "r", 20)
    for name in ("plain", "rowtide"):
        with TableJob(name, kafka.bootstrap) as job:
            assert job.run(["built"], str(tmp_path / name)).cpu_s > 0
    rows = rows_of(str(tmp_path / "rowtide/built"))
    assert [row["number_0"] for row in sorted(rows, key=lambda row: row["id"])] == list(range(20))
    same_rows(rows, rows_of(str(tmp_path / "plain/built")))
