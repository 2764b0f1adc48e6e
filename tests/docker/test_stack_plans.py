"""The plans by which the stack runs servers as local processes and as containers; nothing is run."""

from __future__ import annotations

from pathlib import Path

import pytest
from rowtide_stack import Kafka, MariaDB, MySQL, SqlServer, StackError, ZooKeeper
from rowtide_stack.ports import free_port
from rowtide_stack.programs import catalogue
from rowtide_stack.runners.runner import ContainerPlan, provider
from rowtide_stack.servers import brokers
from rowtide_stack.servers.options import Options, arguments, merged, option_file
from rowtide_stack.servers.server import Server


@pytest.mark.parametrize(
    ("given", "lines"),
    [
        ({"server-id": 7}, ["server_id=7"]),
        ({"skip_name_resolve": True}, ["skip_name_resolve"]),
        ({"log_bin": False}, ["skip_log_bin"]),
        ({"secure_file_priv": ""}, ["secure_file_priv="]),
        ({"log_bin": None}, []),
        ({}, []),
    ],
)
def test_an_option_is_written_as_mysqld_reads_it(given: Options, lines: list[str]) -> None:
    assert option_file(given) == "\n".join(["[mysqld]", *lines]) + "\n"
    assert arguments(given) == tuple(f"--{line}" for line in lines)


def test_later_options_override_earlier_ones_with_dashes_or_underscores() -> None:
    assert merged({"a_b": 1, "c": 2, "d": 3}, {"a-b": 4, "c": None}) == {"a_b": 4, "c": None, "d": 3}


@pytest.fixture
def stub_programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stubs of the programs, so that nothing is downloaded."""
    monkeypatch.setenv("ROWTIDE_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "programs"
    (root / "usr/lib/x86_64-linux-gnu").mkdir(parents=True)
    (root / "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2").touch()
    for name in ("mysql", "mariadb", "kafka", "zookeeper"):
        monkeypatch.setattr(catalogue, name, lambda: root)
    monkeypatch.setattr(catalogue, "java", lambda: Path("/usr/bin/java"))

    def initialised(self: SqlServer, data: Path, options: Options) -> None:
        data.mkdir()
        (data / "ibdata1").write_text(repr(dict(options)))

    monkeypatch.setattr(MySQL, "_initialise", initialised)
    monkeypatch.setattr(MariaDB, "_initialise", initialised)
    return root


def prepared(server: Server, folder: Path) -> list[str]:
    folder.mkdir()
    return server._local().prepare(folder)


@pytest.mark.parametrize("kind", [MySQL, MariaDB])
def test_a_local_sql_server_stays_in_its_folder_and_on_loopback(
    kind: type[SqlServer], stub_programs: Path, tmp_path: Path
) -> None:
    server = kind({"tmpdir": None, "max-connections": 7})
    folder = tmp_path / "run"
    argv = prepared(server, folder)
    text = (folder / "my.cnf").read_text()
    assert argv[-1] == f"--defaults-file={folder / 'my.cnf'}"
    assert {"bind_address=127.0.0.1", f"datadir={folder / 'data'}", "max_connections=7"} <= set(text.splitlines())
    assert "tmpdir" not in text
    assert (folder / "data/ibdata1").exists()
    assert server.tls.ca.read_text().startswith("-----BEGIN CERTIFICATE")


def test_servers_that_are_initialised_alike_share_a_template(stub_programs: Path, tmp_path: Path) -> None:
    found = [
        (tmp_path / str(number), prepared(MySQL(options), tmp_path / str(number)))[0] / "data/ibdata1"
        for number, options in enumerate([{}, {"server_id": 2}, {"lower_case_table_names": 1}])
    ]
    assert [path.read_text() for path in found] == ["{}", "{}", "{'lower_case_table_names': 1}"]
    assert len(list((tmp_path / "cache").glob("mysql-data-*[!k]"))) == 2


def test_a_server_has_no_certificates_before_its_first_start() -> None:
    with pytest.raises(StackError, match="no certificates before its first start"):
        _ = MySQL().tls


def test_a_mysql_program_runs_with_the_loader_of_its_folder(stub_programs: Path) -> None:
    usr = stub_programs / "usr"
    lib = usr / "lib/x86_64-linux-gnu"
    assert catalogue.mysql_command("bin/mysql") == [
        f"{lib}/ld-linux-x86-64.so.2",
        "--library-path",
        f"{lib}:{usr}/lib/mysql/private",
        f"{usr}/bin/mysql",
    ]


def test_kafka_has_different_listeners_for_itself_and_for_clients(
    stub_programs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def formatted(argv: list[str]) -> str:
        (Path(argv[-1]).parent / "data").mkdir()
        return ""

    monkeypatch.setattr(brokers, "run", formatted)
    kafka = Kafka({"message.max.bytes": "5"})
    argv = prepared(kafka, tmp_path / "run")
    lines = dict(line.split("=", 1) for line in (tmp_path / "run/server.properties").read_text().splitlines())
    assert argv[-2:] == ["kafka.Kafka", str(tmp_path / "run/server.properties")]
    client, internal = lines["advertised.listeners"].split(",")
    assert client == f"CLIENT://{kafka.bootstrap}"
    assert internal.startswith("INTERNAL://127.0.0.1:")
    assert kafka.bootstrap not in internal
    assert lines["inter.broker.listener.name"] == "INTERNAL"
    assert lines["message.max.bytes"] == "5"
    assert lines["transaction.state.log.replication.factor"] == "1"


def test_zookeeper_listens_on_loopback_only(stub_programs: Path, tmp_path: Path) -> None:
    server = ZooKeeper()
    prepared(server, tmp_path / "run")
    lines = (tmp_path / "run/zoo.cfg").read_text().splitlines()
    assert {f"clientPort={server.port}", "clientPortAddress=127.0.0.1", "admin.enableServer=false"} <= set(lines)


@pytest.mark.parametrize("kind", [MySQL, MariaDB, Kafka, ZooKeeper])
def test_a_container_is_of_a_pinned_image(kind: type[Server]) -> None:
    server = kind()
    image, _, tag = server._container().image.partition(":")
    assert image
    assert tag.count(".") == 2, "a tag of three numbers does not move"
    server.close()


def test_a_mysql_container_has_the_options_as_arguments() -> None:
    server = MySQL({"gtid_mode": "OFF"})
    plan = server._container()
    assert plan.port == 3306
    assert {"--gtid_mode=OFF", "--binlog_format=ROW", "--ssl_ca=/tls/ca.pem"} <= set(plan.command)
    assert plan.environment["MYSQL_ROOT_PASSWORD"] == server.password
    ((folder, inside),) = plan.volumes.items()
    assert inside == "/tls"
    assert (folder / "server.key").exists()
    server.close()
    assert not folder.exists()


def test_a_kafka_container_is_reached_at_the_published_port() -> None:
    kafka = Kafka({"message.max.bytes": "5"})
    plan = kafka._container()
    assert plan.port == 9092
    assert plan.environment["KAFKA_LISTENERS"].startswith("CLIENT://0.0.0.0:9092,INTERNAL://127.0.0.1:")
    assert plan.environment["KAFKA_ADVERTISED_LISTENERS"].startswith(f"CLIENT://{kafka.bootstrap},")
    assert plan.environment["KAFKA_MESSAGE_MAX_BYTES"] == "5"


def test_a_port_is_returned_once_and_is_outside_the_range_for_outgoing_connections() -> None:
    ports = {free_port() for _ in range(20)}
    assert len(ports) == 20
    assert max(ports) < 32_768


@pytest.mark.parametrize(("choice", "engine", "found"), [("auto", True, "docker"), ("auto", False, "local")])
def test_servers_are_containers_if_a_docker_engine_is_running(
    monkeypatch: pytest.MonkeyPatch, choice: str, engine: bool, found: str
) -> None:
    monkeypatch.setenv("ROWTIDE_STACK", choice)
    monkeypatch.setattr("rowtide_stack.runners.runner.docker_answers", lambda: engine)
    assert provider() == found


@pytest.mark.parametrize("choice", ["docker", "local"])
def test_the_provider_can_be_chosen(monkeypatch: pytest.MonkeyPatch, choice: str) -> None:
    monkeypatch.setenv("ROWTIDE_STACK", choice)
    assert provider() == choice


def test_a_misspelt_provider_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROWTIDE_STACK", "podman")
    with pytest.raises(StackError, match="use auto, docker or local"):
        provider()


def test_the_defaults_of_a_container_plan() -> None:
    assert ContainerPlan("image:1.2.3", 80) == ContainerPlan("image:1.2.3", 80, (), {}, {})


def test_java_properties_keep_back_slashes() -> None:
    assert brokers.java_properties({"a": "b\\c"}) == "a=b\\\\c\n"


@pytest.mark.parametrize(
    ("jar", "artifact"),
    [
        ("delta-spark_4.1_2.13-4.4.0.jar", "delta-spark_4.1_2.13"),
        ("commons-pool2-2.12.0.jar", "commons-pool2"),
        ("spark-sql-kafka-0-10_2.13-4.1.1.jar", "spark-sql-kafka-0-10_2.13"),
        ("netty-common-4.1.118.Final-linux-x86_64.jar", "netty-common"),
        ("slf4j-api-2.0.0-alpha1.jar", "slf4j-api"),
        ("RoaringBitmap-1.3.0.jar", "RoaringBitmap"),
        ("jsr305-3.0.0.jar", "jsr305"),
        ("zstd-jni-1.5.7-3.jar", "zstd-jni"),
    ],
)
def test_the_artifact_of_a_jar(jar: str, artifact: str) -> None:
    assert catalogue._artifact(Path(jar)) == artifact
