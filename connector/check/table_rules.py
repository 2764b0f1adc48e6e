"""Rules about the captured tables: filters, topic names, limits, and values that are not representable; pure."""

from collections.abc import Iterator

from rowtide.connector.check.facts import ColumnFact, ServerFacts, TableFact, captured_names
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.check.pattern_rules import pattern_findings
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import PROPERTIES, capture, connection, values
from rowtide.connector.config.choices import CascadedChanges, LimitAction
from rowtide.connector.config.model import ProtobufConverterConfig
from rowtide.connector.errors import some_of
from rowtide.connector.records.lossy_conversions import (
    ColumnTraits,
    ConversionSettings,
    LossyConversion,
    active_conversions,
)
from rowtide.envelope.settings import ValueSettings
from rowtide.schema_history.server.query_event import Flavor
from rowtide.topics.filters import CapturedNames
from rowtide.topics.naming import TopicNameClashError, TopicNames

CASCADES_LOGGED = (9, 6)
"""The first release of MySQL that logs the changes by foreign keys."""


def table_findings(
    config: Configuration, tables: tuple[TableFact, ...], *, zero_dates: bool = True
) -> Iterator[Finding]:
    """Yield findings about filters that match nothing, clashing topic names, exceeded limits, and lossy conversions.

    Args:
        config: the configuration.
        tables: the facts about the tables.
        zero_dates: whether the server allows every account to write zero dates.
    """
    names, captured = captured_names(config, tables), _captured(config, tables)
    yield from _helpers(names, tables)
    yield from _nothing(config, tables, captured)
    yield from pattern_findings(config, tables, captured)
    yield from _clashes(config, captured)
    yield from _guardrail(config, captured)
    yield from _lossy_conversions(config, captured, zero_dates=zero_dates)


def _helpers(names: CapturedNames, tables: tuple[TableFact, ...]) -> Iterator[Finding]:
    skipped = [
        f"{table.database}.{table.name} (of {names.helped(table.database, table.name)})"
        for table in tables
        if names.leaves_out(table.database, table.name)
    ]
    if skipped:
        message = (
            f"skipped as helper tables of online schema changes: {some_of(skipped)}. To capture "
            "one, name it in table.include.list"
        )
        yield Finding.remark(capture.ONLINE_SCHEMA_CHANGE.name, message)


def _nothing(config: Configuration, tables: tuple[TableFact, ...], captured: list[TableFact]) -> Iterator[Finding]:
    if captured:
        return
    user = config.database.user
    if tables:
        seen = sorted({table.database for table in tables})
        message = (
            f"no table is captured: the filters match none that user {user!r} can see ({len(tables)} "
            f"table{'s' * (len(tables) != 1)} in the databases {some_of(seen)})"
        )
    else:
        message = f"no table is captured: user {user!r} can see no table at all. Grant it SELECT, or create the tables"
    # The worker starts anyway: tables that are created later are captured, if they match.
    yield Finding.error(capture.TABLE_INCLUDE.name, message, tolerated=True)


def _clashes(config: Configuration, captured: list[TableFact]) -> Iterator[Finding]:
    names = TopicNames(config.topics.naming)
    for table in captured:
        try:
            names.data_change(table.database, table.name)
        except TopicNameClashError as error:
            yield Finding.error("topic.naming.strategy", str(error))


def _guardrail(config: Configuration, captured: list[TableFact]) -> Iterator[Finding]:
    most = config.guardrail.max_tables
    if most and len(captured) > most:
        yield Finding(
            Severity.ERROR if config.guardrail.action is LimitAction.FAIL else Severity.WARNING,
            "guardrail.collections.max",
            f"{len(captured)} tables are captured, but the limit is {most}; narrow table.include.list, or raise "
            "the limit",
        )


def cascade_findings(config: Configuration, facts: ServerFacts) -> Iterator[Finding]:
    """Yield the findings about foreign keys whose changes the server does not log.

    The storage engine makes these changes itself.

    Since 9.6, MySQL makes and logs them above the engine (``innodb_native_foreign_keys``), MariaDB does not.
    """
    logged = facts.flavor is Flavor.MYSQL and facts.release >= CASCADES_LOGGED
    if logged and not facts.is_on("innodb_native_foreign_keys"):
        return
    if config.capture.cascaded_changes is CascadedChanges.DERIVE:
        return  # those that cannot be derived are errors
    captured = {(table.database, table.name) for table in _captured(config, facts.tables or ())}
    lost = [
        f"{one.database}.{one.name} ({' and '.join(one.rules)} of {one.parent})"
        for one in facts.cascades
        if (one.database, one.name) in captured
    ]
    if lost:
        message = (
            f"the server does not log the rows that foreign keys delete or change, so the topics lack such changes of "
            f"{some_of(lost)}. Let the application or a trigger change the rows, or see "
            f"{capture.CASCADED_CHANGES.name}; rowtide verify --repair finds the missing changes. MySQL logs them "
            "since 9.6, unless innodb_native_foreign_keys is ON"
        )
        yield Finding.warning(capture.TABLE_INCLUDE.name, message)


def values_finding(config: Configuration) -> Finding:
    """Return the finding about the form of values (``rowtide.values``) and its reason."""
    exact = config.values.exact
    name, given = connection.CONNECTOR_CLASS.name, config.properties
    if given.get(values.VALUES.name, "").strip():
        why = "as set"
    elif exact:
        why = f"because {name} is not set"
    else:
        why = f"because {name} names Debezium's class"
    held = "values are as the server stores them" if exact else "values are as Debezium writes them"
    own = [one.name for one in PROPERTIES.values() if one.exact is not None and given.get(one.name, "").strip()]
    apart = f"; {', '.join(own)} as set" if own else ""
    return Finding.remark(values.VALUES.name, f"{'exact' if exact else 'debezium'}, {why}: {held}{apart}")


def exact_differences(config: Configuration, tables: tuple[TableFact, ...]) -> tuple[str, ...]:
    """Return the values of captured tables that Debezium's defaults change and this configuration preserves."""
    if not _converts(config):
        return ()
    now = active_conversions(_conversion_settings(config))
    before = active_conversions(ConversionSettings(ValueSettings(connector=config.flavor.value)))
    others = [one for one in before if one not in now and not config.properties.get(one.setting, "").strip()]
    captured = _captured(config, tables)
    return tuple(
        f"{one.setting} {one.message(columns)}" for one in others if (columns := _affected(config, captured, one))
    )


def _converts(config: Configuration) -> bool:
    """Return whether records have Connect's values: changes of an engine have Python's, and databus has its own."""
    return config.delivery.sink != "python" and config.databus.topic is None


def _captured(config: Configuration, tables: tuple[TableFact, ...]) -> list[TableFact]:
    names = captured_names(config, tables)
    return [table for table in tables if names.captures(table.database, table.name)]


def _conversion_settings(config: Configuration) -> ConversionSettings:
    chosen = config.values
    settings = ValueSettings(
        decimal_handling_mode=chosen.decimal.value,
        bigint_unsigned_handling_mode=chosen.bigint_unsigned.value,
        time_precision_mode=chosen.time_precision.value,
        enable_time_adjuster=chosen.time_adjuster,
        zero_date_handling_mode=chosen.zero_date.value,
        event_converting_failure_handling_mode=config.failure.event_converting.value,
        exact=chosen.exact,
        connector=config.flavor.value,
    )
    converters = config.converters
    value = converters.value
    told = not isinstance(value, ProtobufConverterConfig) or value.format.tells_null
    return ConversionSettings(settings, converters.key.replace_null_with_default, value.replace_null_with_default, told)


def _lossy_conversions(config: Configuration, captured: list[TableFact], *, zero_dates: bool) -> Iterator[Finding]:
    """Yield the columns whose configured representation cannot hold all values, although another one can."""
    if not _converts(config):
        return
    for conversion in active_conversions(_conversion_settings(config)):
        severity, more = Severity.WARNING, ""
        if conversion.setting == values.ZERO_DATE_HANDLING.name and not zero_dates:
            severity, more = Severity.REMARK, ". The server's sql_mode takes no new ones, but a session's may"
        if columns := _affected(config, captured, conversion):
            yield Finding(severity, conversion.setting, conversion.message(columns) + more)


def _affected(config: Configuration, captured: list[TableFact], conversion: LossyConversion) -> list[str]:
    return [
        f"{table.database}.{table.name}.{column.name}"
        for table in captured
        for column, traits in _traits(config, table)
        if conversion.affects(traits)
    ]


def _traits(config: Configuration, table: TableFact) -> Iterator[tuple[ColumnFact, ColumnTraits]]:
    """Yield the columns of records."""
    database, name = table.database, table.name
    own_key = config.capture.keys.key_columns(database, name, [column.name for column in table.columns])
    for column in table.columns:
        in_key = column.in_primary_key if own_key is None else column.name in own_key
        if in_key or config.capture.columns.captures(database, name, column.name):
            yield column, ColumnTraits(column.column_type, column.nullable, column.has_default, in_key)
