"""Reports at a start which values change, and which columns were declared BOOL; pure."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rowtide.connector.check.findings import Finding
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import capture, values
from rowtide.connector.config.choices import BoolHandling
from rowtide.connector.engine.start.included_tables import IncludedTables
from rowtide.connector.records.lossy_conversions import BOOLEANS
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.read_tables import ReadTables
from rowtide.envelope.types.mapping import JDBC_BOOLEAN
from rowtide.schema_history.catalog.tables import Tables

_FIELD = "rowtide_values"
_EXACT = "exact"


def with_values(config: Configuration, carried: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the fields of all later offsets. One of them, which Debezium drops, says whether values are exact."""
    others = {name: value for name, value in (carried or {}).items() if name != _FIELD}
    return {**others, _FIELD: _EXACT} if config.values.exact else others or None


def first_fields(config: Configuration, included: IncludedTables | None) -> Mapping[str, Any] | None:
    """Return the fields of all offsets of an initial snapshot.

    Args:
        config: the configuration.
        included: the list of captured tables that a signal has set.
    """
    others = None if included is None else included.carried(None)
    return with_values(config, ReadTables(config.capture.tables).carried(others))


def changed_values(config: Configuration, stored: SourceOffset | None, differences: Sequence[str]) -> list[Finding]:
    """Return the changes in records, if those before the stored position have other values.

    Args:
        config: the configuration.
        stored: the stored position.
        differences: what exact values keep, see ``Report.exact_differences``.
    """
    if stored is None or config.delivery.sink == "python" or config.databus.topic is not None:
        return []
    before = (stored.carried or {}).get(_FIELD) == _EXACT
    if before == config.values.exact:
        return []
    if before:
        message = (
            "debezium, but the records up to the stored position have exact values: from here on, values are as "
            "Debezium writes them. rowtide.values=exact keeps exact values"
        )
    else:
        message = (
            "exact, but Debezium or an earlier version of rowtide stored the position: the records up to it have "
            f"Debezium's values. From here on, these no longer apply: {'; '.join(_differences(config, differences))}. "
            "rowtide.values=debezium keeps Debezium's values"
        )
    return [Finding.warning(values.VALUES.name, message)]


def _differences(config: Configuration, differences: Sequence[str]) -> Iterator[str]:
    yield from differences
    for name, meaning in (
        (capture.SKIPPED_OPERATIONS.name, "is t: TRUNCATE has no records"),
        (values.CONVERTING_FAILURE.name, "is warn: a value that its type cannot hold becomes null or the default"),
    ):
        if not config.properties.get(name, "").strip():
            yield f"{name} {meaning}"


def bool_findings(config: Configuration, tables: Tables) -> list[Finding]:
    """Return a warning about columns declared BOOL, whose numbers a boolean cannot hold.

    Args:
        config: the configuration.
        tables: the tables of the schema history.
    """
    if config.values.bool_handling is not BoolHandling.BOOLEAN or config.delivery.sink == "python":
        return []
    columns = [
        f"{table.id}.{column.name}"
        for name in tables.names()
        if config.capture.tables.captures(name.database, name.table)
        and (table := tables.table(name.database, name.table)) is not None
        for column in table.columns
        if column.debezium is not None
        and column.debezium.jdbc_type == JDBC_BOOLEAN
        and config.capture.columns.captures(name.database, name.table, column.name)
    ]
    return [Finding.warning(BOOLEANS.setting, BOOLEANS.message(columns))] if columns else []
