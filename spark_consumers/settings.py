"""The settings of a run of ``rowtide tables``."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rowtide.spark_consumers.columns.unavailable import DEFAULT_PLACEHOLDER

SchemaOf = Callable[[int | bytes], tuple[str, str]]
"""From the id of a schema, or its global id, to its kind (``AVRO``, ``PROTOBUF``) and its text."""

StructuresOf = Callable[[str], Sequence[Mapping[str, int]]]
"""From a topic to the structures of its table, oldest first: the identity of each column by its name in records.

Raises ``SettingsError`` if there is no schema history, and ``HistoryError`` if it cannot be read now.
"""


class Keyless(StrEnum):
    """How changes of a table without a key are stored.

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
"""The additional columns of ``append``: operation, time, number of the binlog file, position and row in it."""


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a run.

    Attributes:
        output: directory of all tables.
        state: directory of the stored offsets.
        prefix: the connector's ``topic.prefix``, which table names do not include.
        format: name of a :class:`rowtide.spark_consumers.formats.TableFormat`.
        keyless: see :class:`Keyless`.
        max_records: limit of the records of one partition in a batch; ``None`` reads all in one batch.
        numeric_decimals: ``decimal.format=NUMERIC`` of the connector's JsonConverter.
        schemas: Connect schemas of topics whose messages have none: ``{topic: {"key": ..., "value": ...}}``.
        unavailable_placeholder: ``unavailable.value.placeholder`` of the connector, in bytes.
        parallel: number of tables that are updated at the same time.
        claim_checks: the folder of values that are too large for Kafka; ``None`` refuses their records.
        catalog: the catalog of Spark that has the tables (Iceberg); ``None`` puts them into the output.
        table_properties: properties of new tables (Delta Lake, Iceberg).
        registry: the schema registry of messages in Avro and Protobuf; raises ``RegistryError``. The source must then
            have the headers of records.
        structures: the schema history, which proves renames of columns; ``None`` adds columns instead.
    """

    output: str
    state: str
    prefix: str | None = None
    format: str = "delta"
    keyless: Keyless = Keyless.APPLY
    max_records: int | None = None
    numeric_decimals: bool = False
    schemas: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    unavailable_placeholder: bytes = DEFAULT_PLACEHOLDER
    parallel: int = 2
    claim_checks: str | None = None
    catalog: str | None = None
    table_properties: Mapping[str, str] = field(default_factory=dict)
    registry: SchemaOf | None = None
    structures: StructuresOf | None = None
