"""Rules about the server: version, binlog, GTIDs, ids, retention; pure."""

import ipaddress
from collections.abc import Iterator

from rowtide.connector.check.facts import ServerFacts
from rowtide.connector.check.findings import Finding, Severity
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.config.choices import SnapshotMode, SslMode
from rowtide.connector.source.binlog_runway import kept_age
from rowtide.connector.source.binlog_stream import registered_replica

_DAY = 86400
_OLDEST = {Flavor.MYSQL: (5, 7), Flavor.MARIADB: (10, 2)}
_NAMES = {Flavor.MYSQL: "MySQL", Flavor.MARIADB: "MariaDB"}
_TESTED = {Flavor.MYSQL: (8, 0), Flavor.MARIADB: (10, 5)}

OWN_REPLICA = Severity.REMARK, "database.server.id"
"""Severity and subject of the finding that the connector's own replica is connected, or was a moment ago."""


def server_findings(config: Configuration, facts: ServerFacts) -> Iterator[Finding]:
    """Yield the findings about the server itself; privileges and tables have their own rules."""
    yield from _kind(config, facts)
    yield from _encryption(config)
    if streams(config):
        yield from _binlog(config, facts)
        yield from _gtids(facts)
        yield from _identity(config, facts)
        yield from _retention(facts)
        yield from _left_out(facts)
        if config.streaming.semi_sync is not None:
            yield from _semi_sync(facts)
    if facts.refused_heartbeat is not None:
        message = f"the server refuses the statement, so no heartbeat runs it: {facts.refused_heartbeat}"
        yield Finding.warning("heartbeat.action.query", message)
    if config.heartbeat.action_query and not config.heartbeat.interval_ms:
        yield Finding.warning("heartbeat.action.query", "has no effect without heartbeats: set heartbeat.interval.ms")
    for name, refusal in facts.refused_queries.items():
        yield Finding.warning(name, f"the server refuses the query, and a snapshot would end with it: {refusal}")


def streams(config: Configuration) -> bool:
    """Return whether the connector reads the binlog at all."""
    if config.snapshot.mode is SnapshotMode.CONFIGURATION_BASED:
        return config.snapshot.flags.stream
    return config.snapshot.mode is not SnapshotMode.INITIAL_ONLY


def _kind(config: Configuration, facts: ServerFacts) -> Iterator[Finding]:
    flavor, release = facts.flavor, facts.release
    if flavor is not config.flavor:
        yield Finding.error(
            "connector.class",
            f"the server is {_NAMES[flavor]} ({facts.version}), but the configuration is for {config.flavor}; set "
            f"database.flavor={flavor} or the connector.class of that server",
        )
    if release < _OLDEST[flavor]:
        oldest = ".".join(map(str, _OLDEST[flavor]))
        yield Finding.error(
            "version",
            f"the server's version {facts.version} is too old; rowtide supports {_NAMES[flavor]} {oldest} and later",
        )
    elif release < _TESTED[flavor]:
        yield Finding.warning(
            "version", f"rowtide is only tested with versions newer than the server's {facts.version}"
        )


def _encryption(config: Configuration) -> Iterator[Finding]:
    """Yield a warning about ``preferred``: whoever can intercept the connection can turn TLS off."""
    if config.database.tls.mode is SslMode.PREFERRED and not _is_local(config.database.hostname):
        yield Finding.warning(
            "database.ssl.mode",
            f"is preferred, and {config.database.hostname} is another host: whoever can intercept the connection can "
            "turn TLS off, and read the password and the rows. Set verify_identity, with the certificate authority in "
            "database.ssl.truststore",
        )


def _is_local(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost" or host.lower().endswith(".localhost")


def _binlog(config: Configuration, facts: ServerFacts) -> Iterator[Finding]:
    if not facts.is_on("log_bin"):
        yield Finding.error(
            "log_bin",
            "the server writes no binlog. Start it with log_bin=binlog and a server_id in its configuration "
            "(on Amazon RDS: turn automatic backups on)",
        )
        return
    # A server without the variable supports no other format.
    binlog_format = facts.value("binlog_format") or "ROW"
    if binlog_format != "ROW":
        yield Finding.error(
            "binlog_format",
            f"is {binlog_format}: the binlog holds statements instead of rows. Set binlog_format=ROW in the server's "
            "configuration; existing sessions keep theirs until they connect again",
        )
    image = facts.value("binlog_row_image") or "FULL"
    if image not in ("FULL", "NOBLOB") and config.values.minimal_row_images:
        yield Finding.warning(
            "binlog_row_image",
            f"is {image}: columns that did not change are written as unavailable.value.placeholder or null",
        )
    elif image not in ("FULL", "NOBLOB"):
        yield Finding.error(
            "binlog_row_image",
            f"is {image}: rows in the binlog lack columns that did not change. Set binlog_row_image=FULL (NOBLOB is "
            "possible: unchanged BLOB and TEXT columns are then written as unavailable.value.placeholder), or set "
            "binlog.row.image.minimal.allowed=true to write a placeholder or null for missing columns",
        )
    elif image == "NOBLOB":
        yield Finding.remark(
            "binlog_row_image",
            "is NOBLOB: unchanged BLOB and TEXT columns are written as unavailable.value.placeholder",
        )
    if facts.value("binlog_row_value_options"):
        yield Finding.remark(
            "binlog_row_value_options",
            f"is {facts.value('binlog_row_value_options')}: JSON columns are logged as changes, which are applied to "
            "the row's old value",
        )
    if config.values.include_query:
        name = "binlog_annotate_row_events" if facts.flavor is Flavor.MARIADB else "binlog_rows_query_log_events"
        if not facts.is_on(name):
            yield Finding.warning(name, f"is OFF: the binlog has no statements for include.query=true. Set {name}=ON")


def _gtids(facts: ServerFacts) -> Iterator[Finding]:
    mode = facts.value("gtid_mode")
    if mode in ("ON_PERMISSIVE", "OFF_PERMISSIVE"):
        yield Finding.warning(
            "gtid_mode",
            f"is {mode}: some transactions have no GTID, so a position is not valid on another server. "
            "Finish the change to ON or OFF",
        )
    if mode == "ON" and facts.value("enforce_gtid_consistency") not in ("ON", "1"):
        yield Finding.warning(
            "enforce_gtid_consistency",
            f"is {facts.value('enforce_gtid_consistency')} with gtid_mode=ON: statements that break GTIDs are "
            "possible. Set enforce_gtid_consistency=ON",
        )


def _identity(config: Configuration, facts: ServerFacts) -> Iterator[Finding]:
    ours, own = config.database.server_id, facts.value("server_id")
    if own == "0":
        yield Finding.error(
            "server_id", "the server's own server_id is 0, with which it accepts no replica. Set another one"
        )
    if own == str(ours):
        yield Finding.error(
            "database.server.id",
            f"{ours} is the server's own server_id; choose an id that no server and no replica has",
        )
    registered = registered_replica(config.database)
    for replica in facts.replicas or ():
        if replica.server_id != ours:
            continue
        if registered.uuid == replica.uuid or (not replica.uuid and registered.host == replica.host):
            # This is not an error: the server still lists a replica that has just disconnected, until it sends the next
            # heartbeat.
            yield Finding(
                *OWN_REPLICA,
                f"the server lists this connector as replica {ours}, as it does for up to a minute after a stop. If it "
                "still runs, stop it before you start it again",
            )
            continue
        where = f" from {replica.host}" if replica.host else ""
        yield Finding.warning(
            "database.server.id",
            f"another replica with the id {ours} is connected to the server{where}. MariaDB would disconnect it, so "
            "rowtide waits until it has left; MySQL shows only one of them. Choose an id that no server and no replica "
            "has",
        )


def _retention(facts: ServerFacts) -> Iterator[Finding]:
    kept = kept_age(facts.value)
    if kept is not None and kept.value < _DAY:
        yield Finding.warning(
            "binlog_expire_logs_seconds",
            f"the server keeps its binlog for {kept.value:.0f} seconds only: a connector that is stopped for longer "
            "needs a new snapshot. Ten days (864000) are usual",
        )


def _left_out(facts: ServerFacts) -> Iterator[Finding]:
    updates = facts.value("log_replica_updates") or facts.value("log_slave_updates")
    if facts.is_replica and updates == "OFF":
        yield Finding.warning(
            "log_replica_updates",
            "is OFF and the server is a replica: the changes of its source are not in its own binlog. Set "
            "log_replica_updates=ON (MariaDB and before MySQL 8.0.26: log_slave_updates)",
        )
    if facts.do_databases:
        yield Finding.warning(
            "binlog_do_db",
            f"the server's binlog is limited to the databases {', '.join(facts.do_databases)}; changes in others are "
            "missing",
        )
    if facts.ignored_databases:
        yield Finding.warning(
            "binlog_ignore_db", f"the server's binlog omits the databases {', '.join(facts.ignored_databases)}"
        )


def _semi_sync(facts: ServerFacts) -> Iterator[Finding]:
    side = "source" if facts.value("rpl_semi_sync_source_enabled") is not None else "master"
    enabled, timeout = f"rpl_semi_sync_{side}_enabled", f"rpl_semi_sync_{side}_timeout"
    if facts.value(enabled) is None:
        yield Finding.error(
            "rowtide.semi.sync",
            "the server has no semi-synchronous replication. Install its plugin: INSTALL PLUGIN rpl_semi_sync_source "
            "SONAME 'semisync_source.so' (before MySQL 8.0.26: rpl_semi_sync_master, 'semisync_master.so')",
        )
    elif not facts.is_on(enabled):
        yield Finding.warning(
            enabled, f"is OFF, so commits do not wait for rowtide (rowtide.semi.sync). Set {enabled}=ON"
        )
    else:
        yield Finding.remark(
            timeout,
            f"a commit waits for rowtide for at most {facts.value(timeout)} ms; then the server continues without it, "
            "until rowtide has caught up",
        )
