"""What the user decides about a run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Keyless(StrEnum):
    """What becomes of changes of a table without key.

    ``apply``: an insert adds a row, a delete removes one row that equals the old image, an update does both; the table
    equals MySQL's. ``append``: each change is a row of its own, with the columns of :data:`CHANGE_COLUMNS`.
    """

    APPLY = "apply"
    APPEND = "append"


CHANGE_COLUMNS = (
    ("__op", "string"),
    ("__source_ts_ms", "bigint"),
    ("__source_file", "bigint"),
    ("__source_pos", "bigint"),
    ("__source_row", "int"),
)
"""Columns of a table of changes: operation, time, number of the binlog file, position and row in it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of a run.

    Attributes:
        output: directory above all tables.
        state: directory of the remembered offsets.
        prefix: the connector's ``topic.prefix``, which is left out of tables' names.
        format: name of a :class:`rowtide.spark_consumers.formats.TableFormat`.
        keyless: see :class:`Keyless`.
        max_records: at most so many records of each partition in one batch; ``None`` reads all at once.
        numeric_decimals: ``decimal.format=NUMERIC`` of the connector's JsonConverter.
        schemas: Connect schemas of topics whose messages have none: ``{topic: {"key": ..., "value": ...}}``.
        parallel: tables at a time.
    """

    output: str
    state: str
    prefix: str | None = None
    format: str = "delta"
    keyless: Keyless = Keyless.APPLY
    max_records: int | None = None
    numeric_decimals: bool = False
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    parallel: int = 2
