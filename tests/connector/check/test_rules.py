"""The rules about servers, accounts and tables."""

from collections.abc import Callable
from typing import Any

import pytest

from rowtide.connector import check
from rowtide.connector.check import CheckFailedError, Finding, Severity, errors_in, evaluate
from rowtide.connector.check.facts import Cascade, ColumnFact, Replica, ServerFacts, TableFact
from rowtide.connector.config import Configuration, Flavor
from rowtide.connector.source.binlog_stream import registered_replica

Facts = Callable[..., ServerFacts]
Configured = Callable[..., Configuration]
MARIADB = {"binlog_rows_query_log_events": None, "gtid_mode": None, "enforce_gtid_consistency": None}


def test_a_server_in_order_has_no_finding(facts: Facts, configured: Configured) -> None:
    assert evaluate(configured(), facts()) == []


@pytest.mark.parametrize(
    ("variables", "severity", "subject", "text"),
    [
        ({"log_bin": "OFF"}, Severity.ERROR, "log_bin", "writes no binlog"),
        ({"binlog_format": "STATEMENT"}, Severity.ERROR, "binlog_format", "is STATEMENT"),
        ({"binlog_format": "MIXED"}, Severity.ERROR, "binlog_format", "Set binlog_format=ROW"),
        ({"binlog_row_image": "MINIMAL"}, Severity.ERROR, "binlog_row_image", "Set binlog_row_image=FULL"),
        ({"binlog_row_image": "NOBLOB"}, Severity.REMARK, "binlog_row_image", "unavailable.value.placeholder"),
        ({"binlog_row_value_options": "PARTIAL_JSON"}, Severity.REMARK, "binlog_row_value_options", "PARTIAL_JSON"),
        ({"gtid_mode": "ON_PERMISSIVE"}, Severity.WARNING, "gtid_mode", "Finish the change"),
        ({"enforce_gtid_consistency": "WARN"}, Severity.WARNING, "enforce_gtid_consistency", "is WARN"),
        ({"server_id": "5400"}, Severity.ERROR, "database.server.id", "the server's own server_id"),
        ({"server_id": "0"}, Severity.ERROR, "server_id", "accepts no replica"),
        ({"binlog_expire_logs_seconds": "3600"}, Severity.WARNING, "binlog_expire_logs_seconds", "3600 seconds only"),
    ],
)
def test_a_setting_of_the_server(
    variables: dict[str, str], severity: Severity, subject: str, text: str, facts: Facts, configured: Configured
) -> None:
    (finding,) = evaluate(configured(), facts(variables))
    assert (finding.severity, finding.subject) == (severity, subject)
    assert text in finding.message


@pytest.mark.parametrize("host", ["db.example.com", "10.0.0.7", "2001:db8::1"])
def test_preferred_tls_to_another_host(host: str, facts: Facts, configured: Configured) -> None:
    (finding,) = evaluate(configured({"database.hostname": host}), facts())
    assert (finding.severity, finding.subject) == (Severity.WARNING, "database.ssl.mode")
    assert host in finding.message
    assert "verify_identity" in finding.message
    for mode in ("disabled", "required", "verify_ca", "verify_identity"):
        assert evaluate(configured({"database.hostname": host, "database.ssl.mode": mode}), facts()) == []


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.8.0.1", "::1", "db.localhost"])
def test_preferred_tls_to_this_host(host: str, facts: Facts, configured: Configured) -> None:
    assert evaluate(configured({"database.hostname": host}), facts()) == []


@pytest.mark.parametrize(
    "variables",
    [
        {"binlog_format": None, "binlog_row_image": None},  # a server that knows nothing else
        {"binlog_expire_logs_seconds": "0"},
        {"binlog_expire_logs_seconds": "60", "binlog_expire_logs_auto_purge": "OFF"},
        {"binlog_expire_logs_seconds": None, "expire_logs_days": "10"},
        {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"},
    ],
)
def test_settings_in_order(variables: dict[str, str | None], facts: Facts, configured: Configured) -> None:
    assert evaluate(configured(), facts(variables)) == []


def test_the_format_of_a_binlog_that_is_off_is_not_a_finding(facts: Facts, configured: Configured) -> None:
    found = evaluate(configured(), facts({"log_bin": "OFF", "binlog_format": "STATEMENT"}))
    assert [finding.subject for finding in found] == ["log_bin"]


def test_a_snapshot_alone_needs_no_binlog(facts: Facts, configured: Configured) -> None:
    spoilt = facts({"log_bin": "OFF", "server_id": "5400"}, grants=("GRANT SELECT, RELOAD ON *.* TO `dbz`@`%`",))
    assert evaluate(configured({"snapshot.mode": "initial_only"}), spoilt) == []
    assert errors_in(evaluate(configured(), spoilt))


@pytest.mark.parametrize(
    ("version", "severity"),
    [
        ("5.5.62", Severity.ERROR),
        ("5.7.44", Severity.WARNING),
        ("8.0.36", None),
        ("8.4.6", None),
        ("9.7.4-2", None),
        ("10.1.48-MariaDB", Severity.ERROR),
        ("5.5.5-10.4.34-MariaDB-log", Severity.WARNING),
        ("11.4.5-MariaDB-log", None),
    ],
)
def test_versions(version: str, severity: Severity | None, facts: Facts, configured: Configured) -> None:
    server = facts(version=version)
    config = configured({"database.flavor": server.flavor.value})
    found = [finding for finding in evaluate(config, server) if finding.subject == "version"]
    assert [finding.severity for finding in found] == ([severity] if severity else [])


def test_the_wrong_kind_of_server(facts: Facts, configured: Configured) -> None:
    (finding,) = evaluate(configured(), facts(MARIADB, version="11.4.5-MariaDB-log"))
    assert finding.subject == "connector.class"
    assert "database.flavor=mariadb" in finding.message
    assert facts(version="11.4.5-MariaDB-log").flavor is Flavor.MARIADB


def test_include_query_without_statements_in_the_binlog(facts: Facts, configured: Configured) -> None:
    config = configured({"include.query": "true"})
    assert [finding.subject for finding in evaluate(config, facts())] == ["binlog_rows_query_log_events"]
    assert evaluate(config, facts({"binlog_rows_query_log_events": "ON"})) == []
    mariadb = configured({"include.query": "true", "database.flavor": "mariadb"})
    server = facts({**MARIADB, "binlog_annotate_row_events": "OFF"}, version="11.4.5-MariaDB")
    assert [finding.subject for finding in evaluate(mariadb, server)] == ["binlog_annotate_row_events"]


def test_another_replica_with_the_same_id(facts: Facts, configured: Configured) -> None:
    others = (Replica(5399, "x"), Replica(5400, "10.0.0.9", "a6c0"))
    (finding,) = evaluate(configured(), facts(replicas=others))
    assert finding.severity is Severity.WARNING
    assert "from 10.0.0.9" in finding.message
    assert evaluate(configured(), facts(replicas=None)) == []


def test_the_connectors_own_replica_is_not_an_alarm(facts: Facts, configured: Configured) -> None:
    registered = registered_replica(configured().database)
    for own in (Replica(5400, "", registered.uuid), Replica(5400, registered.host)):
        (finding,) = evaluate(configured(), facts(replicas=(own,)))
        assert finding.severity is Severity.REMARK


def test_a_start_does_not_mention_its_own_replica(configured: Configured, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Finding(Severity.REMARK, "rowtide.online.schema.change.tables", "left out")
    found = [Finding(Severity.REMARK, "database.server.id", "the server lists this connector"), other]
    monkeypatch.setattr(check, "check", lambda _config, **_: check.CheckReport(found))
    assert check.require(configured()).findings == [other]
    warning = found[0]._replace(severity=Severity.WARNING)
    monkeypatch.setattr(check, "check", lambda _config, **_: check.CheckReport([warning]))
    assert check.require(configured()).findings == [warning]


def test_a_start_on_another_worker_checks_the_server_only(
    configured: Configured, facts: Facts, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []

    def queried(_config: Configuration, *, tables: bool, estimates: bool) -> ServerFacts:
        asked.append(tables)
        return facts({"binlog_format": "STATEMENT"}, tables=None)

    def not_asked(*_given: object, **_more: object) -> None:
        pytest.fail("Kafka is not checked")

    monkeypatch.setattr(check, "fetch_facts", queried)
    monkeypatch.setattr(check, "broker_findings", not_asked)
    monkeypatch.setattr(check, "topic_findings", not_asked)
    with pytest.raises(check.CheckFailedError, match="binlog_format"):
        check.require(configured(), server_only=True)
    assert asked == [False]


@pytest.mark.parametrize("side", ["source", "master"])
def test_semi_synchronous_replication(side: str, facts: Facts, configured: Configured) -> None:
    config = configured({"rowtide.semi.sync": "true"})
    (finding,) = evaluate(config, facts())
    assert (finding.severity, finding.subject) == (Severity.ERROR, "rowtide.semi.sync")
    assert "INSTALL PLUGIN" in finding.message
    name = f"rpl_semi_sync_{side}"
    (finding,) = evaluate(config, facts({f"{name}_enabled": "OFF", f"{name}_timeout": "10000"}))
    assert (finding.severity, finding.subject) == (Severity.WARNING, f"{name}_enabled")
    (finding,) = evaluate(config, facts({f"{name}_enabled": "ON", f"{name}_timeout": "10000"}))
    assert (finding.severity, finding.subject) == (Severity.REMARK, f"{name}_timeout")
    assert "at most 10000 ms" in finding.message
    assert evaluate(configured(), facts()) == []


def test_what_the_binlog_leaves_out(facts: Facts, configured: Configured) -> None:
    server = facts({"log_replica_updates": "OFF"}, is_replica=True, do_databases=("a", "b"), ignored_databases=("c",))
    found = evaluate(configured(), server)
    assert [finding.subject for finding in found] == ["log_replica_updates", "binlog_do_db", "binlog_ignore_db"]
    assert all(finding.severity is Severity.WARNING for finding in found)


def granted(*names: str, where: str = "*.*") -> str:
    return f"GRANT {', '.join(names)} ON {where} TO `dbz`@`%`"


ALL = ("SELECT", "RELOAD", "SHOW DATABASES", "REPLICATION SLAVE", "REPLICATION CLIENT")


@pytest.mark.parametrize("missing", ALL)
def test_a_missing_privilege_is_reported_with_its_grant(missing: str, facts: Facts, configured: Configured) -> None:
    found = evaluate(configured(), facts(grants=(granted(*(set(ALL) - {missing})),)))
    if missing == "SHOW DATABASES":
        assert found == []
        return
    (finding,) = found
    assert finding.severity is Severity.ERROR
    assert finding.subject == "database.user"
    assert f"GRANT {missing} ON *.* TO 'dbz'@'…'" in finding.message


def test_mariadbs_name_of_a_privilege(facts: Facts, configured: Configured) -> None:
    mariadb = configured({"database.flavor": "mariadb"})
    (finding,) = evaluate(
        mariadb, facts(MARIADB, version="11.4.5-MariaDB", grants=(granted("SELECT", "RELOAD", "REPLICATION SLAVE"),))
    )
    assert "GRANT BINLOG MONITOR" in finding.message


def test_roles_that_may_not_be_active_are_named(facts: Facts, configured: Configured) -> None:
    found = evaluate(configured(), facts(grants=(granted(*ALL[1:]), "GRANT `cdc`@`%` TO `dbz`@`%`")))
    assert [finding.severity for finding in found] == [Severity.ERROR, Severity.REMARK]
    assert "SET DEFAULT ROLE … TO dbz" in found[1].message


def test_tables_are_locked_one_by_one_without_reload(facts: Facts, configured: Configured) -> None:
    some = granted("SELECT", "REPLICATION SLAVE", "REPLICATION CLIENT")
    found = evaluate(configured(), facts(grants=(some, granted("LOCK TABLES", where="`shop`.*"))))
    assert [(finding.severity, finding.subject) for finding in found] == [(Severity.WARNING, "snapshot.locking.mode")]
    found = evaluate(configured(), facts(grants=(some, granted("LOCK TABLES", where="`other`.*"))))
    assert errors_in(found)
    assert evaluate(configured({"snapshot.locking.mode": "none"}), facts(grants=(some,))) == []
    assert evaluate(configured(), facts(grants=(some, "GRANT FLUSH_TABLES ON *.* TO `dbz`@`%`"))) == []


def test_tables_that_cannot_be_read_are_named(facts: Facts, configured: Configured) -> None:
    replication = granted("RELOAD", "REPLICATION SLAVE", "REPLICATION CLIENT")
    found = evaluate(configured(), facts(grants=(replication, granted("SELECT", where="`shop`.`lines`"))))
    assert "cannot read shop.orders" in errors_in(found)[0].message
    some = (replication, granted("SELECT", where="`shop`.*"))
    found = evaluate(configured(), facts(grants=some))
    assert [finding.severity for finding in found] == [Severity.REMARK]
    found = evaluate(configured(), facts(grants=(replication,), tables=None))
    assert "cannot read any table" in found[0].message


@pytest.mark.parametrize(
    ("properties", "subject", "text"),
    [
        ({"table.include.list": "shop\\.orders,shop\\.nothing"}, "table.include.list", "shop.nothing does not exist"),
        ({"table.exclude.list": "shpo\\..*"}, "table.exclude.list", "'shpo\\\\..*' matches nothing"),
        ({"database.include.list": "shop,other"}, "database.include.list", "'other'"),
        ({"column.exclude.list": "shop.orders.secret"}, "column.exclude.list", "matches nothing"),
        ({"column.mask.with.3.chars": "shop.orders.scret"}, "column.mask… or column.truncate…", "matches nothing"),
        ({"message.key.columns": "shop.orders:nokey"}, "message.key.columns", "matches nothing"),
        ({"guardrail.collections.max": "1"}, "guardrail.collections.max", "2 tables are captured"),
        ({"bigint.unsigned.handling.mode": "long"}, "bigint.unsigned.handling.mode", "shop.orders.id"),
    ],
)
def test_findings_about_tables(
    properties: dict[str, str], subject: str, text: str, facts: Facts, configured: Configured
) -> None:
    found = {
        finding.subject: finding for finding in evaluate(configured(properties), facts()) if text in finding.message
    }
    assert found[subject].severity is Severity.WARNING


def test_small_row_images_may_be_allowed(facts: Facts, configured: Configured) -> None:
    (finding,) = evaluate(configured(), facts({"binlog_row_image": "MINIMAL"}))
    assert finding.severity is Severity.ERROR
    assert "binlog.row.image.minimal.allowed=true" in finding.message
    allowed = configured({"binlog.row.image.minimal.allowed": "true"})
    (finding,) = evaluate(allowed, facts({"binlog_row_image": "MINIMAL"}))
    assert finding.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("mode", "severity"),
    [
        ("", Severity.WARNING),
        ("STRICT_TRANS_TABLES,NO_ZERO_DATE", Severity.WARNING),
        ("NO_ZERO_DATE,NO_ZERO_IN_DATE", Severity.WARNING),
        ("STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE", Severity.REMARK),
    ],
)
def test_columns_with_zero_dates(mode: str, severity: Severity, facts: Facts, configured: Configured) -> None:
    columns = {"id": "int", "d": "date", "dt": "datetime(6)", "ts": "timestamp", "hidden": "date", "t": "time"}
    columns_of = [ColumnFact(name, kind, nullable=False) for name, kind in columns.items()]
    tables = (TableFact("d", "t", (*columns_of, ColumnFact("n", "date", nullable=True))),)
    own = {"column.exclude.list": r"d\.t\.hidden", "zero.date.handling.mode": "epoch"}
    (finding,) = evaluate(configured(own), facts({"sql_mode": mode}, tables=tables))
    assert (finding.severity, finding.subject) == (severity, "zero.date.handling.mode")
    assert "NOT NULL columns d.t.d, d.t.dt, d.t.ts. null distinguishes" in finding.message
    assert evaluate(configured(own | {"zero.date.handling.mode": "null"}), facts(tables=tables)) == []
    assert evaluate(configured({"column.exclude.list": r"d\.t\.hidden"}), facts(tables=tables)) == []


def test_no_table_is_captured(facts: Facts, configured: Configured) -> None:
    (finding,) = evaluate(configured(), facts(tables=()))
    assert "can see no table at all" in finding.message
    found = errors_in(evaluate(configured({"database.include.list": "sh"}), facts()))
    assert ["2 tables" in error.message and "databases shop" in error.message for error in found] == [True]
    assert found[0].tolerated  # tables may be created later


def test_a_guardrail_may_fail(facts: Facts, configured: Configured) -> None:
    limits = {"guardrail.collections.max": "1", "guardrail.collections.limit.action": "fail"}
    assert errors_in(evaluate(configured(limits), facts()))


def test_topics_that_clash_are_errors(facts: Facts, configured: Configured) -> None:
    tables = tuple(TableFact("d", name, (ColumnFact("id", "int", nullable=False),)) for name in ("a b", "a$b"))
    (finding,) = evaluate(configured(), facts(tables=tables))
    assert finding.severity is Severity.ERROR
    assert "would both be written to topic 'shop.d.a_b'" in finding.message


def test_all_errors_are_in_one_exception() -> None:
    findings: list[Any] = [
        Finding(Severity.WARNING, "c", "three"),
        Finding(Severity.ERROR, "a", "one"),
        Finding(Severity.ERROR, "b", "two"),
    ]
    error = CheckFailedError(findings)
    assert str(error) == "the connector cannot start:\n  - a: one\n  - b: two"
    assert [finding.subject for finding in error.findings] == ["a", "b", "c"]


def test_helper_tables_of_online_schema_changes_are_named(facts: Facts, configured: Configured) -> None:
    names = ("orders", "_orders_new", "_lines_new")
    tables = tuple(TableFact("shop", name, (ColumnFact("id", "int", nullable=False),)) for name in names)
    (finding,) = evaluate(configured({"guardrail.collections.max": "2"}), facts(tables=tables))
    assert (finding.severity, finding.subject) == (Severity.REMARK, "rowtide.online.schema.change.tables")
    assert "skipped as helper tables of online schema changes: shop._orders_new (of orders)." in finding.message
    grants = (
        granted("RELOAD", "REPLICATION SLAVE", "REPLICATION CLIENT"),
        granted("SELECT", where="`shop`.`orders`"),
        granted("SELECT", where="`shop`.`_lines_new`"),
    )
    assert not errors_in(evaluate(configured(), facts(grants=grants, tables=tables)))
    for own in ({"rowtide.online.schema.change.tables": "none"}, {"table.include.list": "shop._orders_new"}):
        assert evaluate(configured(own), facts(tables=tables)) == []


CASCADES = (
    Cascade("shop", "lines", "shop.orders", ("ON DELETE CASCADE", "ON UPDATE SET NULL")),
    Cascade("other", "lines", "shop.orders", ("ON DELETE CASCADE",)),
)


@pytest.mark.parametrize(
    ("version", "variables", "lost"),
    [
        ("8.4.3", {}, True),
        ("9.5.0", {}, True),
        ("9.6.0", {}, False),
        ("9.7.0", {"innodb_native_foreign_keys": "OFF"}, False),
        ("9.7.0", {"innodb_native_foreign_keys": "ON"}, True),
        ("11.4.5-MariaDB-log", MARIADB, True),
    ],
)
def test_changes_that_foreign_keys_make(
    version: str, variables: dict[str, str | None], lost: bool, facts: Facts, configured: Configured
) -> None:
    flavor = {"database.flavor": "mariadb"} if "MariaDB" in version else {}
    config = configured({"connector.class": "", "database.include.list": "shop"} | flavor)
    found = [
        finding.message
        for finding in evaluate(config, facts(variables, version=version, cascades=CASCADES))
        if "foreign keys" in finding.message
    ]
    assert len(found) == lost
    if lost:
        assert "shop.lines (ON DELETE CASCADE and ON UPDATE SET NULL of shop.orders)" in found[0]
        assert "other.lines" not in found[0]
    assert [one for one in evaluate(config, facts(variables, version=version)) if "foreign keys" in one.message] == []
