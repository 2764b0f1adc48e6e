"""The check against real servers: no finding if all is in order, and the finding for each mistake."""

import json
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from confluent_kafka.admin import AdminClient, NewTopic
from rowtide_stack import Database, Kafka, MariaDB, MySQL
from rowtide_stack.ports import free_port
from rowtide_stack.servers.sql import SqlServer

from rowtide.cli import main
from rowtide.connector.check import Finding, Severity, check, check_database, errors_in
from rowtide.connector.check.broker import broker_findings
from rowtide.connector.check.facts import VARIABLES
from rowtide.connector.check.server import fetch_facts
from rowtide.connector.check.topic_checks import topic_findings
from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.engine.start.position import start_findings
from rowtide.connector.engine.wiring import offset_store
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.admin.topic_admin import TopicAdmin
from tests.support.connector_properties import address

pytestmark = pytest.mark.servers

PRIVILEGES = "SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT"


@pytest.fixture
def closed_port() -> int:
    """A port on which nothing listens."""
    return free_port()


def properties(server: SqlServer, servers: str = "127.0.0.1:1", **more: str) -> dict[str, str]:
    return {
        "name": "checked",
        "database.flavor": server.name,
        "topic.prefix": "checked",
        **address(server),
        "database.server.id": "5400",
        "bootstrap.servers": servers,
        "schema.history.internal.kafka.topic": f"history-{uuid.uuid4().hex[:8]}",
        **{name.replace("_", "."): value for name, value in more.items()},
    }


def config(server: SqlServer, servers: str = "127.0.0.1:1", **more: str) -> Configuration:
    return from_properties(properties(server, servers, **more))


def with_a_table(server: SqlServer) -> SqlServer:
    """The server, with a table to capture: to capture nothing is an error."""
    server.execute("CREATE DATABASE IF NOT EXISTS to_capture", "CREATE TABLE IF NOT EXISTS to_capture.t (id INT)")
    return server


@pytest.fixture(scope="module")
def mysql(mysql: MySQL) -> Iterator[MySQL]:
    with_a_table(mysql)
    yield mysql
    mysql.execute("DROP DATABASE to_capture")


@pytest.fixture(scope="module")
def mariadb(mariadb: MariaDB) -> Iterator[MariaDB]:
    with_a_table(mariadb)
    yield mariadb
    mariadb.execute("DROP DATABASE to_capture")


@pytest.fixture(params=["mysql", "mariadb"])
def server(request: pytest.FixtureRequest) -> SqlServer:
    found: SqlServer = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def user(server: SqlServer) -> Iterator[str]:
    """An account without privileges, with the password ``pw``."""
    name = f"u_{uuid.uuid4().hex[:8]}"
    server.execute(f"CREATE USER {name} IDENTIFIED BY 'pw'")
    yield name
    server.execute(f"DROP USER {name}")


def subjects(findings: list[Finding], severity: Severity = Severity.ERROR) -> list[str]:
    return [finding.subject for finding in findings if finding.severity is severity]


def test_a_server_in_order_has_no_finding(mysql_db: Database, kafka: Kafka) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    found = check(config(mysql_db.server, kafka.bootstrap, database_include_list=mysql_db.name)).findings
    assert [finding.subject for finding in found] == ["rowtide.values"]  # a note that says which values hold


def test_mariadb_in_order_has_no_error(mariadb_db: Database, kafka: Kafka) -> None:
    mariadb_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    found = check(config(mariadb_db.server, kafka.bootstrap, database_include_list=mariadb_db.name)).findings
    assert errors_in(found) == ()


def test_the_variables_of_the_rules_are_queried(server: SqlServer) -> None:
    all_variables = {str(name).lower(): str(value) for name, value in server.query("SHOW GLOBAL VARIABLES")}
    asked = {name: value for name, value in all_variables.items() if name in VARIABLES}
    assert fetch_facts(config(server)).variables == asked
    assert {"log_bin", "binlog_format", "binlog_row_image", "server_id", "sql_mode"} <= asked.keys()


def test_the_documented_privileges_are_enough(server: SqlServer, user: str) -> None:
    server.execute(f"GRANT {PRIVILEGES} ON *.* TO {user}")
    found, facts = check_database(config(server, database_user=user, database_password="pw"))
    assert errors_in(found) == ()
    assert facts is not None
    assert facts.unreadable_status is None


@pytest.mark.parametrize("missing", ["RELOAD", "REPLICATION SLAVE", "REPLICATION CLIENT"])
def test_a_missing_privilege(server: SqlServer, user: str, missing: str) -> None:
    kept = ", ".join(name for name in PRIVILEGES.split(", ") if name != missing)
    server.execute(f"GRANT {kept} ON *.* TO {user}")
    found, _ = check_database(config(server, database_user=user, database_password="pw"))
    (error,) = errors_in(found)
    name = "BINLOG MONITOR" if server.name == "mariadb" and missing == "REPLICATION CLIENT" else missing
    assert error.subject == "database.user"
    assert name in error.message
    assert f"TO '{user}'" in error.message


def test_privileges_of_a_role_count_when_it_is_active(server: SqlServer, user: str) -> None:
    role = f"r_{uuid.uuid4().hex[:8]}"
    server.execute(f"CREATE ROLE {role}", f"GRANT {PRIVILEGES} ON *.* TO {role}", f"GRANT {role} TO {user}")
    try:
        configuration = config(server, database_user=user, database_password="pw")
        found, _ = check_database(configuration)
        assert errors_in(found)
        assert any(role in finding.message for finding in found if finding.severity is Severity.REMARK)
        to = "FOR" if server.name == "mariadb" else "TO"
        server.execute(f"SET DEFAULT ROLE {role} {to} {user}")
        found, _ = check_database(configuration)
        assert errors_in(found) == ()
    finally:
        server.execute(f"DROP ROLE {role}")


def test_an_unreachable_server(mysql: MySQL, closed_port: int) -> None:
    found, facts = check_database(config(mysql, database_port=str(closed_port)))
    assert facts is None
    assert subjects(found) == ["database.hostname"]
    assert f"127.0.0.1:{closed_port} cannot be reached" in found[0].message


def test_a_host_that_does_not_exist(mysql: MySQL) -> None:
    found, _ = check_database(config(mysql, database_hostname="no-such-host.invalid"))
    assert subjects(found) == ["database.hostname"]


def test_a_wrong_password(server: SqlServer) -> None:
    found, _ = check_database(config(server, database_password="not-this-one"))
    assert subjects(found) == ["database.password"]
    assert "does not let user 'root' in with this password" in found[0].message
    assert "not-this-one" not in str(found)


def test_an_unknown_time_zone(mysql: MySQL) -> None:
    found, _ = check_database(config(mysql, database_connectionTimeZone="Middle/Earth"))
    assert subjects(found) == ["database.connectionTimeZone"]
    found, _ = check_database(config(mysql, database_connectionTimeZone="UTC+2"))
    assert errors_in(found) == ()


def test_a_statement_that_the_server_refuses(mysql: MySQL) -> None:
    found, _ = check_database(config(mysql, database_initial_statements="SET SESSION nothing_like_it = 1"))
    assert subjects(found) == ["database.initial.statements"]


def test_the_servers_own_id(server: SqlServer) -> None:
    found, _ = check_database(config(server, database_server_id="1"))
    assert subjects(found) == ["database.server.id"]


def test_the_other_kind_of_server(mysql: MySQL) -> None:
    found, _ = check_database(config(mysql, database_flavor="mariadb"))
    assert "connector.class" in subjects(found)


def test_a_server_without_a_binlog() -> None:
    with MySQL({"log_bin": False, "gtid_mode": None, "enforce_gtid_consistency": None}) as server:
        found, _ = check_database(config(with_a_table(server)))
        assert subjects(found) == ["log_bin"]


def test_a_binlog_of_statements_with_small_row_images() -> None:
    with MariaDB({"binlog_format": "STATEMENT", "binlog_row_image": "MINIMAL"}) as server:
        found, _ = check_database(config(with_a_table(server)))
        assert subjects(found) == ["binlog_format", "binlog_row_image"]


def test_tls(server: SqlServer, tmp_path: Path) -> None:
    ca = str(server.tls.ca)
    verified = {"database_ssl_mode": "verify_identity", "database_ssl_truststore": ca}
    for mode in ("disabled", "preferred", "required"):
        found, _ = check_database(config(server, database_ssl_mode=mode))
        assert errors_in(found) == (), mode
    found, _ = check_database(config(server, **verified))
    assert errors_in(found) == ()
    other = tmp_path / "other.pem"
    other.write_text("nothing")
    found, _ = check_database(config(server, **{**verified, "database_ssl_truststore": str(other)}))
    assert subjects(found) == ["database.ssl.truststore"]
    found, _ = check_database(config(server, database_ssl_mode="verify_ca"))
    assert subjects(found) == ["database.ssl.mode"]


def test_unreachable_kafka(mysql: MySQL, closed_port: int) -> None:
    found = broker_findings(config(mysql, f"127.0.0.1:{closed_port}"), timeout=3)
    assert subjects(found) == ["bootstrap.servers"]
    assert f"no Kafka broker answers at 127.0.0.1:{closed_port}" in found[0].message
    assert "Connection refused" in found[0].message


@pytest.mark.parametrize(("client", "setting"), [("producer", "override"), ("consumer", "override")])
def test_a_client_with_wrong_security_settings(mysql: MySQL, kafka: Kafka, client: str, setting: str) -> None:
    """Each client may have its own connection settings, which no other client uses."""
    wrong = {f"{client}_{setting}_security_protocol": "SSL"}
    found = broker_findings(config(mysql, kafka.bootstrap, **wrong), timeout=5)
    (error,) = errors_in(found)
    assert error.subject.startswith(f"{client}.{setting}.")
    assert kafka.bootstrap in error.message


def test_a_history_in_another_kafka_that_is_unreachable(mysql: MySQL, kafka: Kafka, closed_port: int) -> None:
    other = {"schema_history_internal_kafka_bootstrap_servers": f"127.0.0.1:{closed_port}"}
    found = broker_findings(config(mysql, kafka.bootstrap, **other), timeout=3)
    assert subjects(found) == ["schema.history.internal.kafka.bootstrap.servers"]


def test_topics_that_lose_records(mysql: MySQL, kafka: Kafka) -> None:
    names = properties(mysql, kafka.bootstrap)
    history, offsets = names["schema.history.internal.kafka.topic"], f"offsets-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    new = [NewTopic(history, 3, 1), NewTopic(offsets, 1, 1, config={"cleanup.policy": "delete"})]
    for future in admin.create_topics(new).values():
        future.result(30)
    found, _ = topic_findings(from_properties({**names, "offset.storage.topic": offsets}))
    assert sorted(subjects(found)) == ["offset.storage.topic", "schema.history.internal.kafka.topic"]
    assert subjects(found, Severity.WARNING) == ["schema.history.internal.kafka.topic"]


def test_what_a_start_would_do(mysql_db: Database, kafka: Kafka) -> None:
    (first,) = start_findings(config(mysql_db.server, kafka.bootstrap))
    assert first.severity is Severity.REMARK
    assert "no position is stored yet; a start takes a snapshot and streams" in first.message
    wrong = start_findings(config(mysql_db.server, kafka.bootstrap, snapshot_mode="recovery"))
    assert subjects(wrong) == ["snapshot.mode"]
    stored = config(mysql_db.server, kafka.bootstrap, name="goes on", offset_storage_topic=f"o-{uuid.uuid4().hex[:8]}")
    TopicAdmin(stored.kafka.admin).ensure(stored.delivery.offset_topic, stored.delivery.offset_topic_settings)
    offset_store(stored).save(SourceOffset("gone.000001", 4))
    (purged,) = start_findings(stored)
    assert purged.severity is Severity.ERROR
    assert "no longer available on the server" in purged.message


def test_a_stored_position_that_the_account_may_not_compare(server: SqlServer, user: str, tmp_path: Path) -> None:
    """The missing privilege is a finding; without it, the binlog files cannot be listed."""
    server.execute(f"GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE ON *.* TO {user}")
    files = {
        "database.user": user,
        "database.password": "pw",
        "offset.storage": "org.apache.kafka.connect.storage.FileOffsetBackingStore",
        "offset.storage.file.filename": str(tmp_path / "offsets"),
    }
    stored = from_properties({**properties(server), **files})
    offset_store(stored).save(SourceOffset("binlog.000001", 4))
    (finding,) = start_findings(stored)
    assert (finding.severity, finding.subject) == (Severity.ERROR, "database.hostname")
    assert "privilege" in finding.message


def test_a_replication_factor_above_the_brokers_and_topics_that_are_not_created(
    mysql_db: Database, kafka: Kafka
) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    more = {
        "topic.creation.default.replication.factor": "3",
        "topic.creation.enable": "false",
        "database.include.list": mysql_db.name,
    }
    configuration = from_properties({**properties(mysql_db.server, kafka.bootstrap), **more})
    found = check(configuration).findings
    assert subjects(found) == ["topic.creation.default.replication.factor"]
    assert f"checked.{mysql_db.name}.t" in next(f.message for f in found if f.subject == "topic.creation.enable")


def test_limits_that_are_lower_than_the_size_of_messages(mysql_db: Database, kafka: Kafka) -> None:
    mysql_db.execute(*(f"CREATE TABLE {name} (id INT PRIMARY KEY)" for name in ("low", "high", "missing")))
    prefix = f"sizes-{uuid.uuid4().hex[:8]}"
    names = {name: f"{prefix}.{mysql_db.name}.{name}" for name in ("low", "high", "missing")}
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    limits = {names["low"]: "100000", names["high"]: "300000000"}
    new = [NewTopic(topic, 1, 1, config={"max.message.bytes": limit}) for topic, limit in limits.items()]
    for future in admin.create_topics(new).values():
        future.result(30)
    given = {"topic.prefix": prefix, "database.include.list": mysql_db.name}
    plain = from_properties({**properties(mysql_db.server, kafka.bootstrap), **given})
    (low,) = [found for found in check(plain).findings if found.subject == "max.message.bytes"]
    assert low.severity is Severity.WARNING
    assert f"the topics {names['low']} accept at most 100000 bytes" in low.message
    large = {"producer.override.max.request.size": "200000000", "producer.override.buffer.memory": "1048576"}
    found = {
        f"{each.subject} {each.message}" for each in check(from_properties({**plain.properties, **large})).findings
    }
    for part in (
        "producer.override.buffer.memory is 1048576 bytes, less than producer.override.max.request.size=200000000",
        "producer.override.max.request.size is 200000000, but the brokers close",
        "a request of more than socket.request.max.bytes=104857600",
        f"the topics {names['low']} accept at most 100000 bytes",
        f"the topics {names['missing']} accept at most 1048588 bytes",
    ):
        assert [each for each in found if part in each], part
    created = {**large, "topic.creation.default.max.message.bytes": "200000000"}
    found = {each.message for each in check(from_properties({**plain.properties, **created})).findings}
    assert not [each for each in found if names["missing"] in each or names["high"] in each]


def test_settings_of_topics_that_kafka_refuses(mysql: MySQL, kafka: Kafka) -> None:
    more = {"topic.creation.default.partions": "3", "topic.creation.groups": "g", "topic.creation.g.include": "x.*"}
    configuration = from_properties({**properties(mysql, kafka.bootstrap), **more})
    found, _ = topic_findings(configuration)
    assert subjects(found) == ["topic.creation.default"]
    assert "partions" in found[0].message


def test_settings_that_kafkas_client_refuses(mysql: MySQL, kafka: Kafka) -> None:
    missing = {"ssl.truststore.location": "/does/not/exist.pem", "security.protocol": "SSL"}
    configuration = from_properties({**properties(mysql, kafka.bootstrap), **missing})
    found = broker_findings(configuration, timeout=3)
    assert "producer.override" in subjects(found)


def test_the_command_reports_all_errors_at_once_and_fails(mysql: MySQL, closed_port: int, tmp_path: Path) -> None:
    path = tmp_path / "c.properties"
    wrong = properties(mysql, f"127.0.0.1:{closed_port}", database_server_id="1")
    path.write_text("".join(f"{name}={value}\n" for name, value in wrong.items()))
    result = CliRunner().invoke(main, ["check", str(path)])
    assert result.exit_code == 1
    assert "error: database.server.id: 1 is the server's own server_id" in result.output
    assert "error: bootstrap.servers: no Kafka broker answers" in result.output
    assert "the connector checked cannot start: 2 errors" in result.output


def test_the_command_succeeds(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    mysql_db.execute("CREATE TABLE t (id INT PRIMARY KEY)")
    path = tmp_path / "c.properties"
    good = properties(mysql_db.server, kafka.bootstrap, database_include_list=mysql_db.name, tasks_max="2")
    path.write_text("".join(f"{name}={value}\n" for name, value in good.items()))
    result = CliRunner().invoke(main, ["check", str(path)])
    assert (result.exit_code, result.output.splitlines()[-1]) == (0, "the connector checked can start")
    assert "note: tasks.max has no effect" in result.output


def test_a_terrible_configuration_is_reported_in_one_go(mysql_db: Database, kafka: Kafka, tmp_path: Path) -> None:
    """Errors of the configuration do not hide what the server and Kafka say."""
    mysql_db.execute("CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO orders VALUES (1), (2)")
    name = mysql_db.name
    terrible = {
        **properties(mysql_db.server, kafka.bootstrap),
        "database.server.id": "none",
        "snapshot.mode": "never",
        "table.include.list": f"orders,{name}.ordrs,{name}.orders",
        "topic.creation.default.replication.factor": "3",
    }
    path = tmp_path / "c.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in terrible.items()))
    result = CliRunner().invoke(main, ["check", "--json", "--web-port", str(free_port()), str(path)])
    report = json.loads(result.stdout)
    assert (result.exit_code, report["ready"]) == (1, False)
    found = {(finding["severity"], finding["subject"]) for finding in report["findings"]}
    assert found == {
        ("error", "database.server.id"),
        ("error", "snapshot.mode"),
        ("error", "topic.creation.default.replication.factor"),
        ("warning", "table.include.list"),
        ("note", "rowtide.values"),
    }
    wrong = [finding["message"] for finding in report["findings"] if finding["subject"] == "table.include.list"]
    assert f"write database.table, such as {name}.orders" in wrong[0]
    assert f"table {name}.ordrs does not exist" in wrong[1]
    topic = f"checked.{name}.orders"
    assert report["tables"] == [
        {"database": name, "table": "orders", "estimated_rows": 2, "topic": topic, "topic_exists": False}
    ]


def test_foreign_keys_that_change_rows_are_found(mariadb_db: Database, mysql_db: Database) -> None:
    for database in (mariadb_db, mysql_db):
        database.execute(
            "CREATE TABLE parents (id INT PRIMARY KEY)",
            "CREATE TABLE deleted (p INT, FOREIGN KEY (p) REFERENCES parents (id) ON DELETE CASCADE)",
            "CREATE TABLE emptied (p INT, FOREIGN KEY(p) REFERENCES parents(id) ON DELETE SET NULL ON UPDATE CASCADE)",
            "CREATE TABLE kept (p INT, FOREIGN KEY (p) REFERENCES parents (id))",
        )
        found = fetch_facts(config(database.server)).cascades
        assert {(one.name, one.parent, one.rules) for one in found if one.database == database.name} == {
            ("deleted", f"{database.name}.parents", ("ON DELETE CASCADE",)),
            ("emptied", f"{database.name}.parents", ("ON DELETE SET NULL", "ON UPDATE CASCADE")),
        }
