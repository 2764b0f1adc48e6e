"""From a topic to its table's name and place."""

import re
from dataclasses import dataclass

from rowtide.spark_consumers.errors import SettingsError


@dataclass(frozen=True, slots=True)
class TableName:
    """A table as it is called in a topic's name.

    Attributes:
        topic: the whole topic.
        database: the part between prefix and table; empty for a topic without one.
        table: what follows the database.
    """

    topic: str
    database: str
    table: str

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.database else self.table

    @property
    def path(self) -> str:
        """Relative directory of the table, with ``/`` between its parts."""
        return f"{self.database}/{self.table}" if self.database else self.table


def table_name(topic: str, prefix: str | None) -> TableName:
    """Split ``prefix.database.table``; a topic that does not begin with the prefix is a table without database.

    Raises:
        SettingsError: the topic gives no usable directory name.
    """
    name = TableName(topic, "", topic)
    if prefix and topic.startswith(prefix + "."):
        database, dot, table = topic[len(prefix) + 1 :].partition(".")
        name = TableName(topic, database, table) if dot else TableName(topic, "", database)
    parts = (name.database or name.table, name.table)
    if any(part in {"", ".", ".."} for part in parts):  # Kafka allows no other character that a path minds
        raise SettingsError(f"topic {topic} gives no usable directory name; name the topics with --topics")
    return name


def table_topics(prefix: str) -> str:
    """Regular expression of the per-table topics of a connector: not its schema changes, transactions or heartbeats."""
    return re.escape(prefix) + r"\.[^.]+\..+"


def join(base: str, *parts: str) -> str:
    """A path below another one, for Hadoop's file systems."""
    return "/".join((base.rstrip("/"), *parts))
