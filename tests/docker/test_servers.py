"""The real servers of the local stack."""

from __future__ import annotations

import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path

import pymysql
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from rowtide_stack import Database, Kafka, MariaDB, MySQL, SqlServer, StartFailedError, ZooKeeper

pytestmark = pytest.mark.servers


@pytest.fixture(params=["mysql", "mariadb"])
def sql_server(request: pytest.FixtureRequest) -> SqlServer:
    server: SqlServer = request.getfixturevalue(request.param)
    return server


def test_a_sql_server_is_ready_for_change_data_capture(sql_server: SqlServer) -> None:
    names = ["log_bin", "binlog_format", "binlog_row_image", "server_id", "character_set_server", "time_zone"]
    values = sql_server.query(f"SELECT {', '.join(f'@@GLOBAL.{name}' for name in names)}")[0]
    assert values == (1, "ROW", "FULL", 1, "utf8mb4", "+00:00")


def test_mysql_writes_gtids(mysql: MySQL) -> None:
    assert mysql.query("SELECT @@GLOBAL.gtid_mode, @@GLOBAL.enforce_gtid_consistency") == [("ON", "ON")]


@pytest.mark.parametrize("kind", [MySQL, MariaDB])
def test_the_binlog_of_a_new_server_starts_with_the_first_statement_of_its_user(kind: type[SqlServer]) -> None:
    with kind() as server:
        first = server.query("SHOW BINARY LOGS")[0][0]
        server.execute("CREATE DATABASE first")
        queries = [row for row in server.query(f"SHOW BINLOG EVENTS IN '{first}'") if row[2] == "Query"]
        assert [row[5].split("/*")[0].strip() for row in queries] == ["CREATE DATABASE first"]


def test_two_servers_of_a_kind_have_their_own_uuid_port_and_data(mysql: MySQL) -> None:
    with MySQL({"server_id": 2}) as other:
        assert other.port != mysql.port
        assert other.query("SELECT @@server_uuid") != mysql.query("SELECT @@server_uuid")
        assert other.query("SELECT @@server_id") == [(2,)]


@pytest.mark.parametrize("kind", [MySQL, MariaDB])
def test_data_and_port_are_kept_after_a_stop_and_a_crash(kind: type[SqlServer]) -> None:
    with kind({"binlog_row_metadata": "FULL"}) as server, server.database() as database:
        port = server.port
        database.execute("CREATE TABLE t (id INT PRIMARY KEY)", "INSERT INTO t VALUES (1)")
        server.stop()
        assert not server.running
        with pytest.raises(pymysql.OperationalError):
            server.connect()
        server.start()
        database.execute("INSERT INTO t VALUES (2)")
        server.kill()
        assert not server.running
        server.start()
        assert server.port == port
        assert database.query("SELECT id FROM t ORDER BY id") == [(1,), (2,)]


def test_a_paused_server_keeps_connections_and_does_not_answer(mysql: MySQL) -> None:
    with MySQL() as server, server.connect(read_timeout=1) as connection:
        server.pause()
        with pytest.raises(pymysql.OperationalError):
            connection.query("SELECT 1")
        server.resume()
        assert server.query("SELECT 1") == [(1,)]


def test_encrypted_connections_can_check_the_servers_name(sql_server: SqlServer) -> None:
    context = ssl.create_default_context(cafile=sql_server.tls.ca)
    context.load_cert_chain(sql_server.tls.client_certificate, sql_server.tls.client_key)
    with sql_server.connect(ssl=context) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW STATUS LIKE 'Ssl_cipher'")
        row = cursor.fetchone()
        assert row
        assert row[1]


def test_each_test_has_a_database_of_its_own(mysql_db: Database, mysql: MySQL) -> None:
    mysql_db.execute("CREATE TABLE t (c VARCHAR(20))", "INSERT INTO t VALUES ('żółw 🐢')")
    assert mysql_db.query("SELECT c FROM t WHERE c = %s", ["żółw 🐢"]) == [("żółw 🐢",)]
    with mysql.database() as other:
        assert other.name != mysql_db.name


def test_the_error_of_a_server_that_cannot_start_has_the_end_of_its_log() -> None:
    server = MySQL({"no_such_option": 1})
    with pytest.raises(StartFailedError, match=r"(?s)exited during its start.*unknown variable 'no_such_option=1'"):
        server.__enter__()
    assert not server.running


def _messages(kafka: Kafka, topic: str) -> list[bytes]:
    settings = {"bootstrap.servers": kafka.bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[bytes] = []
    try:
        while (message := consumer.poll(60)) is not None and message.error() is None:
            found.append(message.value() or b"")
    finally:
        consumer.close()
    return found


def _produce(kafka: Kafka, topic: str, value: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": topic})
    producer.init_transactions(60)
    producer.begin_transaction()
    producer.produce(topic, value)
    producer.commit_transaction(60)


def test_kafka_has_transactions_and_keeps_its_data_over_a_crash() -> None:
    with Kafka() as kafka:
        topic = "transactions"
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(20)
        _produce(kafka, topic, b"one")
        kafka.restart()
        _produce(kafka, topic, b"two")
        kafka.kill()
        kafka.start()
        _produce(kafka, topic, b"three")
        assert _messages(kafka, topic) == [b"one", b"two", b"three"]


def test_zookeeper_comes_back_on_its_port(zookeeper: ZooKeeper) -> None:
    assert zookeeper.running
    with ZooKeeper() as server:
        port = server.port
        server.restart()
        assert (server.running, server.port) == (True, port)


def test_the_data_of_a_closed_server_is_gone() -> None:
    with MariaDB() as server:
        folder = Path(server.query("SELECT @@datadir")[0][0])
        assert folder.is_dir()
    assert not folder.exists()
    assert not server.running


OWNER = """
import os, signal
from rowtide_stack import MySQL
with MySQL() as server:
    server.execute("CREATE DATABASE d")
    pid = int(server.log().split("starting as process ")[1].split()[0])
    print(pid, server.query("SELECT @@datadir")[0][0], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_server_ends_and_its_data_is_removed_when_the_test_run_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", OWNER], capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, data = done.stdout.split()
    end = time.monotonic() + 30
    while (Path("/proc", pid).exists() or Path(data).exists()) and time.monotonic() < end:
        time.sleep(0.05)
    assert not Path("/proc", pid).exists()
    assert not Path(data).parent.exists()


def test_the_command_runs_servers_until_ctrl_c() -> None:
    command = [sys.executable, "-m", "rowtide_stack", "up", "zookeeper", "mysql"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as up:
        assert up.stdout
        assert up.stderr
        zookeeper, mysql, hint = (up.stdout.readline().split() for _ in range(3))
        assert zookeeper[0] == "zookeeper"
        host, port = mysql[1].split(":")
        pymysql.connect(host=host, port=int(port), user=mysql[3].rstrip(","), password=mysql[5]).close()
        assert hint[0] == "Ctrl-C"
        up.send_signal(signal.SIGINT)
        assert up.wait(60) == 0
        assert up.stderr.read() == ""
    with pytest.raises(pymysql.OperationalError):
        pymysql.connect(host=host, port=int(port), user="root", password=mysql[5])
