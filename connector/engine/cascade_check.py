"""Checks on the server whether foreign keys' changes can be derived (``rowtide.cascaded.changes=derive``)."""

from collections import defaultdict
from collections.abc import Iterable, Iterator

from rowtide.connector.check.findings import Finding
from rowtide.connector.check.table_rules import CASCADES_LOGGED
from rowtide.connector.check.topic_checks import CheckedTable
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import capture
from rowtide.connector.config.choices import CascadedChanges
from rowtide.connector.errors import ConnectorError, SchemaError
from rowtide.connector.pipeline.cascades import Cascades
from rowtide.connector.source import server_queries
from rowtide.connector.source.session import Session
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.topics.filters import CapturedNames

_SHOWN = 3
_KEYS = (
    "SELECT TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, COLUMN_NAME, REFERENCED_TABLE_SCHEMA, REFERENCED_TABLE_NAME, "
    "REFERENCED_COLUMN_NAME FROM information_schema.KEY_COLUMN_USAGE WHERE REFERENCED_TABLE_NAME IS NOT NULL "
    "ORDER BY TABLE_SCHEMA, TABLE_NAME, CONSTRAINT_NAME, ORDINAL_POSITION"
)

_Key = tuple[str, str, tuple[str, ...]]
"""Database and table, and the columns, in lower case: those of a foreign key, or those that it references."""


def require_derivable(config: Configuration, tables: Tables) -> None:
    """Refuse to start if changes that are not logged cannot be derived.

    Args:
        config: the configuration.
        tables: every table's structure at the start position.

    Raises:
        SchemaError: a foreign key is refused, or it references another table on the server than in the history.
        DatabaseUnreachableError: the server cannot be queried.
    """
    if config.capture.cascaded_changes is not CascadedChanges.DERIVE:
        return
    with Session(config.database, mariadb=config.flavor.value == "mariadb") as session:
        if _logged(session):
            return  # row events say so, too: others are refused when they come
        cascades = Cascades(tables, CapturedNames(config.capture.tables, tables.exists))
        problems = [*cascades.problems(), *_other_parents(session, cascades)]
    if problems:
        more = f" And {len(problems) - _SHOWN} more." if len(problems) > _SHOWN else ""
        raise SchemaError(". ".join(problems[:_SHOWN]) + more)


def cascade_findings(config: Configuration, captured: Iterable[CheckedTable]) -> list[Finding]:
    """Return findings about the current tables that :func:`require_derivable` would refuse."""
    if config.capture.cascaded_changes is not CascadedChanges.DERIVE:
        return []
    try:
        with Session(config.database, mariadb=config.flavor.value == "mariadb") as session:
            if _logged(session):
                return []
            names = [TableId(one.database, one.name) for one in captured if one.topic is not None]
            tables = server_queries.structures(session, names)
    except ConnectorError as error:
        return [Finding.error("database.hostname", str(error))]
    cascades = Cascades(tables, CapturedNames(config.capture.tables, tables.exists))
    return [Finding.error(capture.CASCADED_CHANGES.name, one) for one in cascades.problems()]


def _logged(session: Session) -> bool:
    """Return whether the server logs the changes made by foreign keys."""
    if session.mariadb:
        return False
    version = str(session.query("SELECT VERSION()")[0][0])
    release = tuple(int(part) for part in version.split("-", maxsplit=1)[0].split(".")[:2])
    native = session.query("SHOW GLOBAL VARIABLES LIKE 'innodb_native_foreign_keys'")
    return release >= CASCADES_LOGGED and not any(value == "ON" for _, value in native)


def _other_parents(session: Session, cascades: Cascades) -> Iterator[str]:
    """Yield the foreign keys whose parent was renamed."""
    rows: dict[tuple[str, str, str], list[tuple[str, str, str, str]]] = defaultdict(list)
    for database, table, name, column, other_database, other_table, other in session.query(_KEYS):
        rows[database, table, name].append((column, other_database, other_table, other))
    known: dict[_Key, set[_Key]] = defaultdict(set)
    for (database, table, _), columns in rows.items():
        _, other_database, other_table, _ = columns[0]
        parent = _key(other_database, other_table, (one[3] for one in columns))
        known[_key(database, table, (one[0] for one in columns))].add(parent)
    for child, key in cascades.constraints():
        reference = key.reference
        assert reference is not None
        found = known.get(_key(child.id.database, child.id.table, key.columns), set())
        if found and _key(reference.table.database, reference.table.table, cascades.referenced(reference)) not in found:
            others = ", ".join(f"{database}.{table} ({', '.join(names)})" for database, table, names in found)
            yield (
                f"rowtide.cascaded.changes=derive: foreign key {key.name} of {child.id} references {reference.table} "
                f"in the schema history, and {others} on the server: it was renamed. Restart with "
                "rowtide.cascaded.changes=ignore and snapshot.mode=recovery once, and then with derive"
            )


def _key(database: str, table: str, columns: Iterable[str]) -> _Key:
    return database.lower(), table.lower(), tuple(column.lower() for column in columns)
