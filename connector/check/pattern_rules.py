"""Rules about the expressions of filters: report those that match nothing, with a hint about the likely mistake.

Pure.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from rowtide.connector.check.facts import TableFact
from rowtide.connector.check.findings import Finding
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import capture, snapshot, values
from rowtide.topics.filters import Patterns
from rowtide.topics.java_regex import Pattern, compile_java

_COMPARED = 10_000
"""A similar name is looked up among at most this many names, because each comparison takes some microseconds."""
_LITERAL = re.compile(r"(?:[\w$ -]|\\?\.)+")


@dataclass(frozen=True, slots=True)
class _Kind:
    """The names against which the expressions of a list are matched.

    Attributes:
        noun: the kind of object that has the names.
        form: the form of a name.
        names: the names on the server.
        shorter: the names without their database, each with the whole name.
        longer: names with one more part, if that is a likely mistake.
        instead: the list to which those names belong.
    """

    noun: str
    form: str
    names: list[str]
    shorter: dict[str, str]
    longer: list[str]
    instead: str


def pattern_findings(
    config: Configuration, tables: Iterable[TableFact], captured: Iterable[TableFact]
) -> Iterator[Finding]:
    """Yield the findings about expressions that match nothing.

    Such an expression is usually misspelt, and then, for example, a column that should be masked is not.

    Args:
        config: the configuration.
        tables: the tables that the account can see.
        captured: the captured ones among them.
    """
    tables = list(tables)
    whole = [f"{table.database}.{table.name}" for table in tables]
    databases = _Kind("database", "database", sorted({t.database for t in tables}), {}, whole, "table.include.list")
    names = _Kind("table", "database.table", whole, {t.name: f"{t.database}.{t.name}" for t in tables}, [], "")
    column_names = {
        f"{table.name}.{column.name}": f"{table.database}.{table.name}.{column.name}"
        for table in captured
        for column in table.columns
    }
    every_column = [f"{t.database}.{t.name}.{column.name}" for t in captured for column in t.columns]
    columns = _Kind("column", "database.table.column", every_column, column_names, [], "")
    for database, table in config.snapshot.select_overrides:
        if f"{database}.{table}".lower() not in map(str.lower, whole):
            message = f"table {database}.{table} does not exist, or the account has no privilege on it"
            yield Finding.warning(f"{snapshot.OVERRIDES.name}.{database}.{table}", message)
    for name, patterns, kind in _lists(config, databases, names, columns):
        for source in patterns.sources if patterns is not None else ():
            compiled = compile_java(source, ignore_case=True)
            if kind.names and not any(map(compiled.fullmatch, kind.names)):
                yield Finding.warning(name, _message(source, compiled, kind))


def _lists(
    config: Configuration, databases: _Kind, tables: _Kind, columns: _Kind
) -> Iterator[tuple[str, Patterns | None, _Kind]]:
    chosen, chosen_columns = config.capture.tables, config.capture.columns.columns
    yield capture.DATABASE_INCLUDE.name, chosen.databases.include, databases
    yield capture.DATABASE_EXCLUDE.name, chosen.databases.exclude, databases
    yield capture.TABLE_INCLUDE.name, chosen.tables.include, tables
    yield capture.TABLE_EXCLUDE.name, chosen.tables.exclude, tables
    if isinstance(config.snapshot.include, Patterns):
        yield snapshot.INCLUDE_COLLECTIONS.name, config.snapshot.include, tables
    yield capture.COLUMN_INCLUDE.name, chosen_columns.include, columns
    yield capture.COLUMN_EXCLUDE.name, chosen_columns.exclude, columns
    yield values.COLUMN_PROPAGATE.name, config.values.propagate_columns.patterns, columns
    for _, patterns in config.values.column_rules.rules:
        yield "column.mask… or column.truncate…", patterns, columns
    for patterns in config.capture.keys.columns:
        yield capture.MESSAGE_KEY_COLUMNS.name, patterns, columns


def _message(source: str, compiled: Pattern, kind: _Kind) -> str:
    for name, whole in kind.shorter.items():
        if compiled.fullmatch(name):
            return f"{source!r} matches nothing, because it lacks the database: write {kind.form}, such as {whole}"
    for name in kind.longer:
        if compiled.fullmatch(name):
            return f"{source!r} matches nothing, because it is not the name of a {kind.noun}: use {kind.instead}"
    near: list[str] = []
    if len(kind.names) <= _COMPARED:
        import difflib  # noqa: PLC0415 - only after a mistake

        near = difflib.get_close_matches(source.replace("\\", ""), kind.names, n=1, cutoff=0.8)
    hint = f". Did you mean {near[0]}?" if near else ""
    if _LITERAL.fullmatch(source) and kind.noun == "table":
        name = source.replace("\\", "")
        if "." not in name:
            return f"{source!r} matches nothing, because it lacks the database: write {kind.form}{hint}"
        return f"table {name} does not exist, or the account has no privilege on it{hint}"
    return f"{source!r} matches nothing on the server now{hint}"
