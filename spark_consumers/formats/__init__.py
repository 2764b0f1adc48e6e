"""Table formats. Each is a :class:`TableFormat`; ``FORMATS`` lists them by their names for ``--format``."""

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from rowtide.spark_consumers.formats.base import TableFormat
from rowtide.spark_consumers.formats.delta import DeltaFormat
from rowtide.spark_consumers.formats.iceberg import IcebergFormat
from rowtide.spark_consumers.formats.parquet import ParquetFormat
from rowtide.spark_consumers.settings import Settings

FORMATS: Mapping[str, Callable[[SparkSession, Settings], TableFormat]] = {
    "delta": DeltaFormat,
    "iceberg": IcebergFormat,
    "parquet": ParquetFormat,
}

__all__ = ["FORMATS", "TableFormat"]
