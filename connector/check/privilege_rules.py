"""Rules about the privileges of the account; pure."""

from collections.abc import Iterator

from rowtide.connector.check.facts import ServerFacts, captured_names
from rowtide.connector.check.findings import Finding
from rowtide.connector.check.privileges import Privileges
from rowtide.connector.check.server_rules import streams
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.choices import SnapshotLocking, SnapshotMode
from rowtide.connector.errors import some_of
from rowtide.topics.filters import is_builtin


def privilege_findings(config: Configuration, facts: ServerFacts) -> Iterator[Finding]:
    """Yield the findings about missing privileges, each with the statement that grants it."""
    privileges = Privileges.parse(facts.grants)
    found = [*_reading(config, facts, privileges)]
    if streams(config):
        found += _replication(config, facts, privileges)
    if _locks(config):
        found += _locking(config, facts, privileges)
    yield from found
    if found and privileges.roles:
        yield Finding.remark(
            "database.user",
            f"the account has the roles {', '.join(privileges.roles)}; a role that is not active after the "
            f"log-in grants nothing: SET DEFAULT ROLE … {_to(facts)} {config.database.user}",
        )


def _to(facts: ServerFacts) -> str:
    return "FOR" if facts.flavor is Flavor.MARIADB else "TO"


def _grant(config: Configuration, privileges: str) -> str:
    return f"GRANT {privileges} ON *.* TO '{config.database.user}'@'…'"


def _replication(config: Configuration, facts: ServerFacts, privileges: Privileges) -> Iterator[Finding]:
    if not privileges.has("REPLICATION SLAVE"):
        yield Finding.error(
            "database.user",
            "the account lacks REPLICATION SLAVE, without which the server sends no binlog: "
            + _grant(config, "REPLICATION SLAVE"),
        )
    if not privileges.has_any("REPLICATION CLIENT", "SUPER") or facts.unreadable_status is not None:
        name = "BINLOG MONITOR" if facts.flavor is Flavor.MARIADB and facts.release >= (10, 5) else "REPLICATION CLIENT"
        yield Finding.error(
            "database.user",
            f"the account lacks {name}, without which it cannot read the binlog's position: {_grant(config, name)}",
        )


def _locks(config: Configuration) -> bool:
    """Return whether a snapshot may lock tables."""
    return config.snapshot.locking is not SnapshotLocking.NONE and (
        config.snapshot.mode is not SnapshotMode.CONFIGURATION_BASED
        or config.snapshot.flags.data
        or config.snapshot.flags.schema
    )


def _locking(config: Configuration, facts: ServerFacts, privileges: Privileges) -> Iterator[Finding]:
    if privileges.has("RELOAD") or privileges.has("FLUSH_TABLES"):
        return
    if _everywhere("LOCK TABLES", config, facts, privileges):
        yield Finding.warning(
            "snapshot.locking.mode",
            "the account lacks RELOAD, so a snapshot must lock the tables themselves, and hold those locks until all "
            f"rows are read. To lock for a moment only: {_grant(config, 'RELOAD')}",
        )
        return
    yield Finding.error(
        "database.user",
        f"the account has neither RELOAD nor LOCK TABLES, one of which a snapshot needs: {_grant(config, 'RELOAD')}, "
        "or set snapshot.locking.mode=none if nobody changes structures while it runs",
    )


def _reading(config: Configuration, facts: ServerFacts, privileges: Privileges) -> Iterator[Finding]:
    if not privileges.has("SELECT"):
        names = captured_names(config, facts.tables or ())
        unreadable = [
            f"{table.database}.{table.name}"
            for table in facts.tables or ()
            if names.captures(table.database, table.name) and not privileges.has("SELECT", table.database, table.name)
        ]
        if unreadable:
            yield Finding.error(
                "database.user",
                f"the account cannot read {some_of(unreadable)}: {_grant(config, 'SELECT')}, or "
                "exclude them with table.exclude.list",
            )
        elif not any(grant.names & {"SELECT", "ALL PRIVILEGES", "ALL"} for grant in privileges.grants):
            yield Finding.error("database.user", f"the account cannot read any table: {_grant(config, 'SELECT')}")
        elif not privileges.has("SHOW DATABASES"):
            yield Finding.remark(
                "database.user",
                "the account has SELECT on some databases only and lacks SHOW DATABASES: databases that it cannot see "
                "are not captured, without an error",
            )


def _everywhere(name: str, config: Configuration, facts: ServerFacts, privileges: Privileges) -> bool:
    """Return whether the account has a privilege on every captured table, or anywhere if no table is known."""
    if privileges.has(name):
        return True
    databases = {
        table.database
        for table in facts.tables or ()
        if not is_builtin(table.database) and config.capture.tables.captures(table.database, table.name)
    }
    if databases:
        return all(privileges.has(name, database) for database in databases)
    return any(name in grant.names or "ALL PRIVILEGES" in grant.names for grant in privileges.grants)
