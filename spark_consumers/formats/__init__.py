"""The ways in which a table can be stored. A format is a :class:`TableFormat`; ``FORMATS`` lists those there are."""

from collections.abc import Callable, Mapping

from pyspark.sql import SparkSession

from rowtide.spark_consumers.formats.base import TableFormat
from rowtide.spark_consumers.formats.delta import DeltaFormat
from rowtide.spark_consumers.formats.parquet import ParquetFormat

FORMATS: Mapping[str, Callable[[SparkSession], TableFormat]] = {"delta": DeltaFormat, "parquet": ParquetFormat}

__all__ = ["FORMATS", "TableFormat"]
