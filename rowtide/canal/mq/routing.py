"""The topics and partitions of Canal's messages, as Canal 1.1.7 chooses them (``MQMessageUtils``). Pure.

The rules are lists, separated by ``,`` or ``;`` without blanks around the items. The first item that matches counts:

============================  ==============================  ===================================================
``dynamicTopic``              ``TABLES`` or ``TOPIC:TABLES``  the topic is the name that matches, or ``TOPIC``
``partitionHash``             ``TABLES[:COLUMN^COLUMN]``      hashed: the name of the table, or values of columns
``dynamicTopicPartitionNum``  ``TOPICS:NUMBER``               partitions of topics, instead of ``partitionsNum``
============================  ==============================  ===================================================

``TABLES`` is a name, or a regular expression if it has one of the characters of ``_SPECIAL``.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rowtide.canal.entries.entry import Absent, Entry, EntryColumn, EventType, RowChange, Values
from rowtide.topics.java_regex import compile_java

PRIMARY_KEY = "$pk$"
_SPECIAL = frozenset("*?+|(){}[]\\$^")
_INT = 0xFFFF_FFFF
_NEGATIVE = 0x8000_0000

Matcher = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Routes:
    """The properties ``canal.mq.*`` of a destination, and ``canal.mq.database.hash``.

    Attributes:
        topic: the topic of entries without another topic.
        partition: the partition of all messages without ``partition_hash``.
        partitions: the number of partitions to hash to.
        partition_hash: the values to hash.
        dynamic_topic: topics by tables.
        dynamic_partitions: numbers of partitions by topics.
        database_hash: whether the name of the database is hashed with the values of columns.
    """

    topic: str
    partition: int = 0
    partitions: int = 1
    partition_hash: str = ""
    dynamic_topic: str = ""
    dynamic_partitions: str = ""
    database_hash: bool = True


@dataclass(frozen=True, slots=True)
class _Hash:
    """The values of a table that are hashed.

    Attributes:
        table: its name.
        key: the columns of its primary key.
        columns: columns by their names.
    """

    table: bool = False
    key: bool = False
    columns: tuple[str, ...] = ()


class Router:
    """Chooses topics and partitions.

    Args:
        routes: the rules.

    Raises:
        InvalidPatternError: a regular expression is invalid.
        ValueError: a topic has no partitions.
    """

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._topics = [_topic_rule(item) for item in _items(routes.dynamic_topic)]
        self._hashes = [_hash_rule(item) for item in _items(routes.partition_hash)]
        self._partitions = [rule for item in _items(routes.dynamic_partitions) if (rule := _partitions_rule(item))]
        self._topic_of: dict[tuple[str, str], str] = {}
        self._hash_of: dict[tuple[str, str], _Hash | None] = {}

    @property
    def transactions(self) -> bool:
        """Whether the bounds of transactions have messages: only if all entries go to one partition."""
        return not self._topics and not self._hashes

    def topic(self, database: str, table: str) -> str:
        """Return the topic of an entry."""
        if not self._topics:
            return self._routes.topic
        found = self._topic_of.get((database, table))
        if found is None:
            found = self._topic_of[database, table] = self._find_topic(database, table).replace(".", "_")
        return found

    def _find_topic(self, database: str, table: str) -> str:
        if database and table:
            for name in (f"{database}.{table}", database):
                for topic, matches in self._topics:
                    if matches(name):
                        return topic or name.lower()
        return self._routes.topic

    def partitions(self, topic: str) -> int:
        """Return how many partitions of a topic are used: all that are hashed to, or those up to the only one."""
        if not self._hashes:
            return self._routes.partition + 1
        return next((number for matches, number in self._partitions if matches(topic)), self._routes.partitions)

    def places(self, entry: Entry, topic: str, *, exact_names: bool) -> int | Sequence[int]:
        """Return the partition of an entry, or one for each of its rows.

        Args:
            entry: the entry.
            topic: its topic.
            exact_names: whether the case of column names counts, as it does for FlatMessages. A column that is named
                twice then counts twice, which hashes to 0.
        """
        content = entry.content
        if not self._hashes:
            return self._routes.partition
        if not isinstance(content, RowChange):
            return 0
        database, table = entry.header.database or "", entry.header.table or ""
        rule = self._rule(database, table)
        if rule is None:
            return 0
        number = self.partitions(topic)
        if rule.table:
            return _partition(java_hash(table), number)
        start = java_hash(database) if self._routes.database_hash else 0
        columns = _hashed_columns(rule, content.columns, exact_names=exact_names)
        return [_partition(_row_hash(start, columns, _image(content, row)), number) for row in content.rows]

    def _rule(self, database: str, table: str) -> _Hash | None:
        known = database, table
        if known not in self._hash_of:
            name = f"{database}.{table}"
            self._hash_of[known] = next((rule for rule, matches in self._hashes if matches(name)), None)
        return self._hash_of[known]


def java_hash(text: str) -> int:
    """Return ``String.hashCode()`` as an unsigned number of 32 bits."""
    code = 0
    for unit in memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H"):
        code = (31 * code + unit) & _INT
    return code


def _partition(code: int, number: int) -> int:
    signed = code - (_INT + 1) if code & _NEGATIVE else code
    return abs(signed) % number


def _hashed_columns(rule: _Hash, columns: Sequence[EntryColumn], *, exact_names: bool) -> list[int]:
    if rule.key:
        return [column.index for column in columns if column.key]
    if exact_names:
        places = {column.name: column.index for column in columns}
        return [places[name] for name in rule.columns if name in places]
    names = {name.lower() for name in rule.columns}
    return [column.index for column in columns if column.name.lower() in names]


def _image(change: RowChange, row: tuple[Values | None, Values | None]) -> Values:
    before, after = row
    return (before if change.type is EventType.DELETE else after) or ()


def _row_hash(code: int, columns: Sequence[int], image: Values) -> int:
    for index in columns:
        value = image[index]
        if value and not isinstance(value, Absent):
            code ^= java_hash(value)
    return code


def _items(rules: str) -> list[str]:
    return [item for item in re.split("[,;]", rules) if item]


def _matcher(name: str) -> Matcher:
    """Return a matcher of names that ignores case."""
    if not _SPECIAL.intersection(name):
        folded = name.lower()
        return lambda text: text.lower() == folded
    pattern = compile_java(name, ignore_case=True)
    return lambda text: pattern.fullmatch(text) is not None


def _topic_rule(item: str) -> tuple[str, Matcher]:
    """Return the topic (empty for the matching name) and the matcher of tables or, if there is none, of databases."""
    topic, colon, tables = item.partition(":")
    tables = tables.strip() if colon else item
    matches = _matcher(tables)
    if _SPECIAL.intersection(tables):
        of_tables = "\\." in tables
        return (topic.strip() if colon else ""), lambda name: ("." in name) == of_tables and matches(name)
    return (topic.strip() if colon else ""), matches


def _hash_rule(item: str) -> tuple[_Hash, Matcher]:
    tables, colon, columns = item.rpartition(":")
    if not colon or not tables:
        return _Hash(table=True), _matcher(item)
    if columns.lower() == PRIMARY_KEY:
        return _Hash(key=True), _matcher(tables)
    return _Hash(columns=tuple(name for name in columns.split("^") if name)), _matcher(tables)


def _partitions_rule(item: str) -> tuple[Matcher, int] | None:
    """Return the matcher of topics, and the number; ``None`` for an item without a number, as in Canal."""
    topics, _, number = item.rpartition(":")
    if not (topics and number.isascii() and number.isdigit()):
        return None
    if int(number) == 0:
        raise ValueError(f"the number of partitions must be at least 1 in {item!r}")
    return _matcher(topics), int(number)
