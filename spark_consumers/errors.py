"""Errors of ``rowtide tables``. Each message names the table or topic and says what to do."""

from collections.abc import Collection, Mapping, Sequence


class TablesError(Exception):
    """Base class of all expected errors; the text is intended for the user."""


class SettingsError(TablesError):
    """A setting is missing or contradicts another one."""


class KafkaUnreachableError(TablesError):
    """The brokers did not answer."""


class OffsetsLostError(TablesError):
    """The topic no longer holds the records that follow the stored offsets."""


class StateError(TablesError):
    """The stored offsets do not match the table, cannot be read, or are in use by another run."""


class OverlappingRunsError(StateError):
    """Another run wrote the same batch to the table."""

    def __init__(self, batch: int) -> None:
        super().__init__(
            f"batch {batch} was written to the table by another run of rowtide tables, which overlapped with this one. "
            f"This run stored no offsets. Run it again when no other one is active; if the error remains, build the "
            f"table again (--restart)"
        )


class ChangedTableError(StateError):
    """Other writers changed the table whenever this run wrote to it."""

    def __init__(self, table: str, attempts: int) -> None:
        super().__init__(
            f"table {table} was changed by another program during each of {attempts} attempts to write to it. No "
            f"change is lost: run the command again when the other program, which may be merging files, has ended"
        )


class ConflictError(StateError):
    """Upkeep gave up a step, because another writer committed first."""

    def __init__(self, table: str) -> None:
        super().__init__(
            f"table {table} was changed while its files were merged, so that they stay as they were. Nothing is lost: "
            f"the next upkeep tries again"
        )


class UnsafeRetentionError(TablesError):
    """Files or versions would be removed that may still be needed."""


class DependentColumnError(StateError):
    """A constraint or a generated column of the table may need a column that should be renamed."""

    def __init__(self, table: str, names: str) -> None:
        super().__init__(
            f"table {table}: {names} cannot be renamed, because the table has a CHECK constraint or a generated column "
            f"that may use the old name. This run changed nothing: drop the constraint or the column, run it again, "
            f"and add the constraint with the new name"
        )


class EmptyPartitionError(StateError):
    """A row has an empty text in a column by which a table of Delta Lake is partitioned."""

    def __init__(self, table: str, column: str) -> None:
        super().__init__(
            f"table {table}: a row has an empty text in column {column}, by which the table is partitioned, and Delta "
            "Lake turns it into a null. The table lacks the batch: use --cluster-by or --format iceberg instead, and "
            f"build the table again with --restart {table}"
        )


class PlacingColumnError(StateError):
    """A column by which the table is partitioned, clustered or sorted was dropped, and another one has its name."""

    def __init__(self, table: str, column: str) -> None:
        super().__init__(
            f"table {table} is partitioned, clustered or sorted by {column}, which MySQL has dropped, and another "
            f"column has this name now. The table is as it was: build it again with --restart {table}"
        )


class UnsupportedRenameError(StateError):
    """The session's Delta Lake, such as that of a vendor, has other classes than the open-source one."""

    def __init__(self, table: str, names: Mapping[str, str], dropped: Collection[str]) -> None:
        renames = [f"RENAME COLUMN {old} TO {new}" for old, new in names.items()]
        changes = ", ".join([*(f"DROP COLUMN {name}" for name in dropped), *renames])
        super().__init__(
            f"table {table}: this Delta Lake is not the open-source one, so rowtide cannot rename columns in it. The "
            f"table is as it was: change it yourself ({changes}) and run the command again, or use --schema-change "
            "lenient"
        )


class SchemaChangeError(TablesError):
    """A change of structure that ``--schema-change`` does not allow, or that cannot be ignored."""

    def __init__(self, table: str, changes: str, kind: str | None) -> None:
        way_out = "" if kind is None else f", or with --exclude-changes {kind} to ignore it"
        super().__init__(
            f"table {table}: its structure changed: {changes}. The table is as it was, and nothing is lost: run the "
            f"command again with --schema-change evolve to apply the change{way_out}"
        )


class LayoutError(StateError):
    """The rows of a table have a layout other than that of this run."""

    def __init__(self, table: str, stored: str, wanted: str) -> None:
        super().__init__(
            f"table {table} was built {_LAYOUTS[stored]}, and this run is {_LAYOUTS[wanted]}. The table is as it was: "
            f"run the command as before, choose another --output, or build the table again with --restart {table}"
        )


class RowFilterError(StateError):
    """The rows of a table are those of another filter than that of this run."""

    def __init__(self, table: str, stored: str | None, wanted: str | None) -> None:
        was, is_now = (f"with --where {sql}" if sql else "without --where" for sql in (stored, wanted))
        super().__init__(
            f"table {table} was built {was}, and this run is {is_now}. The table is as it was: run the command as "
            f"before, choose another --output, or build the table again with --restart {table}"
        )


class ProjectionError(StateError):
    """The columns of a table are others than those of this run."""

    def __init__(self, table: str, stored: Sequence[str], wanted: Sequence[str]) -> None:
        was, is_now = (
            f"with --columns {','.join(names)}" if names else "without --columns" for names in (stored, wanted)
        )
        super().__init__(
            f"table {table} was built {was}, and this run is {is_now}. The table is as it was: run the command as "
            f"before, choose another --output, or build the table again with --restart {table}"
        )


class ComputedColumnsError(StateError):
    """The computed columns of a table are others than those of this run."""

    def __init__(self, table: str, stored: Mapping[str, str], wanted: Mapping[str, str]) -> None:
        was, is_now = (
            " ".join(f"--compute {name}={sql}" for name, sql in one.items()) if one else "" for one in (stored, wanted)
        )
        super().__init__(
            f"table {table} was built {f'with {was}' if was else 'without --compute'}, and this run is "
            f"{f'with {is_now}' if is_now else 'without --compute'}. The table is as it was: run the command as "
            f"before, choose another --output, or build the table again with --restart {table}"
        )


_LAYOUTS = {
    "rows": "without --append, --soft-delete and --history",
    "append": "with --append, or --keyless append for a table without a key",
    "soft-delete": "with --soft-delete",
    "history": "with --history",
}


class KeylessError(StateError):
    """A table has no key, which its layout needs, or only a part of its records has one."""

    def __init__(self, table: str, reason: str) -> None:
        super().__init__(
            f"table {table}: {reason}. The table is as it was: use --append, which keeps the changes of all tables as "
            f"rows, or exclude the topic with --topics"
        )


class UnorderedError(StateError):
    """The order of some records, which ``--history`` needs, is not known."""

    def __init__(self, table: str, reason: str, way_out: str) -> None:
        super().__init__(
            f"table {table}: {reason}, so that --history cannot tell when versions of rows begin and end. The table is "
            f"as it was: {way_out}"
        )


class SharedTopicError(TablesError):
    """One of several tables whose records are in one topic was truncated, dropped or renamed."""

    def __init__(self, table: str, columns: str) -> None:
        super().__init__(
            f"table {table}: the topic has a record of a TRUNCATE, DROP TABLE or new name, but it contains several "
            f"tables: its keys have {columns}, which rows do not have. The record does not show which rows are gone. "
            "The table stays as it was: ignore such records with --exclude-changes truncate.table, and delete these "
            "rows yourself"
        )


class NotAnEnvelopeError(TablesError):
    """The records of a topic are not change events of a table."""


class ClaimCheckError(TablesError):
    """The value that a record points to cannot be read."""


class SchemaMissingError(TablesError):
    """Messages have no schemas, and the schema of a field was not supplied either."""


class HistoryError(TablesError):
    """The schema history, which shows whether columns were renamed, cannot be read."""


class RegistryError(TablesError):
    """The schema registry did not answer, or lacks a schema."""


class UndecodableError(TablesError):
    """A key or value does not match the schema that it names."""


class TypeConflictError(TablesError):
    """A column changed to a type that the table's column cannot adopt without loss."""

    def __init__(self, table: str, column: str, old: str, new: str) -> None:
        super().__init__(
            f"table {table}, column {column}: the records have type {new}, the table has {old}, and no type holds both "
            f"without loss. Convert the column in the table, or delete the table with its stored offsets and build it "
            f"again from the topic (rowtide tables --restart {table})"
        )
        self.table, self.column, self.old, self.new = table, column, old, new


class KeyWithoutValuesError(TablesError):
    """A column was added to the key, and earlier rows have no value in it."""

    def __init__(self, table: str, topic: str, column: str, at: str) -> None:
        super().__init__(
            f"table {table}, column {column}: from topic {topic}, {at}, the column belongs to the key, and older rows "
            f"have no value in it, because it was renamed or MySQL computed its values. Changes would not find their "
            f"rows, so nothing of this batch was applied. Read the table by a blocking snapshot, delete the records "
            f"before that snapshot from the topic (kafka-delete-records.sh), and build the table again (rowtide tables "
            f"--restart {table})"
        )


class UnavailableValueError(TablesError):
    """A row needs a value that the binlog did not have."""

    def __init__(self, table: str, topic: str, column: str, partition: int, offset: int) -> None:
        super().__init__(
            f"table {table}, column {column}: the record at topic {topic}, partition {partition}, offset {offset} has "
            f"a placeholder (unavailable.value.placeholder) instead of the value, which the binlog did not have. Let "
            f"the server and all sessions use binlog_row_image=FULL and no partial JSON, take a new snapshot of the "
            f"table, and build it again from the topic (rowtide tables --restart {table}). If the text is a value of "
            f"the table, let the connector write another placeholder, and name it: --unavailable-placeholder"
        )
