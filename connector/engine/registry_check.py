"""Checks whether a schema registry accepts the tables' schemas, now and after a change, without registering them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rowtide.connector.check.findings import Finding
from rowtide.connector.check.topic_checks import CheckedTable
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import converters as properties
from rowtide.connector.config.model import AvroConverterConfig, ProtobufConverterConfig, RegistryConfig
from rowtide.connector.engine.converters import converter
from rowtide.connector.engine.pipeline_settings import record_rules
from rowtide.connector.errors import ConnectorError, RegistryError, RegistryUnreachable
from rowtide.connector.records.codecs.builder import table_schema
from rowtide.connector.source import server_queries
from rowtide.connector.source.session import Session
from rowtide.envelope.avro.differences import DifferenceKind, SchemaDifference
from rowtide.envelope.converters.registry import Registering
from rowtide.envelope.transforms.record import Side
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.server.query_event import QueryEvent

if TYPE_CHECKING:
    from rowtide.connector.schema_registry import SchemaRegistry

MOST_TABLES = 1000
"""Tables whose schemas are checked: each costs a query and two requests."""


@dataclass(frozen=True, slots=True)
class _Side:
    """The keys or the values, with the registry for their schemas."""

    side: Side
    config: RegistryConfig
    converter: Registering
    registry: "SchemaRegistry"

    @property
    def subject(self) -> str:
        """The property that findings name."""
        return f"{self.config.prefix}schema.registry.url"

    def refusals(self, topic: str, table: Table, records_of: Configuration) -> list[SchemaDifference]:
        """Return the reasons why the schema of a table is refused; empty if it is accepted.

        Raises:
            RegistryUnreachable: the registry does not answer.
        """
        augment = records_of.topics.naming.key_augment(table.id.database, table.id.table)
        rules = record_rules(records_of)
        records = table_schema(table, topic, rules, "stream", lambda _table, _column: None, augment)
        schema = records.key if self.side == "key" else records.envelope
        if schema is None:
            return []
        try:
            subject, kind, text = self.converter.registration(topic, self.side, schema)
            if not self.config.auto_register:
                self.registry.registered(subject, kind, text)
                return []
            found = self.registry.incompatibilities(subject, kind, text)
            return [SchemaDifference(one.kind, f"subject {subject}, incompatible with {one}") for one in found]
        except RegistryUnreachable:
            raise
        except (RegistryError, ValueError) as error:
            return [SchemaDifference(None, str(error))]


def registry_findings(
    config: Configuration, captured: Iterable[CheckedTable], statement: str | None = None
) -> list[Finding]:
    """Return findings about schemas that the registry would refuse.

    Args:
        config: the configuration.
        captured: the captured tables with their topics.
        statement: a statement that is not executed: its effect on the schemas is reported, too.
    """
    try:
        sides = list(_sides(config))
    except ConnectorError as error:  # a package is missing
        return [Finding.error(properties.VALUE.converter.name, str(error))]
    topics = {TableId(one.database, one.name): one.topic for one in captured if one.topic is not None}
    if config.transforms and sides:
        message = "the schemas are not checked in the registry, because transforms change them"
        return [Finding.remark(sides[0].subject, message)]
    if not sides and statement is None:
        return []
    try:
        with Session(config.database, mariadb=config.flavor.value == "mariadb") as session:
            tables = server_queries.structures(session, list(topics)[:MOST_TABLES])
        found = [*_accepted(config, sides, topics, tables)]
        if statement is not None:
            found += _after(config, sides, topics, tables, statement)
    except RegistryUnreachable as error:
        return [Finding.error(sides[0].subject, str(error), retriable=True)]
    except ConnectorError as error:
        return [Finding.error("database.hostname", str(error))]
    return found


def _sides(config: Configuration) -> Iterator[_Side]:
    sides: Sequence[Side] = ("key", "value")
    for side in sides:
        chosen = config.converters.key if side == "key" else config.converters.value
        if isinstance(chosen, AvroConverterConfig | ProtobufConverterConfig):
            made: Registering = converter(chosen)  # type: ignore[assignment]  # both classes are
            from rowtide.connector.schema_registry import SchemaRegistry  # noqa: PLC0415 - needs the extra avro

            yield _Side(side, chosen.registry, made, SchemaRegistry(chosen.registry))


def _accepted(
    config: Configuration, sides: Sequence[_Side], topics: dict[TableId, str], tables: Tables
) -> Iterator[Finding]:
    checked = 0
    for table_id, topic in topics.items():
        table = tables.table(table_id.database, table_id.table)
        if table is None:
            continue
        checked += 1
        for side in sides:
            for refusal in side.refusals(topic, table, config):
                yield Finding.error(side.subject, f"the schema of {table_id} would be refused: {refusal}")
    if checked < len(topics):
        message = f"the schemas of {len(topics) - checked} more tables were not checked in the registry"
        yield Finding.remark(sides[0].subject, message)


def _after(
    config: Configuration, sides: Sequence[_Side], topics: dict[TableId, str], tables: Tables, statement: str
) -> Iterator[Finding]:
    """Yield the changes that a statement would make."""
    databases = {table.database for table in topics}
    database = next(iter(databases)) if len(databases) == 1 else ""
    subject = "--ddl"
    try:
        result = tables.apply(QueryEvent(statement, database=database, sql_mode=0, position=""))
    except SchemaHistoryError as error:
        message = f"{error}. Names of tables need their database: shop.orders"
        yield Finding.error(subject, message, planned=True)
        return
    changed = [(one, table) for one, table in result.altered if table is not None and one in topics]
    if not changed:
        yield Finding.remark(subject, "the statement changes the schema of no captured table")
    for table_id, table in changed:
        refused = False
        for side in sides:
            for refusal in side.refusals(topics[table_id], table, config):
                refused = True
                message = f"after the statement, the registry would refuse the {side.side} of {table_id}: {refusal}"
                advice = "give the column a default or allow NULL, or " if refusal.kind is DifferenceKind.NEW else ""
                way_out = f"Before it, {advice}change the subject's compatibility level"
                yield Finding.error(subject, f"{message}. {way_out}", planned=True)
        if not refused:
            where = "the schema registry accepts" if sides else "there is no registry to refuse"
            yield Finding.remark(subject, f"{where} the schemas of {table_id} after the statement")
