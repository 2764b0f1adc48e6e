"""The demo's settings of Spark for few rows, for Sparks in processes of their own: half of the processor time."""

from __future__ import annotations

from pathlib import Path

from rowtide_demo.steps.tables import SMALL

__all__ = ["quick_spark_folder"]


def quick_spark_folder(folder: Path) -> str:
    """Make a folder for ``SPARK_CONF_DIR``, which other processes read."""
    folder.mkdir()
    (folder / "spark-defaults.conf").write_text("".join(f"{name} {value}\n" for name, value in SMALL.items()))
    return str(folder)
