"""The pipeline's settings as plain values: without property names, secrets and servers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from rowtide.connector.records.batch import Batch, Headers
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.dead_letters import DeadLetters
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.row_compiler import Column
from rowtide.envelope.converters.converter import Converter, HeaderConverter
from rowtide.envelope.converters.plain import SimpleHeaderConverter
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.post_processors import PostProcessor
from rowtide.envelope.settings import FailureMode, JsonSettings
from rowtide.envelope.table import RecordRules, TableSchema
from rowtide.envelope.transforms import TransformChain
from rowtide.schema_history.catalog.changes import SchemaChange
from rowtide.schema_history.server.query_event import QueryEvent, Server
from rowtide.topics.filters import Selection, TableFilter
from rowtide.topics.naming import TopicNaming

LOSSLESS = JsonSettings(schemas_enable=False, json_format=JsonFormat("BASE64", replace_null_with_default=False))
"""The format of messages that transforms read."""


@dataclass(frozen=True, slots=True)
class Transforms:
    """The post-processors and transforms, which may be none, and the converters after them.

    Attributes:
        chain: the transforms.
        keys: the converter of keys.
        values: the converter of values.
        headers: the converter of headers.
        tolerant: ``errors.tolerance=all``: skip a record that a transform or converter rejects.
        dead_letters: the topic where such a record is kept, if there is one.
        show_values: ``errors.log.include.messages``: whether messages may contain values of rows.
        processors: the post-processors of change events, before the transforms.
    """

    chain: TransformChain
    keys: Converter
    values: Converter
    headers: HeaderConverter = field(default_factory=SimpleHeaderConverter)
    tolerant: bool = False
    dead_letters: DeadLetters | None = None
    show_values: bool = False
    processors: tuple[PostProcessor, ...] = ()

    def close(self) -> None:
        """Close the post-processors. A post-processor that is used again reconnects."""
        for processor in self.processors:
            processor.close()


class MessageForm(Protocol):
    """The form of messages of rows and statements, instead of Debezium's. It is pickled for the decoder processes."""

    def codec(self, records: TableSchema, columns: Sequence[Column]) -> Any:
        """Return the codec of a table, a :class:`~rowtide.connector.records.codecs.rows.RowsCodec`.

        Args:
            records: the schemas of Debezium's records of the table.
            columns: all columns of the row images, with Connect values as their output.
        """
        ...

    def statement(
        self,
        changes: Sequence[tuple[SchemaChange, TableSchema | None]],
        statement: QueryEvent,
        server: Server,
        position: SourcePosition,
        offset: SourceOffset,
    ) -> Batch | None:
        """Return the messages of a statement; ``None`` if it has none.

        Args:
            changes: its changes of captured tables, with the schemas of Debezium's records of each after it.
            statement: the statement.
            server: the server that has executed it.
            position: its position.
            offset: the resume position after the messages.
        """
        ...

    def moved(self, batch: Batch, position: SourcePosition, number: int) -> Batch:
        """Return a batch of an XA transaction in the form written when the transaction is committed.

        Args:
            batch: the batch made when the transaction was prepared.
            position: the position of XA COMMIT.
            number: of the batch in its transaction, from 0.
        """
        ...


@dataclass(frozen=True, slots=True)
class PipelineSettings:
    """The settings of everything between events and records.

    Attributes:
        connector: ``mysql`` or ``mariadb``.
        topic_prefix: ``topic.prefix``: the logical name of the server.
        naming: names of topics.
        tables: which tables are captured.
        published_sources: the sources of GTIDs whose rows are published; ``None`` for all.
        rules: the rules for records.
        keys: the converter of keys.
        values: the converter of values.
        tombstones: ``tombstones.on.delete``.
        skipped_operations: ``skipped.operations``: of ``c``, ``u``, ``d``, ``t``.
        skip_unchanged: ``skip.messages.without.change``.
        include_query: ``include.query``.
        transaction_metadata: ``provide.transaction.metadata``.
        schema_changes: ``include.schema.changes``.
        only_captured_tables_ddl: ``schema.history.internal.store.only.captured.tables.ddl``.
        only_captured_databases_ddl: ``schema.history.internal.store.only.captured.databases.ddl``.
        skip_unparseable_ddl: ``schema.history.internal.skip.unparseable.ddl``.
        look_up_unparseable_ddl: ``rowtide.unparseable.ddl.lookup``.
        inconsistent_schema: ``inconsistent.schema.handling.mode``.
        processing_failure: ``event.processing.failure.handling.mode``.
        dead_letters: the topic where events that are skipped are kept, if there is one.
        show_values: ``errors.log.include.messages``: whether messages may contain values and literals.
        headers: context headers of every record (``extended.headers.enabled``).
        notification_topic: ``notification.sink.topic.name``, if the channel ``sink`` is on.
        log_notifications: whether the channel ``log`` is on.
        on_notification: receives every notification, whatever the channels are; called in the thread that sends it.
        transforms: ``transforms`` and the converters, if there is a transform or a converter other than
            ``JsonConverter``; then ``keys`` and ``values`` are :data:`LOSSLESS`.
        exact_values: whether values and their marks are exact; otherwise they are as Debezium writes them.
        changes: make :class:`~rowtide.connector.records.change.Change` objects from rows instead of messages.
        table_events: the effects on tables as a whole become
            :class:`~rowtide.connector.records.table_events.TableEvent` objects, for sinks that keep tables.
        derive_cascades: ``rowtide.cascaded.changes=derive``.
        form: the form of the messages of rows and statements; ``None`` for Debezium's. Heartbeats,
            notifications and the schema history are the same in all forms.
    """

    connector: Literal["mysql", "mariadb"]
    topic_prefix: str
    naming: TopicNaming
    tables: TableFilter = field(default_factory=TableFilter)
    published_sources: Selection | None = None
    rules: RecordRules = field(default_factory=RecordRules)
    keys: JsonSettings = field(default_factory=JsonSettings)
    values: JsonSettings = field(default_factory=JsonSettings)
    tombstones: bool = True
    skipped_operations: frozenset[str] = frozenset({"t"})
    skip_unchanged: bool = False
    include_query: bool = False
    transaction_metadata: bool = False
    schema_changes: bool = True
    only_captured_tables_ddl: bool = False
    only_captured_databases_ddl: bool = False
    skip_unparseable_ddl: bool = False
    look_up_unparseable_ddl: bool = True
    inconsistent_schema: FailureMode = "fail"
    processing_failure: FailureMode = "fail"
    dead_letters: DeadLetters | None = None
    show_values: bool = False
    headers: Headers = ()
    notification_topic: str | None = None
    log_notifications: bool = False
    on_notification: Callable[[Mapping[str, Any]], None] | None = None
    transforms: Transforms | None = None
    exact_values: bool = True
    changes: bool = False
    table_events: bool = False
    derive_cascades: bool = False
    form: MessageForm | None = None

    @property
    def canonical(self) -> bool:
        """Whether FLOAT has all digits, and JSON the server's spelling, in snapshot and stream alike.

        Otherwise, both are in Debezium's form: snapshots have six digits, and the stream has its own spelling of JSON.
        """
        return self.exact_values or self.rules.values.canonical
