"""Rules about the captured tables: filters, topic names, limits, and values that are not representable; pure."""

from collections.abc import Iterator

from rowtide.connector.check.facts import TableFact, captured_names
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.check.pattern_rules import pattern_findings
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import capture
from rowtide.connector.config.choices import BigintUnsignedHandling, LimitAction, ZeroDateHandling
from rowtide.connector.records.lossy_conversions import OVERFLOW, ZERO_DATES, LossyConversion
from rowtide.topics.filters import CapturedNames
from rowtide.topics.naming import TopicNameClashError, TopicNames

_SHOWN = 5


def table_findings(
    config: Configuration, tables: tuple[TableFact, ...], *, zero_dates: bool = True
) -> Iterator[Finding]:
    """Findings about filters that match nothing, topic names that clash, exceeded limits, and lossy conversions.

    Args:
        config: the configuration.
        tables: what is there.
        zero_dates: whether the server lets everybody write zero dates.
    """
    names = captured_names(config, tables)
    captured = [table for table in tables if names.captures(table.database, table.name)]
    yield from _helpers(names, tables)
    yield from _nothing(config, tables, captured)
    yield from pattern_findings(config, tables, captured)
    yield from _clashes(config, captured)
    yield from _guardrail(config, captured)
    yield from _lossy_conversions(config, captured, zero_dates=zero_dates)


def _helpers(names: CapturedNames, tables: tuple[TableFact, ...]) -> Iterator[Finding]:
    left_out = [
        f"{table.database}.{table.name} (of {names.helped(table.database, table.name)})"
        for table in tables
        if names.leaves_out(table.database, table.name)
    ]
    if left_out:
        more = f" and {len(left_out) - _SHOWN} more" if len(left_out) > _SHOWN else ""
        message = (
            f"left out as helper tables of online schema changes: {', '.join(left_out[:_SHOWN])}{more}. To capture "
            "one, name it in table.include.list"
        )
        yield Finding(Severity.REMARK, capture.ONLINE_SCHEMA_CHANGE.name, message)


def _nothing(config: Configuration, tables: tuple[TableFact, ...], captured: list[TableFact]) -> Iterator[Finding]:
    if captured:
        return
    user = config.database.user
    if tables:
        seen = sorted({table.database for table in tables})
        more = f" and {len(seen) - _SHOWN} more" if len(seen) > _SHOWN else ""
        message = (
            f"no table is captured: the filters match none that user {user!r} can see ({len(tables)} "
            f"table{'s' * (len(tables) != 1)} in the databases {', '.join(seen[:_SHOWN])}{more})"
        )
    else:
        message = f"no table is captured: user {user!r} can see no table at all. Grant it SELECT, or create the tables"
    # The worker starts: tables that are created later are captured, if they match.
    yield Finding(Severity.ERROR, capture.TABLE_INCLUDE.name, message, tolerated=True)


def _clashes(config: Configuration, captured: list[TableFact]) -> Iterator[Finding]:
    names = TopicNames(config.topics.naming)
    for table in captured:
        try:
            names.data_change(table.database, table.name)
        except TopicNameClashError as error:
            yield Finding(Severity.ERROR, "topic.naming.strategy", str(error))


def _guardrail(config: Configuration, captured: list[TableFact]) -> Iterator[Finding]:
    most = config.guardrail.max_tables
    if most and len(captured) > most:
        yield Finding(
            Severity.ERROR if config.guardrail.action is LimitAction.FAIL else Severity.WARNING,
            "guardrail.collections.max",
            f"{len(captured)} tables are captured, but the limit is {most}; narrow table.include.list, or raise "
            "the limit",
        )


def _lossy_conversions(config: Configuration, captured: list[TableFact], *, zero_dates: bool) -> Iterator[Finding]:
    """Columns whose configured representation cannot hold all values, though another one can."""
    if config.delivery.sink == "python":  # changes have Python values, which lose nothing
        return
    if config.values.bigint_unsigned is BigintUnsignedHandling.LONG:
        yield from _lossy_conversion(config, captured, OVERFLOW, Severity.WARNING, "")
    if config.values.zero_date is ZeroDateHandling.EPOCH:
        severity, more = Severity.WARNING, ""
        if not zero_dates:
            severity, more = Severity.REMARK, ". The server's sql_mode takes no new ones, but a session's may"
        yield from _lossy_conversion(config, captured, ZERO_DATES, severity, more)


def _lossy_conversion(
    config: Configuration, captured: list[TableFact], conversion: LossyConversion, severity: Severity, more: str
) -> Iterator[Finding]:
    columns = [
        f"{table.database}.{table.name}.{column.name}"
        for table in captured
        for column in table.columns
        if conversion.affects(column.column_type, column.nullable)
        and config.capture.columns.captures(table.database, table.name, column.name)
    ]
    if columns:
        yield Finding(severity, conversion.setting, conversion.message(columns) + more)
