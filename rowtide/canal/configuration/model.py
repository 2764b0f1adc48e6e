"""The settings of the server and of its instances, read from Canal's configuration."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rowtide.canal.entries.filters import EntryColumnFilter, EntryFilter
from rowtide.canal.entries.sink import EntryKinds
from rowtide.canal.mq.messages import CanalMessageForm
from rowtide.canal.mq.routing import Routes
from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.stored_entry import BatchMode
from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.secret import Secret


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """Files in PEM format for connections of clients with TLS, which Canal itself does not have.

    Attributes:
        certificate: of the server, with the chain (``canal.tls.certificate``).
        key: its private key; ``None`` if the same file has it (``canal.tls.key``).
        client_ca: the certificate authorities of clients that are admitted; ``None`` to require no certificate
            (``canal.tls.clientCa``).
    """

    certificate: Path
    key: Path | None
    client_ca: Path | None


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """A cluster of servers.

    Attributes:
        servers: the ZooKeeper servers (``canal.zkServers``).
        host: the address at which clients reach this server; ``""`` for its address in the network of ZooKeeper
            (``canal.register.ip``, ``canal.ip``).
    """

    servers: str
    host: str


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """The settings of a server.

    Attributes:
        kafka: whether messages are sent to Kafka, instead of serving clients over TCP (``canal.serverMode``).
        host: the address on which it listens; ``""`` for all, as by default in a cluster.
        port: the port; 0 for a free one.
        credentials: which clients are admitted.
        data: the folder of ``meta.dat`` files; each destination has its own folder in it.
        flush_s: how often positions of clients are written, in seconds.
        scan_s: how often the folder is scanned for destinations that appear, change or vanish; ``None`` for never.
        metrics_port: the port for Prometheus; ``None`` for none.
        tls: for connections with TLS; ``None`` for plain text.
        destinations: those of ``canal.destinations``, which have to exist.
        cluster: the cluster of the server; ``None`` for none.
    """

    kafka: bool
    host: str
    port: int
    credentials: Credentials
    data: Path
    flush_s: float
    scan_s: float | None
    metrics_port: int | None
    tls: TlsFiles | None
    destinations: tuple[str, ...]
    cluster: ClusterSettings | None


@dataclass(frozen=True, slots=True)
class StartPosition:
    """Where an instance begins if its clients have no position.

    Attributes:
        file: binlog file; ``""`` for the current end of the binlog, or by time.
        pos: the position in the file.
        ts_ms: the time of the first transaction that is wanted, in milliseconds since the epoch; 0 for none.
        gtid: the executed GTID set; ``""`` for none.
    """

    file: str
    pos: int
    ts_ms: int
    gtid: str


@dataclass(frozen=True, slots=True)
class KafkaSettings:
    """The Kafka mode of an instance (``canal.serverMode=kafka``).

    Attributes:
        routes: the topics and partitions.
        form: of messages.
        producer_kind: which producer sends them (``canal.mq.producer``).
        producer: librdkafka's settings of the producer, including those that the delivery requires.
        consumer: the settings of a consumer.
        admin: the settings of an admin client.
        offsets_topic: the topic of resume positions, with ``exactly_once``.
        exactly_once: whether messages and resume positions are written in one transaction.
    """

    routes: Routes
    form: CanalMessageForm
    producer_kind: ProducerKind
    producer: Mapping[str, Any] = field(repr=False)
    consumer: Mapping[str, str] = field(repr=False)
    admin: Mapping[str, str] = field(repr=False)
    offsets_topic: str
    exactly_once: bool


@dataclass(frozen=True, slots=True)
class InstanceSettings:
    """The settings of an instance.

    Attributes:
        destination: its name.
        host: of the server.
        port: of the server.
        user: of the server.
        password: of the server.
        ssl_mode: Debezium's ``database.ssl.mode``.
        server_id: of the replica.
        slave_id: ``canal.instance.mysql.slaveId``; -1 if none is set.
        start: where it begins without positions of clients.
        gtids: ``canal.instance.gtidon``.
        filter: the tables.
        columns: their columns.
        kinds: the kinds of entries that clients see.
        mode: the unit of fetch sizes.
        buffer_size: how many entries are kept for clients.
        isolate_ddl: whether DDL has its own batch.
        executable_ddl: whether it is written so that other sessions can execute it (``canal.instance.ddl.executable``).
        skip_broken_tables: skip rows that do not fit the structure of their table, with a warning.
        snapshot: whether it begins with a snapshot of all rows (``canal.instance.snapshot=initial``).
        kafka: where entries go in the Kafka mode; ``None`` for clients over TCP.
    """

    destination: str
    host: str
    port: int
    user: str
    password: Secret
    ssl_mode: str
    server_id: int
    slave_id: int
    start: StartPosition
    gtids: bool
    filter: EntryFilter
    columns: EntryColumnFilter
    kinds: EntryKinds
    mode: BatchMode
    buffer_size: int
    isolate_ddl: bool
    executable_ddl: bool
    skip_broken_tables: bool
    snapshot: bool
    kafka: KafkaSettings | None


@dataclass(frozen=True, slots=True)
class CanalConfiguration:
    """The contents of Canal's configuration folder.

    Attributes:
        server: the settings of the server.
        instances: those of its destinations, by name.
        notes: which properties have no effect, and why.
    """

    server: ServerSettings
    instances: Mapping[str, InstanceSettings]
    notes: tuple[str, ...]
