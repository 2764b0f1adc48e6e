"""Derives the settings of the pipeline from a configuration."""

import secrets
import time
from dataclasses import replace

from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue.values import placeholder_bytes
from rowtide.connector.config.choices import CascadedChanges, HeaderConverterClass, SourceStructVersion
from rowtide.connector.config.model import JsonConverterConfig
from rowtide.connector.engine.converters import converter, header_converter, json_settings
from rowtide.connector.engine.reselect_columns import ReselectColumns
from rowtide.connector.records.batch import Headers
from rowtide.connector.records.codecs.python_values import python_conversion
from rowtide.connector.records.dead_letters import DeadLetters
from rowtide.connector.records.settings import LOSSLESS, MessageForm, PipelineSettings, Transforms
from rowtide.envelope.column_converters import ColumnConverters
from rowtide.envelope.legacy import LegacyEnvelope
from rowtide.envelope.name_adjustment import field_name_adjuster, schema_name_adjuster
from rowtide.envelope.post_processors import PostProcessor, ReselectOptions, post_processors
from rowtide.envelope.settings import JsonSettings, ValueSettings
from rowtide.envelope.table import RecordRules
from rowtide.envelope.transforms import TransformChain, transform_chain
from rowtide.envelope.transforms.chain import ConditionalTransform

_CONTEXT = "__debezium.context."


def run_id() -> str:
    """Return a new UUID of version 7, which identifies the records of one run (``__debezium.context.runId``)."""
    millis = time.time_ns() // 1_000_000
    value = millis << 80 | 7 << 76 | secrets.randbits(12) << 64 | 2 << 62 | secrets.randbits(62)
    digits = f"{value:032x}"
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def context_headers(config: Configuration, run: str) -> Headers:
    """Return the headers of every record (``extended.headers.enabled``)."""
    if not config.values.extended_headers:
        return ()
    return (
        (f"{_CONTEXT}connectorLogicalName", config.topics.prefix.encode()),
        (f"{_CONTEXT}taskId", b"0"),
        (f"{_CONTEXT}connectorName", config.flavor.value.encode()),
        (f"{_CONTEXT}runId", run.encode()),
    )


def pipeline_settings(
    config: Configuration, run: str, *, changes: bool = False, form: MessageForm | None = None
) -> PipelineSettings:
    """Return the pipeline's part of a configuration.

    Args:
        config: the configuration.
        run: the id of this run, see :func:`run_id`.
        changes: make changes from rows instead of messages, without other kinds of messages, post-processors and
            transforms.
        form: the form of the messages of rows and statements, instead of Debezium's.
    """
    transforms, chosen = None, config.converters
    keeps_tables = config.delivery.tables is not None
    changes = changes or keeps_tables
    keys, values = (
        json_settings(one) if isinstance(one, JsonConverterConfig) else JsonSettings()
        for one in (chosen.key, chosen.value)
    )
    if not changes:
        transforms = _transforms(config, form)
    if transforms is not None:
        keys = values = LOSSLESS
    settings = PipelineSettings(
        connector=config.flavor.value,
        topic_prefix=config.topics.prefix,
        naming=config.topics.naming,
        tables=config.capture.tables,
        published_sources=config.capture.counted_sources if config.capture.gtid_filter_dml else None,
        rules=record_rules(config),
        keys=keys,
        values=values,
        tombstones=config.values.tombstones,
        skipped_operations=frozenset()
        if keeps_tables
        else config.capture.skipped_operations
        if form is None
        else config.capture.skipped_operations | {"t"},
        skip_unchanged=config.capture.skip_messages_without_change,
        include_query=config.values.include_query,
        transaction_metadata=config.values.transaction_metadata,
        schema_changes=config.topics.include_schema_changes and not changes and form is None,
        only_captured_tables_ddl=config.history.store_only_captured_tables,
        only_captured_databases_ddl=config.history.store_only_captured_databases,
        skip_unparseable_ddl=config.history.skip_unparseable_ddl,
        look_up_unparseable_ddl=config.history.look_up_unparseable_ddl,
        inconsistent_schema=config.failure.inconsistent_schema.value,
        processing_failure=config.failure.event_processing.value,
        dead_letters=None if changes or form is not None else dead_letters(config),
        show_values=config.failure.show_values,
        headers=context_headers(config, run),
        notification_topic=None if changes else config.topics.notification_topic,
        log_notifications=config.topics.log_notifications,
        transforms=transforms,
        exact_values=config.values.exact or form is not None or keeps_tables,
        changes=changes,
        table_events=keeps_tables,
        derive_cascades=config.capture.cascaded_changes is CascadedChanges.DERIVE and form is None,
        form=form,
    )
    if transforms is None or not config.post_processors:
        return settings
    processors = _post_processors(config, replace(settings, transforms=None))
    return replace(settings, transforms=replace(transforms, processors=processors))


def _post_processors(config: Configuration, settings: PipelineSettings) -> tuple[PostProcessor, ...]:
    return tuple(
        ReselectColumns(one, config.database, settings) if isinstance(one, ReselectOptions) else one
        for one in post_processors(config.post_processors)
    )


def _transforms(config: Configuration, form: MessageForm | None) -> Transforms | None:
    """Return the transforms and converters, without post-processors; ``None`` if messages are written as JSON."""
    chain, chosen = _chain(config), config.converters
    plain = all(isinstance(one, JsonConverterConfig) for one in (chosen.key, chosen.value))
    plain = plain and not (chain.steps or config.post_processors) and chosen.header is HeaderConverterClass.SIMPLE
    if form is not None or plain:
        return None
    return Transforms(
        chain,
        converter(chosen.key),
        converter(chosen.value),
        header_converter(chosen.header, exact_values=config.values.exact),
        chosen.tolerant,
        dead_letters(config),
        config.failure.show_values,
    )


def dead_letters(config: Configuration) -> DeadLetters | None:
    """Return the topic of dead letters, if records can go there."""
    letters = config.delivery.dead_letters
    return (
        None
        if letters is None or config.delivery.sink != "kafka"
        else DeadLetters(letters.topic, config.name, letters.context)
    )


def _chain(config: Configuration) -> TransformChain:
    """Return the transforms; the old envelope is a transform before all others."""
    chain = transform_chain(config.transforms, config.predicates, exact=config.values.exact)
    if config.values.source_struct_version is SourceStructVersion.V1:
        return TransformChain((ConditionalTransform("source.struct.version", LegacyEnvelope()), *chain.steps))
    return chain


def record_rules(config: Configuration) -> RecordRules:
    """Return the rules for records."""
    values = config.values
    settings = ValueSettings(
        decimal_handling_mode=values.decimal.value,
        bigint_unsigned_handling_mode=values.bigint_unsigned.value,
        time_precision_mode=values.time_precision.value,
        zero_date_handling_mode=values.zero_date.value,
        enable_time_adjuster=values.time_adjuster,
        bool_handling_mode=values.bool_handling.value,
        canonical_values=values.canonical,
        exact=values.exact,
        binary_handling_mode=values.binary.value,
        event_converting_failure_handling_mode=config.failure.event_converting.value,
        minimal_row_images=values.minimal_row_images,
        unavailable_value_placeholder=placeholder_bytes(values.unavailable_placeholder),
        adjust_field_name=field_name_adjuster(values.field_name_adjustment.value),
        adjust_schema_name=schema_name_adjuster(values.schema_name_adjustment.value),
        include_schema_comments=_comments(config),
        connector=config.flavor.value,
    )
    return RecordRules(
        settings,
        config.capture.columns,
        config.capture.keys,
        values.column_rules,
        values.propagate_columns,
        values.propagate_types,
        ColumnConverters(config.column_converters, python_conversion),
    )


def _comments(config: Configuration) -> bool:
    """Return whether comments are kept; Debezium's connector for MariaDB asks ``include.schema.changes`` instead."""
    if config.mariadb:
        return config.topics.include_schema_changes
    return config.values.include_schema_comments
