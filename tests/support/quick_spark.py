"""Settings of Spark for tests, whose tables are small: it starts sooner, and needs half of the processor time."""

from __future__ import annotations

from pathlib import Path

__all__ = ["QUICK_SPARK", "quick_spark_folder"]

QUICK_SPARK = {
    # Compiling a plan takes longer than running it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def quick_spark_folder(folder: Path) -> str:
    """Make a folder for ``SPARK_CONF_DIR``, which other processes read."""
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in QUICK_SPARK.items()))
    return str(folder)
