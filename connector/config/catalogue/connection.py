"""Properties: the connector's identity, and the connection to the database."""

from rowtide.connector.config.catalogue.kinds import (
    boolean,
    choice,
    integer,
    long,
    optional,
    password_source,
    secret,
    ssl_mode,
    text,
)
from rowtide.connector.config.catalogue.property import MYSQL_ONLY, Family, Property, Status
from rowtide.connector.config.choices import Acknowledge
from rowtide.schema_history.server.query_event import Flavor

TITLE = "Identity and connection"

CONNECTORS = {
    "io.debezium.connector.mysql.mysqlconnector": Flavor.MYSQL,
    "io.debezium.connector.mariadb.mariadbconnector": Flavor.MARIADB,
}
_JDBC = "rowtide implements the server's protocol itself, without a JDBC driver"
_PEM = "PEM, PKCS#12 (.p12, .pfx) or a Java store (JKS)"

NAME = Property(
    "name",
    optional(text()),
    None,
    "The connector's name, part of the key under which its offsets are stored.",
    default_text="topic.prefix",
)
CONNECTOR_CLASS = Property(
    "connector.class",
    optional(text()),
    None,
    "Debezium's class, which selects the kind of server: `io.debezium.connector.mysql.MySqlConnector` or "
    "`io.debezium.connector.mariadb.MariaDbConnector`.",
)
DATABASE_FLAVOR = Property(
    "database.flavor",
    optional(choice(Flavor)),
    None,
    "rowtide only: the kind of server, instead of `connector.class`.",
    default_text="mysql",
)
TASKS_MAX = Property(
    "tasks.max",
    integer(1),
    1,
    "The number of tasks.",
    Status.WITHOUT_EFFECT,
    "one task reads the binlog, in Debezium too",
)
TOPIC_PREFIX = Property(
    "topic.prefix",
    text(r"[a-zA-Z0-9_.\-]+", "may only contain ASCII letters, digits, '.', '_' and '-'"),
    "",
    "The logical name of the server: the start of every topic's name, and part of the key of the offsets. With "
    "another prefix it is another connector, which starts without a stored position.",
    required=True,
)
HOSTNAME = Property(
    "database.hostname",
    text(r"[a-zA-Z0-9_.\-:]+", "must be a host name or an IP address"),
    "",
    "The server's host name or address.",
    required=True,
)
PORT = Property("database.port", integer(1, 65535), 3306, "The server's port.")
USER = Property("database.user", text(), "", "The user to log in as.", required=True)
PASSWORD = Property("database.password", optional(secret()), None, "The user's password.")
PASSWORD_SOURCE = Property(
    "rowtide.database.password.source",
    optional(password_source()),
    None,
    "Where the password of each log-in comes from, instead of `database.password`: `command:PROGRAM ARGUMENT …`, whose "
    "output is the password, or `python:package.module.function`, which is called with host, port and user. The "
    "arguments may contain `{host}`, `{port}` and `{user}`.",
)
RENEWED = frozenset({USER.name, PASSWORD.name})
"""Properties whose references to files are resolved at each log-in."""
SERVER_ID = Property(
    "database.server.id",
    integer(1, 2**32 - 1),
    0,
    "The id with which rowtide registers as a replica; no other replica or server may have the same id.",
    required=True,
)
SERVER_ID_OFFSET = Property(
    "database.server.id.offset",
    long(),
    10000,
    "The offset between the ids of several binlog clients.",
    Status.WITHOUT_EFFECT,
    "rowtide has one binlog client",
)
REPLICA_HOST = Property(
    "rowtide.replica.host",
    optional(text()),
    None,
    "The host with which rowtide registers as a replica, shown by SHOW REPLICAS; at most 60 bytes.",
    default_text="rowtide- and the connector's name",
)
REPLICA_PORT = Property(
    "rowtide.replica.port",
    integer(0, 65535),
    0,
    "The port with which rowtide registers as a replica, for example that of its web server.",
)
REPLICA_USER = Property(
    "rowtide.replica.user", text(), "", "The user with which rowtide registers as a replica; never the password."
)
REPLICA_UUID = Property(
    "rowtide.replica.uuid",
    optional(text(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}", "must be a UUID")),
    None,
    "The UUID with which rowtide registers as a replica. When one registers, MySQL ends an older session that has the "
    "same UUID.",
    default_text="derived from the connector's name and database.server.id",
)
REPLICA_DUMP_FLAGS = Property(
    "rowtide.replica.dump.flags",
    integer(0, 65535),
    0,
    "Further flags of the dump command, as a number, for servers and proxies that have their own.",
)
SEMI_SYNC = Property(
    "rowtide.semi.sync",
    boolean(),
    False,
    "Take part in semi-synchronous replication: a commit on the server waits until rowtide acknowledges it, for at "
    "most the server's rpl_semi_sync_source_timeout (rpl_semi_sync_master_timeout).",
)
SEMI_SYNC_ACKNOWLEDGE = Property(
    "rowtide.semi.sync.acknowledge",
    choice(Acknowledge),
    Acknowledge.DELIVERED,
    "When a transaction is acknowledged: as soon as Kafka has its records (delivered), or when rowtide has received it "
    "(received).",
)
QUERY_TIMEOUT = Property(
    "database.query.timeout.ms", integer(0), 600000, "The timeout of queries, in milliseconds; 0 for no timeout."
)
INITIAL_STATEMENTS = Property(
    "database.initial.statements",
    text(),
    "",
    "SQL statements, separated by `;`, that run on every connection for queries (not the binlog connection). `;;` is a "
    "literal semicolon.",
)
JDBC_DRIVER = Property(
    "database.jdbc.driver",
    text(),
    "com.mysql.cj.jdbc.Driver",
    "The class of the JDBC driver.",
    Status.WITHOUT_EFFECT,
    _JDBC,
    MYSQL_ONLY,
)
JDBC_PROTOCOL = Property(
    "database.protocol",
    text(),
    "jdbc:mysql",
    "The protocol of the JDBC URL.",
    Status.WITHOUT_EFFECT,
    _JDBC,
    MYSQL_ONLY,
)
SSL_MODE = Property(
    "database.ssl.mode",
    ssl_mode(),
    None,
    "The TLS mode. MySQL: disabled, preferred (if the server supports TLS), required, verify_ca, verify_identity. "
    "MariaDB: disable, trust, verify-ca, verify-full.",
    default_text="preferred (MySQL), disable (MariaDB)",
)
SSL_KEYSTORE = Property(
    "database.ssl.keystore", optional(text()), None, f"The file with the client's certificate and key. {_PEM}."
)
SSL_KEYSTORE_PASSWORD = Property(
    "database.ssl.keystore.password", optional(secret()), None, "The password of the key in that file."
)
SSL_TRUSTSTORE = Property(
    "database.ssl.truststore", optional(text()), None, f"The file with the trusted certificates. {_PEM}."
)
SSL_TRUSTSTORE_PASSWORD = Property(
    "database.ssl.truststore.password", optional(secret()), None, "The password of the trust store, if it is PKCS#12."
)
SERVER_PUBLIC_KEY = Property(
    "database.server.public.key.file",
    optional(text()),
    None,
    "rowtide only: the file with the server's RSA public key (PEM), with which the password is encrypted. Without it, "
    "the server offers its key itself (caching_sha2_password, sha256_password), and so could a program that only "
    "pretends to be the server. With a verified certificate (verify_ca, verify_identity) it is not needed.",
)
PUBLIC_KEY_RETRIEVAL = Property(
    "database.allowPublicKeyRetrieval",
    boolean(),
    False,
    "Whether the password may be encrypted with a key that the server offers without TLS. As in MySQL's JDBC driver, "
    "it may not: whoever answers in the server's place could read the password. At a loopback address, it may.",
)
DRIVER_PUBLIC_KEY_RETRIEVAL = Property(
    "driver.allowPublicKeyRetrieval",
    boolean(),
    False,
    "Debezium's other name of database.allowPublicKeyRetrieval.",
)
CONNECT_TIMEOUT = Property(
    "connect.timeout.ms", integer(1), 30000, "The timeout for connecting to the server, in milliseconds."
)
VALIDATION_TIMEOUT = Property(
    "connection.validation.timeout.ms",
    long(1),
    60000,
    "The timeout for connecting in the check at the start, in milliseconds.",
)
KEEP_ALIVE = Property(
    "connect.keep.alive",
    boolean(),
    True,
    "Monitor the binlog connection, and reconnect when the server has been silent for too long.",
)
KEEP_ALIVE_INTERVAL = Property(
    "connect.keep.alive.interval.ms",
    long(1),
    60000,
    "How long the server may be silent, in milliseconds; it sends a heartbeat after 0.8 of that time.",
)
NONGRACEFUL_DISCONNECT = Property(
    "use.nongraceful.disconnect",
    boolean(),
    False,
    "Close the binlog connection without waiting for pending data.",
    Status.WITHOUT_EFFECT,
    "rowtide always closes the binlog connection immediately",
)
NET_WRITE_TIMEOUT = Property(
    "binlog.net.write.timeout",
    long(0),
    0,
    "If positive, `net_write_timeout` of the binlog connection, in seconds: how long the server waits for a slow "
    "client.",
)
NET_READ_TIMEOUT = Property(
    "binlog.net.read.timeout", long(0), 0, "If positive, `net_read_timeout` of the binlog connection, in seconds."
)
TIME_ZONE = Property(
    "database.connectionTimeZone",
    optional(text()),
    None,
    "The time zone of connections for queries. TIMESTAMP values are correct with any time zone.",
    default_text="the server's",
)
TIME_ZONE_OLD = Property(
    "database.serverTimezone", optional(text()), None, "The former name of `database.connectionTimeZone`."
)
TIME_ZONE_MARIADB = Property(
    "database.timezone", optional(text()), None, "MariaDB's name of `database.connectionTimeZone`."
)
CONNECTION_FACTORY = Property(
    "database.connection.factory.class",
    optional(text()),
    None,
    "The class that opens JDBC connections.",
    Status.NOT_YET,
    _JDBC,
    ignorable=True,
)
CONNECTION_TIMEOUT = Property(
    "database.connection.timeout.ms",
    integer(0),
    600000,
    "JDBC's connection timeout.",
    Status.WITHOUT_EFFECT,
    "connect.timeout.ms applies",
)
JDBC_OPTIONS = Family(
    "driver.*",
    r"driver\..+",
    "Options of the JDBC driver.",
    Status.WITHOUT_EFFECT,
    _JDBC,
)
JDBC_DATABASE_OPTIONS = Family(
    "database.<option of the JDBC driver>",
    r"database\.(?:autoReconnect|cachePrepStmts|characterEncoding|characterSetResults"
    r"|defaultFetchSize|enabledTLSProtocols|forceConnectionTimeZoneToSession|noDatetimeStringSync|nullCatalogMeansCurrent"
    r"|preserveInstants|rewriteBatchedStatements|serverRsaPublicKeyFile|sessionVariables|socketTimeout|tcpKeepAlive"
    r"|tinyInt1isBit|tlsVersions|useBulkStmts|useCompression|useCursorFetch|useInformationSchema|useServerPrepStmts"
    r"|useSSL|useUnicode|verifyServerCertificate|yearIsDateType|zeroDateTimeBehavior)",
    "Options of the JDBC driver, merged into its URL.",
    Status.WITHOUT_EFFECT,
    _JDBC,
)
