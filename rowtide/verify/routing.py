"""The topics of a table's records, which transforms may change. Pure."""

import ast
from collections.abc import Sequence
from dataclasses import dataclass

from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.transforms import connect_record
from rowtide.connector.snapshot.incremental.keys.deletions import key_row
from rowtide.connector.snapshot.records import SnapshotTable
from rowtide.envelope.transforms import ConnectRecord, TransformError
from rowtide.envelope.transforms.chain import ConditionalTransform, Plugin, TransformChain
from rowtide.envelope.transforms.logical_table_router import ByLogicalTableRouter
from rowtide.envelope.transforms.python_hook import PythonTransform
from rowtide.envelope.transforms.routing import RegexRouter, TopicNameMatches
from rowtide.envelope.transforms.scripting import ContentBasedRouter

_VARIANTS = 8
"""This many rows with different values show whether a Python transform chooses the topic by the row."""


@dataclass(frozen=True, slots=True)
class Routing:
    """The topics of a table's records.

    Attributes:
        topics: those of every row; none if the row determines them.
        by: the transform by which the row determines them; ``""`` if all rows have the same topics.
    """

    topics: Sequence[str]
    by: str = ""


def routing(table: SnapshotTable, plugins: Sequence[Plugin]) -> Routing:
    """Return the topics of a table's records.

    Args:
        table: makes the records.
        plugins: the configurations of the transforms, in their order.
    """
    settings = table.settings.transforms
    if settings is None or not any(plugin.may_rename_topics for plugin in plugins):
        return Routing([table.topic])
    try:
        found = [[record] for record in _records(table)]
    except (ConnectorError, ValueError):  # of a column converter
        return Routing([], next(f"transforms.{plugin.name}" for plugin in plugins if plugin.may_rename_topics))
    for plugin, step in zip(plugins, settings.chain.steps, strict=True):
        if not plugin.may_rename_topics:
            found = [[made for record in records for made in _changed(step, record)] for records in found]
            continue
        if any(_uses_row(step, record) for records in found for record in records):
            return Routing([], f"transforms.{step.name}")
        try:
            found = [[made for record in records for made in _routed(step, record)] for records in found]
        except TransformError:
            return Routing([], f"transforms.{step.name}")
        if len({tuple(record.topic for record in records) for records in found}) > 1:
            return Routing([], f"transforms.{step.name}")
    return Routing(sorted({record.topic for records in found for record in records}))


def _records(table: SnapshotTable) -> Sequence[ConnectRecord]:
    """Return records of rows with different values in all columns."""
    columns = table.table.columns
    reader = table.reader([column.name for column in columns])
    batch = table.unplaced([reader.row(key_row(columns, {}, variant)) for variant in range(_VARIANTS)], lambda: 0)
    return [connect_record(batch, message) for message in batch.messages]


def _changed(step: ConditionalTransform, record: ConnectRecord) -> Sequence[ConnectRecord]:
    """Apply a transform that keeps the topic. A record that it drops or rejects stands for others that it does not."""
    try:
        return _routed(step, record) or [record]
    except TransformError:
        return [record]


def _routed(step: ConditionalTransform, record: ConnectRecord) -> Sequence[ConnectRecord]:
    return TransformChain((step,)).records(record)


def _uses_row(step: ConditionalTransform, record: ConnectRecord) -> bool:
    """Return whether a transform may choose the topic of a record by more than its present topic."""
    if step.predicate is not None and not isinstance(step.predicate, TopicNameMatches):
        return True
    if not step.applies_to(record):
        return False
    match step.transform:
        case RegexRouter() | ByLogicalTableRouter() | PythonTransform():
            return False
        case ContentBasedRouter(script):
            names = {
                one.id for one in ast.walk(ast.parse(script.text.strip(), mode="eval")) if isinstance(one, ast.Name)
            }
            return script.concerns(record) and not names.isdisjoint({"key", "value", "header"})
    return True
