"""Canal's configuration folder: as Canal ships it, and what can be wrong with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from rowtide.canal.configuration.load import read_folder, read_instance
from rowtide.canal.configuration.model import StartPosition
from rowtide.connector.config.catalogue.connect import PRODUCER_KIND
from rowtide.connector.config.errors import ConfigurationError

SERVER = r"""
canal.id =
canal.ip = 127.0.0.1
canal.port = ${CANAL_PORT:11111}
canal.zkServers =
canal.serverMode = tcp
canal.destinations = example
canal.conf.dir = ../conf
canal.auto.scan.interval = 7
canal.instance.tsdb.enable = true
canal.instance.filter.druid.ddl = true
canal.instance.memory.batch.mode = MEMSIZE
canal.mq.flatMessage = true
kafka.bootstrap.servers = 127.0.0.1:9092
"""
INSTANCE = r"""
canal.instance.master.address=db.example:3307
canal.instance.master.journal.name=
canal.instance.master.position=
canal.instance.dbUsername=canal
canal.instance.dbPassword=${DB_PASSWORD}
canal.instance.connectionCharset = UTF-8
canal.instance.filter.regex=shop\\..*,crm\\.user_\\d{1,2}
canal.instance.filter.black.regex=mysql\\.slave_.*
canal.mq.topic=example
"""


def folder(path: Path, server: str = SERVER, **instances: str) -> Path:
    path.mkdir(exist_ok=True)
    (path / "canal.properties").write_text(server)
    (path / "spring").mkdir()
    for name, text in (instances or {"example": INSTANCE}).items():
        (path / name).mkdir()
        (path / name / "instance.properties").write_text(text)
    return path


def problems(path: Path) -> list[str]:
    with pytest.raises(ConfigurationError) as error:
        read_folder(path, {})
    return [str(problem) for problem in error.value.problems]


def test_the_files_that_canal_ships(tmp_path: Path) -> None:
    found = read_folder(folder(tmp_path), {"DB_PASSWORD": "secret", "CANAL_PORT": "11119"})
    server, instance = found.server, found.instances["example"]
    assert (server.host, server.port, server.scan_s, server.destinations) == ("127.0.0.1", 11119, 7.0, ("example",))
    assert server.data == tmp_path
    assert (instance.host, instance.port, instance.user) == ("db.example", 3307, "canal")
    assert instance.password.reveal() == "secret"
    assert instance.start == StartPosition("", 4, 0, "")
    assert instance.filter.passes("shop", "orders")
    assert instance.filter.passes("crm", "user_12")
    assert not instance.filter.passes("crm", "user_123")
    assert not instance.mode.counts_entries
    assert instance.mode.unit == 1024
    assert any(note.startswith("canal.instance.tsdb.enable has no effect") for note in found.notes)
    assert any(note.startswith("canal.mq.topic has no effect: canal.serverMode=tcp") for note in found.notes)
    assert "secret" not in repr(found)


def test_the_replica_id_stays_the_same_and_differs_by_destination(tmp_path: Path) -> None:
    found = read_folder(folder(tmp_path, SERVER, example=INSTANCE, other=INSTANCE), {}).instances
    assert found["example"].server_id == read_instance(tmp_path, "example", {}).server_id
    assert found["example"].server_id != found["other"].server_id
    assert found["example"].slave_id == -1


def test_all_problems_are_reported_at_once(tmp_path: Path) -> None:
    server = "canal.port=no\ncanal.serverMode=rocketMQ\ncanal.zkServers=z\ncanal.prot=1\ncanal.destinations=missing\n"
    instance = (
        "canal.instance.master.adress=db:3306\ncanal.instance.filter.regex=a(b\ncanal.instance.gtidon=maybe\n"
        "canal.instance.standby.address=x:1\ncanal.instance.filter.field=a.b\n"
    )
    expected = """
        canal.properties: canal.prot: unknown property; did you mean canal.port?
        canal.properties: canal.serverMode: only tcp and kafka are supported, not 'rocketMQ'
        canal.properties: canal.zkServers: 'z' is not of the form host:port
        canal.properties: canal.port: must be an integer of at least 0, not 'no'
        example/instance.properties: canal.instance.master.adress: unknown property; did you mean canal.instance
        example/instance.properties: canal.instance.standby.address: a standby server is not supported
        example/instance.properties: canal.instance.filter.field: must be database.table:column/column, not 'a.b'
        example/instance.properties: canal.instance.master.address: is required, as host:port
        example/instance.properties: canal.instance.dbUsername: is required
        example/instance.properties: canal.instance.gtidon: must be true or false, not 'maybe'
        example/instance.properties: canal.instance.filter.regex: invalid regular expression 'a(b'
        missing/instance.properties: cannot be read: No such file or directory
    """
    lines = [line.strip() for line in expected.strip().splitlines()]
    found = [problem.removeprefix(f"{tmp_path}/") for problem in problems(folder(tmp_path, server, example=instance))]
    assert len(found) == len(lines)
    for problem in found:
        assert any(problem.startswith(line) for line in lines), problem


def test_a_folder_without_destinations(tmp_path: Path) -> None:
    (tmp_path / "canal.properties").write_text("canal.port=0\n")
    assert problems(tmp_path) == [f"{tmp_path}: there is no folder with an instance.properties"]


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [("db", "db", 3306), ("db:3307", "db", 3307), ("[::1]:3308", "::1", 3308), ("10.0.0.1:1", "10.0.0.1", 1)],
)
def test_addresses(tmp_path: Path, address: str, host: str, port: int) -> None:
    text = f"canal.instance.master.address={address}\ncanal.instance.dbUsername=canal\n"
    found = read_folder(folder(tmp_path, "", example=text), {}).instances["example"]
    assert (found.host, found.port) == (host, port)


def test_a_snapshot_excludes_a_start_position(tmp_path: Path) -> None:
    text = INSTANCE + "canal.instance.snapshot=initial\n"
    assert read_folder(folder(tmp_path / "a", SERVER, example=text), {}).instances["example"].snapshot
    text += "canal.instance.master.timestamp=1\n"
    (problem,) = problems(folder(tmp_path / "b", SERVER, example=text))
    assert "canal.instance.snapshot: an initial snapshot begins at the current position" in problem


KAFKA = "canal.serverMode=kafka\ncanal.mq.servers=127.0.0.1:9092\ncanal.mq.exactlyOnce=true\n"


def test_destinations_of_one_name_on_two_servers_do_not_fence_each_other(tmp_path: Path) -> None:
    ids = []
    for host in ("db.example", "db2.example"):
        path = folder(tmp_path / host, KAFKA, example=INSTANCE.replace("db.example", host))
        kafka = read_folder(path, {}).instances["example"].kafka
        assert kafka is not None
        ids.append(kafka.producer["transactional.id"])
    assert ids == ["rowtide-canal-example-db.example:3307", "rowtide-canal-example-db2.example:3307"]


def test_settings_of_kafka_that_weaken_the_delivery_have_no_effect_or_are_refused(tmp_path: Path) -> None:
    path = folder(tmp_path / "a", KAFKA + "kafka.acks=1\nkafka.retries=0\nkafka.compression.type=lz4\n")
    found = read_folder(path, {})
    kafka = found.instances["example"].kafka
    assert kafka is not None
    assert (kafka.producer["acks"], kafka.producer["compression.type"]) == ("all", "lz4")
    assert "kafka.acks has no effect: rowtide waits for all replicas" in found.notes
    path = folder(tmp_path / "b", KAFKA + "kafka.enable.idempotence=false\ncanal.mq.flatMesage=true\n")
    first, second = problems(path)
    assert first.startswith("canal.properties: canal.mq.flatMesage: unknown property")
    assert second.startswith("canal.properties: kafka: kafka.enable.idempotence=false would risk losing")


def test_the_producer_is_librdkafkas_or_rowtides_own(tmp_path: Path) -> None:
    def kind(more: str, place: str) -> str:
        kafka = read_folder(folder(tmp_path / place, KAFKA + more), {}).instances["example"].kafka
        assert kafka is not None
        return kafka.producer_kind

    assert kind("canal.mq.producer=native\nkafka.linger.ms=3\n", "a") == "native"
    assert kind("canal.mq.producer=auto\nkafka.partitioner=random\n", "b") == "auto"
    assert kind("kafka.partitioner=random\n", "c") == PRODUCER_KIND.default
    (problem,) = problems(folder(tmp_path / "d", KAFKA + "canal.mq.producer=java\n"))
    expected = "must be one of auto, librdkafka, native, not 'java'"
    assert problem == f"canal.properties: canal.mq.producer: {expected}"
    found = problems(folder(tmp_path / "e", KAFKA + "canal.mq.producer=native\nkafka.partitioner=random\n"))
    assert [problem.partition(" ")[2].partition(":")[0] for problem in found] == ["kafka.partitioner"]
    assert "set canal.mq.producer=librdkafka" in found[0]


def test_a_topic_without_partitions_is_refused(tmp_path: Path) -> None:
    """Its first row would end the instance with a division by zero."""
    (found,) = problems(folder(tmp_path, KAFKA, example=INSTANCE + "\ncanal.mq.dynamicTopicPartitionNum=a:3,b:0\n"))
    rule = "canal.mq.dynamicTopicPartitionNum: the number of partitions must be at least 1 in 'b:0'"
    assert found == f"example/instance.properties: {rule}"


def test_a_kafka_mode_without_a_broker_or_topic_is_refused(tmp_path: Path) -> None:
    text = INSTANCE.replace("canal.mq.topic=example", "canal.mq.partitionHash=a[:id")
    found = problems(folder(tmp_path, "canal.serverMode=kafka\n", example=text))
    assert any("kafka.bootstrap.servers: is required" in problem for problem in found)
    assert any("canal.mq.topic: is required" in problem for problem in found)
    assert any("canal.mq.partitionHash: invalid regular expression" in problem for problem in found)


ALWAYS_IDLE = {"canal.instance.connectionCharset", "canal.mq.topic"}
"""Of ``INSTANCE``."""


@pytest.mark.parametrize(
    ("server", "idle"),
    [
        ("canal.port=1\ncanal.user=a\ncanal.passwd=b\ncanal.ip=::", set()),
        ("canal.zookeeper.flush.period=5\ncanal.register.ip=a", {"canal.zookeeper.flush.period", "canal.register.ip"}),
        ("canal.auto.scan=false\ncanal.auto.scan.interval=3", {"canal.auto.scan.interval"}),
        ("canal.zkServers=a:1\ncanal.file.flush.period=5", {"canal.file.flush.period"}),
        (
            f"{KAFKA}canal.port=1\ncanal.user=a\ncanal.passwd=b\ncanal.ip=::",
            {"canal.port", "canal.user", "canal.passwd", "canal.ip"},
        ),
        (f"{KAFKA}canal.port=1\ncanal.ip=::\ncanal.zkServers=a:1\ncanal.user=a", {"canal.user"}),
        (f"{KAFKA}canal.ip=::\ncanal.metrics.pull.port=9\ncanal.mq.offsetsTopic=t", set()),
        (f"{KAFKA}canal.mq.exactlyOnce=false\ncanal.mq.offsetsTopic=t", {"canal.mq.offsetsTopic"}),
    ],
)
def test_properties_of_another_mode_are_listed(tmp_path: Path, server: str, idle: set[str]) -> None:
    notes = read_folder(folder(tmp_path, server), {}).notes
    assert {note.partition(" has no effect")[0] for note in notes} - ALWAYS_IDLE == idle


def test_properties_of_an_instance_without_effect_in_its_mode_are_listed(tmp_path: Path) -> None:
    more = "\ncanal.instance.memory.batch.mode=ITEMSIZE\ncanal.instance.memory.buffer.memunit=512"
    more += "\ncanal.instance.filter.transaction.entry=true"
    notes = " ".join(read_folder(folder(tmp_path, KAFKA, example=INSTANCE + more), {}).notes)
    assert "memunit has no effect: canal.instance.memory.batch.mode=ITEMSIZE" in notes
    assert "filter.transaction.entry has no effect here: that of canal.properties counts" in notes


@pytest.mark.parametrize(
    ("server", "host"),
    [("", "127.0.0.1"), ("canal.ip=0.0.0.0\n", "0.0.0.0"), ("canal.ip=::\n", "::"), ("canal.zkServers=a:1\n", "")],
)
def test_others_reach_the_server_only_if_it_is_told_so(tmp_path: Path, server: str, host: str) -> None:
    assert read_folder(folder(tmp_path, server, example=INSTANCE), {}).server.host == host


@pytest.mark.parametrize(
    ("server", "problem"),
    [
        ("canal.instance.global.mode = manager\n", "canal.instance.global.mode: there is no administration server"),
        ("canal.instance.global.mode = Manager\n", "canal.instance.global.mode: there is no administration server"),
        ("canal.instance.global.mode = sprung\n", "canal.instance.global.mode: must be spring, not 'sprung'"),
        ("canal.admin.manager = 127.0.0.1:8089\n", "canal.admin.manager: there is no administration server"),
        ("canal.instance.memory.buffer.size = 1000\n", "canal.instance.memory.buffer.size: must be a power of 2"),
    ],
)
def test_what_canal_would_do_in_another_way_is_refused(tmp_path: Path, server: str, problem: str) -> None:
    assert any(problem in found for found in problems(folder(tmp_path, SERVER + server, example=INSTANCE)))


@pytest.mark.parametrize("server", ["canal.instance.global.mode = spring\n", "canal.admin.port = 11110\n", ""])
def test_the_modes_that_need_no_administration_server_are_accepted(tmp_path: Path, server: str) -> None:
    text = server + "canal.instance.memory.buffer.size = 8\n"
    assert read_folder(folder(tmp_path, SERVER + text, example=INSTANCE), {}).instances["example"].buffer_size == 8
