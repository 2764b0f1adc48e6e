"""The name and the directory of a topic's table."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rowtide.spark_consumers.errors import SettingsError

_TARGET = re.compile(r"[\w$-]+(\.[\w$-]+)?")


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table, taken from its topic.

    Attributes:
        topic: the topic's full name.
        database: the part between prefix and table; empty if the topic has none.
        table: the part after the database.
        target: database and name that the table has in the output, if they are others.
    """

    topic: str
    database: str
    table: str
    target: tuple[str, str] | None = None

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.database else self.table

    @property
    def path(self) -> str:
        """The directory of the table, relative to the output."""
        return "/".join(part for part in self.place if part)

    @property
    def place(self) -> tuple[str, str]:
        """Database and name of the table in the output."""
        return self.target or (self.database, self.table)

    def into(self, target: str) -> "TableName":
        """Return the table under another name in the output, ``database.table``.

        Raises:
            SettingsError: the name cannot be used.
        """
        if not _TARGET.fullmatch(target):
            raise SettingsError(
                f"table {self}: into {target!r} is not a table name: expected database.table, of letters, digits, "
                f"_, $ and -"
            )
        database, _, table = target.rpartition(".")
        return replace(self, target=(database, table))

    @property
    def may_have_longer_prefix(self) -> bool:
        """Whether the topic may belong to a connector whose prefix continues the one that was removed.

        ``shop.eu.db.orders`` is table ``db.orders`` of database ``eu`` for the prefix ``shop``, and table ``orders`` of
        database ``db`` for the prefix ``shop.eu``.
        """
        return "." in self.table


def table_name(topic: str, prefix: str | None) -> TableName:
    """Split ``prefix.database.table``. A topic without the prefix is a table without a database.

    Raises:
        SettingsError: the topic's name cannot be used as a directory.
    """
    name = TableName(topic, "", topic)
    if prefix and topic.startswith(prefix + "."):
        database, dot, table = topic[len(prefix) + 1 :].partition(".")
        name = TableName(topic, database, table) if dot else TableName(topic, "", database)
    parts = (name.database or name.table, name.table)
    if any(part in {"", ".", ".."} for part in parts):  # Kafka allows no other character that matters in a path
        raise SettingsError(f"topic {topic} gives no usable directory name; select other topics with --topics")
    return name


def table_topics(prefix: str) -> str:
    """Return a regular expression of the topics of a connector's tables, without its internal topics."""
    return re.escape(prefix) + r"\.[^.]+\..+"


def join(base: str, *parts: str) -> str:
    """Join a path for Hadoop's file systems."""
    return "/".join((base.rstrip("/"), *parts))


def turn_path(state: str, name: TableName, *, is_shared: bool) -> str:
    """Return the lock of a table for :func:`rowtide.spark_consumers.jvm.turns.turn`, in the directory of the state.

    Args:
        state: the directory of the stored offsets.
        name: of the table.
        is_shared: whether several topics have its rows.
    """
    return join(state, f"{'.'.join(part for part in name.place if part) if is_shared else name.topic}~upkeep")


def check_directories(names: Sequence[TableName], output: str, state: str) -> None:
    """Check that the directories of the tables and of the state are apart.

    Deleting or vacuuming a table would otherwise destroy another table, or the stored offsets.

    Raises:
        SettingsError: a directory is, or lies in, another one.
    """
    directories = sorted((_parts(join(output, name.path)), f"table {name} of topic {name.topic}") for name in names)
    stored = (_parts(state), "")
    for path, name in directories:
        if _contains(path, stored[0]) or _contains(stored[0], path):
            raise SettingsError(
                f"{name} needs the directory {'/'.join(path)}, which overlaps with {state}, where offsets are stored: "
                f"choose another directory with --state, or exclude the topic with --topics"
            )
    for (path, name), (inner, other) in pairwise(directories):
        # In this order a directory is followed directly by the first one that lies in it.
        if _contains(path, inner):
            raise SettingsError(
                f"the directories of {name} and {other} overlap: {'/'.join(path)} and {'/'.join(inner)}. "
                f"Build them with separate runs into separate directories (--topics, --output)"
            )


def _parts(path: str) -> tuple[str, ...]:
    return tuple(posixpath.normpath(path).split("/"))


def _contains(directory: tuple[str, ...], path: tuple[str, ...]) -> bool:
    return path[: len(directory)] == directory
