"""The settings of the connection to the database, and of rowtide's registration as a replica."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.connector.config.catalogue import connection
from rowtide.connector.config.catalogue.property import given
from rowtide.connector.config.choices import SslMode
from rowtide.connector.config.secret import PasswordSource, Secret


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaConfig:
    """The registration of rowtide as a replica.

    Attributes:
        name: the connector's name.
        host: the host in ``SHOW REPLICAS``.
        uuid: the UUID; ``None`` for one derived from the name and the server id.
    """

    name: str
    host: str
    port: int = given(connection.REPLICA_PORT)
    user: str = given(connection.REPLICA_USER)
    uuid: str | None = given(connection.REPLICA_UUID)
    dump_flags: int = given(connection.REPLICA_DUMP_FLAGS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tls:
    """TLS to the database; the files are PEM or PKCS#12."""

    mode: SslMode
    keystore: str | None = given(connection.SSL_KEYSTORE)
    keystore_password: Secret | None = given(connection.SSL_KEYSTORE_PASSWORD)
    truststore: str | None = given(connection.SSL_TRUSTSTORE)
    truststore_password: Secret | None = given(connection.SSL_TRUSTSTORE_PASSWORD)


@dataclass(slots=True)
class Renewal:
    """The sources of the user and the password of each log-in, if they may change while the connector runs.

    Attributes:
        references: ``database.user`` and ``database.password`` as written, if they name files, and the definitions of
            providers.
        source: ``rowtide.database.password.source``.
        accepted: whether the server has accepted a log-in: if it refuses a later one, the next password may be right.
    """

    references: Mapping[str, str]
    source: PasswordSource | None
    accepted: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseConfig:
    """The connection to the database. The binlog connection's net timeouts are in seconds.

    Attributes:
        server_public_key: the file with the server's RSA key; ``None`` if it is not pinned.
        takes_public_key: whether the password may be encrypted with a key that the server offers without TLS.
        initial_statements: split into single statements.
        time_zone: for connections that run queries; ``None`` for the server's.
        keep_alive_interval_ms: 0 if the binlog connection is not monitored.
        renewal: the sources of user and password of each log-in; ``None`` if they stay the same.
    """

    hostname: str = given(connection.HOSTNAME)
    port: int = given(connection.PORT)
    user: str = given(connection.USER)
    password: Secret
    server_id: int = given(connection.SERVER_ID)
    replica: ReplicaConfig
    tls: Tls
    server_public_key: str | None = given(connection.SERVER_PUBLIC_KEY)
    takes_public_key: bool
    query_timeout_ms: int = given(connection.QUERY_TIMEOUT)
    initial_statements: tuple[str, ...]
    time_zone: str | None
    connect_timeout_ms: int = given(connection.CONNECT_TIMEOUT)
    validation_timeout_ms: int = given(connection.VALIDATION_TIMEOUT)
    keep_alive_interval_ms: int
    net_write_timeout: int = given(connection.NET_WRITE_TIMEOUT)
    net_read_timeout: int = given(connection.NET_READ_TIMEOUT)
    renewal: Renewal | None = field(default=None, compare=False)
