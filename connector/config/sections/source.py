"""The sections about the database and the capture of its changes; pure."""

import re
from collections.abc import Mapping
from typing import TypeVar

from rowtide.connector.config.catalogue import capture, connect, connection, running, snapshot, values
from rowtide.connector.config.catalogue.property import Property
from rowtide.connector.config.choices import CascadedChanges, FailureHandling, MirrorRead, SslMode
from rowtide.connector.config.files.config_providers import names_files
from rowtide.connector.config.model import (
    CaptureConfig,
    FailureConfig,
    IncrementalConfig,
    MirrorConfig,
    SnapshotConfig,
    SnapshotFlags,
    StreamingConfig,
    ValuesConfig,
)
from rowtide.connector.config.model.database import DatabaseConfig, Renewal, ReplicaConfig, Tls
from rowtide.connector.config.secret import PasswordSource, Secret
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.column_rules import ColumnRules, Hash, is_rule_name, parse_rule_name
from rowtide.topics.filters import (
    ColumnFilter,
    ColumnSelector,
    MessageKeys,
    Patterns,
    Selection,
    TableFilter,
)

T = TypeVar("T")

_LONGEST_HOST = 60
"""Bytes of the host that every server accepts in COM_REGISTER_SLAVE."""
_NON_BLOCK = 0x01


def database_config(reader: PropertyReader, written: Mapping[str, str]) -> DatabaseConfig:
    """Return the settings of the connection to the database.

    Args:
        reader: the properties, with references resolved.
        written: the same with references.
    """
    reader.exclusive(connection.PASSWORD, connection.PASSWORD_SOURCE)
    default_mode = SslMode.PREFERRED if reader.flavor is Flavor.MYSQL else SslMode.DISABLED
    zone = (connection.TIME_ZONE, connection.TIME_ZONE_OLD, connection.TIME_ZONE_MARIADB)
    return DatabaseConfig(
        **reader.declared(DatabaseConfig),
        password=reader[connection.PASSWORD] or Secret(""),
        replica=_replica_config(reader),
        tls=Tls(**reader.declared(Tls), mode=reader[connection.SSL_MODE] or default_mode),
        takes_public_key=reader[connection.PUBLIC_KEY_RETRIEVAL] or reader[connection.DRIVER_PUBLIC_KEY_RETRIEVAL],
        initial_statements=split_statements(reader[connection.INITIAL_STATEMENTS]),
        time_zone=next((reader[name] for name in zone if reader[name]), None),
        keep_alive_interval_ms=reader[connection.KEEP_ALIVE_INTERVAL] if reader[connection.KEEP_ALIVE] else 0,
        renewal=_renewal(reader[connection.PASSWORD_SOURCE], written),
    )


def _renewal(source: PasswordSource | None, written: Mapping[str, str]) -> Renewal | None:
    found = {name: written[name] for name in connection.RENEWED if names_files(written.get(name, ""), written)}
    if not found and source is None:
        return None
    definitions = {name: text for name, text in written.items() if name.startswith("config.providers")}
    return Renewal({**definitions, **found}, source)


def _replica_config(reader: PropertyReader) -> ReplicaConfig:
    name = reader[connection.NAME] or reader[connection.TOPIC_PREFIX]
    host = reader[connection.REPLICA_HOST]
    if host is None:
        host = f"rowtide-{name}".encode()[:_LONGEST_HOST].decode("utf-8", "ignore")
    elif len(host.encode()) > _LONGEST_HOST:
        reader.problem(connection.REPLICA_HOST.name, f"must have at most {_LONGEST_HOST} bytes")
    flags = reader[connection.REPLICA_DUMP_FLAGS]
    if flags & _NON_BLOCK:
        reader.problem(connection.REPLICA_DUMP_FLAGS.name, "must not have the flag 1, which ends the stream")
    return ReplicaConfig(
        **reader.declared(ReplicaConfig),
        name=name,
        host=host,
    )


def split_statements(text: str) -> tuple[str, ...]:
    """Split SQL statements at ``;``; ``;;`` is a literal semicolon."""
    parts = re.split(r"(?<!;);(?!;)", text)
    return tuple(part.replace(";;", ";").strip() for part in parts if part.strip())


def _selection(
    reader: PropertyReader, include: Property[Patterns | None], exclude: Property[Patterns | None]
) -> Selection:
    reader.exclusive(include, exclude)
    return Selection(reader[include], reader[exclude])


def capture_config(reader: PropertyReader) -> CaptureConfig:
    """Return the captured databases, tables, columns and operations."""
    return CaptureConfig(
        **reader.declared(CaptureConfig),
        tables=TableFilter(
            _selection(reader, capture.DATABASE_INCLUDE, capture.DATABASE_EXCLUDE),
            _selection(reader, capture.TABLE_INCLUDE, capture.TABLE_EXCLUDE),
            reader[capture.IGNORE_BUILTIN],
            frozenset(
                table
                for name in reader[capture.SIGNAL_COLLECTION]
                if (table := _table(reader, capture.SIGNAL_COLLECTION.name, name)) is not None
            ),
            reader[capture.ONLINE_SCHEMA_CHANGE],
        ),
        columns=ColumnFilter(_selection(reader, capture.COLUMN_INCLUDE, capture.COLUMN_EXCLUDE)),
        keys=_keys(reader),
        skipped_operations=_skipped(reader),
        gtid_sources=_selection(reader, capture.GTID_INCLUDES, capture.GTID_EXCLUDES),
        cascaded_changes=_cascaded_changes(reader),
    )


def _table(reader: PropertyReader, property_name: str, name: str) -> tuple[str, str] | None:
    """Return the database and the table of a qualified name; a quoted part may contain a dot."""
    parts = re.fullmatch(r"(`[^`]+`|[^.`]+)\.(`[^`]+`|[^`]+)", name.strip())
    if parts is None:
        reader.problem(property_name, f"{name!r} is not of the form database.table")
        return None
    return parts[1].strip("`"), parts[2].strip("`")


def _keys(reader: PropertyReader) -> MessageKeys:
    try:
        return MessageKeys.parse(reader[capture.MESSAGE_KEY_COLUMNS])
    except ValueError as error:
        reader.problem(capture.MESSAGE_KEY_COLUMNS.name, str(error))
        return MessageKeys()


def _cascaded_changes(reader: PropertyReader) -> CascadedChanges:
    chosen, name = reader[capture.CASCADED_CHANGES], capture.CASCADED_CHANGES.name
    if chosen is CascadedChanges.DERIVE:
        if not reader[values.MINIMAL_ROW_IMAGES]:
            allowed = values.MINIMAL_ROW_IMAGES.name
            reader.problem(name, f"derive needs {allowed}=true: derived deletes have the key only")
        if reader[connect.SINK].startswith(connect.TABLE_SINKS):
            reader.problem(name, f"derive is not possible with the sink {reader[connect.SINK]}")
    return chosen


def _skipped(reader: PropertyReader) -> frozenset[str]:
    operations = frozenset(operation.lower() for operation in reader[capture.SKIPPED_OPERATIONS])
    name = capture.SKIPPED_OPERATIONS.name
    if strange := operations - set("cudt") - {"none"}:
        reader.problem(name, f"may hold c, u, d, t, or be none; {', '.join(sorted(strange))} is not one of them")
    elif "none" in operations and len(operations) > 1:
        reader.problem(name, "must hold nothing else when it holds 'none'")
    return operations - {"none"}


def values_config(reader: PropertyReader) -> ValuesConfig:
    """Return the format of values and records."""
    placeholder = reader[values.UNAVAILABLE_PLACEHOLDER]
    try:
        values.placeholder_bytes(placeholder)
    except ValueError:
        reader.problem(values.UNAVAILABLE_PLACEHOLDER.name, "must have pairs of hexadecimal digits after 'hex:'")
    return ValuesConfig(
        **reader.declared(ValuesConfig),
        exact=reader.exact,
        column_rules=_rules(reader),
        propagate_columns=ColumnSelector(reader[values.COLUMN_PROPAGATE]),
        propagate_types=ColumnSelector(reader[values.DATATYPE_PROPAGATE]),
    )


def _rules(reader: PropertyReader) -> ColumnRules:
    valid: dict[str, str] = {}
    for name, text in reader.properties.items():
        if is_rule_name(name):
            try:
                rule = parse_rule_name(name)
                Patterns.parse(text)
            except ValueError as error:
                reader.problem(name, str(error))
            else:
                valid[name] = text
                if isinstance(rule, Hash) and not rule.salt:
                    reader.warnings.append(
                        f"{name} has no effect: Debezium applies the rule only with a salt, so the columns "
                        f"{text!r} are published unmasked"
                    )
    return ColumnRules.parse(valid)


def event_failure(reader: PropertyReader) -> FailureHandling:
    """Return what to do with an event that cannot be processed, by the new or the former name of the property."""
    event = reader[values.EVENT_FAILURE]
    return event if reader.is_set(values.EVENT_FAILURE) else reader[values.EVENT_FAILURE_OLD] or event


def failure_config(reader: PropertyReader) -> FailureConfig:
    """Return the handling and reporting of failures."""
    event = event_failure(reader)
    return FailureConfig(
        **reader.declared(FailureConfig),
        event_processing=event,
    )


def snapshot_config(reader: PropertyReader) -> SnapshotConfig:
    """Return the settings of snapshots."""
    overrides: dict[tuple[str, str], str] = {}
    listed: set[str] = set()
    prefix = f"{snapshot.OVERRIDES.name}."
    for name in reader[snapshot.OVERRIDES]:
        query_name = prefix + name
        listed.add(query_name)
        table = _table(reader, snapshot.OVERRIDES.name, name)
        query = reader.properties.get(query_name, "").strip()
        if not query:
            reader.problem(query_name, f"is required, since {snapshot.OVERRIDES.name} names the table")
        elif table is not None:
            overrides[table] = query
    for name in reader.properties:
        if name.startswith(prefix) and name not in listed:
            reader.problem(name, f"has no effect unless {snapshot.OVERRIDES.name} names {name.removeprefix(prefix)}")
    return SnapshotConfig(
        **reader.declared(SnapshotConfig),
        flags=SnapshotFlags(**reader.declared(SnapshotFlags)),
        select_overrides=overrides,
        threads=reader[snapshot.MAX_THREADS],
        cut_tables=not (reader[snapshot.LEGACY_THREADS] or reader[snapshot.LEGACY_THREADS_INTERNAL]),
        resumable=reader[snapshot.RESUMABLE],
        incremental=_incremental_config(reader),
    )


def _incremental_config(reader: PropertyReader) -> IncrementalConfig:
    adapts = reader.is_set(snapshot.CHUNK_TARGET) or not reader.is_set(snapshot.CHUNK_SIZE)
    return IncrementalConfig(
        chunk_size=reader[snapshot.CHUNK_SIZE],
        target_ms=reader[snapshot.CHUNK_TARGET] if adapts else 0,
        threads=reader[snapshot.INCREMENTAL_THREADS],
        watermarking=reader[snapshot.WATERMARKING],
        read_only=reader[snapshot.READ_ONLY],
        new_tables=reader[snapshot.NEW_TABLES],
    )


def streaming_config(reader: PropertyReader) -> StreamingConfig:
    """Return the settings of queue and batches."""
    queue, batch = reader[running.MAX_QUEUE_SIZE], reader[running.MAX_BATCH_SIZE]
    if queue <= batch:
        reader.problem(
            running.MAX_QUEUE_SIZE.name, f"must be greater than max.batch.size, but {queue} is not greater than {batch}"
        )
    return StreamingConfig(
        **reader.declared(StreamingConfig),
        mirror=_mirror_config(reader),
        semi_sync=reader[connection.SEMI_SYNC_ACKNOWLEDGE] if reader[connection.SEMI_SYNC] else None,
    )


def _mirror_config(reader: PropertyReader) -> MirrorConfig | None:
    directory = reader[running.MIRROR_DIRECTORY]
    always = reader[running.MIRROR_READ] is MirrorRead.ALWAYS
    if directory is None and always:
        reader.problem(running.MIRROR_READ.name, f"always needs {running.MIRROR_DIRECTORY.name}")
    return None if directory is None else MirrorConfig(directory, always)
