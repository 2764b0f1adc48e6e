"""Who the connector is, and how it reaches the database."""

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, long, optional, secret, ssl_mode, text
from rowtide.connector.config.catalogue.property import MYSQL_ONLY, Family, Flavor, Property, Status

TITLE = "Identity and connection"

CONNECTORS = {
    "io.debezium.connector.mysql.mysqlconnector": Flavor.MYSQL,
    "io.debezium.connector.mariadb.mariadbconnector": Flavor.MARIADB,
}
_JDBC = "rowtide speaks the server's protocol itself, there is no JDBC driver"
_PEM = "PEM or PKCS#12 (.p12, .pfx); Java key stores (JKS) must be converted with keytool"

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
    "Debezium's class, which tells the kind of server: `io.debezium.connector.mysql.MySqlConnector` or "
    "`io.debezium.connector.mariadb.MariaDbConnector`.",
)
DATABASE_FLAVOR = Property(
    "database.flavor",
    optional(choice(Flavor)),
    None,
    "The kind of server, instead of `connector.class`.",
    default_text="mysql",
)
TASKS_MAX = Property(
    "tasks.max",
    integer(1),
    1,
    "Tasks of the connector.",
    Status.WITHOUT_EFFECT,
    "a binlog is read by one task, in Debezium too",
)
TOPIC_PREFIX = Property(
    "topic.prefix",
    text(r"[a-zA-Z0-9_.\-]+", "may only have letters of ASCII, digits, '.', '_' and '-'"),
    "",
    "The logical name of the server: the beginning of every topic's name and part of the key of the offsets. With "
    "another prefix it is another connector, which starts from nothing.",
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
SERVER_ID = Property(
    "database.server.id",
    integer(1, 2**32 - 1),
    0,
    "The id under which rowtide joins the server's replicas; no other replica, and no server, may have the same.",
    required=True,
)
SERVER_ID_OFFSET = Property(
    "database.server.id.offset",
    long(),
    10000,
    "Stride of the ids of further binlog clients.",
    Status.WITHOUT_EFFECT,
    "rowtide reads the binlog with one client",
)
QUERY_TIMEOUT = Property(
    "database.query.timeout.ms", integer(0), 600000, "How long a query may take, in milliseconds; 0 for any time."
)
INITIAL_STATEMENTS = Property(
    "database.initial.statements",
    text(),
    "",
    "SQL statements, separated by `;`, run on every connection for queries (not the binlog's). `;;` is a semicolon.",
)
JDBC_DRIVER = Property(
    "database.jdbc.driver",
    text(),
    "com.mysql.cj.jdbc.Driver",
    "Class of the JDBC driver.",
    Status.WITHOUT_EFFECT,
    _JDBC,
    MYSQL_ONLY,
)
JDBC_PROTOCOL = Property(
    "database.protocol",
    text(),
    "jdbc:mysql",
    "Protocol of the JDBC URL.",
    Status.WITHOUT_EFFECT,
    _JDBC,
    MYSQL_ONLY,
)
SSL_MODE = Property(
    "database.ssl.mode",
    ssl_mode(),
    None,
    "TLS to the server. MySQL: disabled, preferred (if the server offers it), required, verify_ca, verify_identity. "
    "MariaDB: disable, trust, verify-ca, verify-full.",
    default_text="preferred (MySQL), disable (MariaDB)",
)
SSL_KEYSTORE = Property(
    "database.ssl.keystore", optional(text()), None, f"File with the client's certificate and key. {_PEM}."
)
SSL_KEYSTORE_PASSWORD = Property(
    "database.ssl.keystore.password", optional(secret()), None, "Password of the key in that file."
)
SSL_TRUSTSTORE = Property(
    "database.ssl.truststore", optional(text()), None, f"File with the certificates to trust. {_PEM}."
)
SSL_TRUSTSTORE_PASSWORD = Property(
    "database.ssl.truststore.password", optional(secret()), None, "Password of the trust store, if it is PKCS#12."
)
CONNECT_TIMEOUT = Property(
    "connect.timeout.ms", integer(1), 30000, "How long to wait for a connection to the server, in milliseconds."
)
VALIDATION_TIMEOUT = Property(
    "connection.validation.timeout.ms",
    long(1),
    60000,
    "How long the check at the start may take to connect, in milliseconds.",
)
KEEP_ALIVE = Property(
    "connect.keep.alive",
    boolean(),
    True,
    "Watch the binlog connection and open it anew when the server has been silent for too long.",
)
KEEP_ALIVE_INTERVAL = Property(
    "connect.keep.alive.interval.ms",
    long(1),
    60000,
    "How long the server may be silent, in milliseconds; it is asked for a heartbeat after 0.8 of that.",
)
NONGRACEFUL_DISCONNECT = Property(
    "use.nongraceful.disconnect",
    boolean(),
    False,
    "Close the binlog connection without waiting for what is under way.",
    Status.WITHOUT_EFFECT,
    "rowtide always closes the binlog connection at once",
)
NET_WRITE_TIMEOUT = Property(
    "binlog.net.write.timeout",
    long(0),
    0,
    "If positive, `net_write_timeout` of the binlog connection, in seconds: how long the server waits for a slow "
    "reader.",
)
NET_READ_TIMEOUT = Property(
    "binlog.net.read.timeout", long(0), 0, "If positive, `net_read_timeout` of the binlog connection, in seconds."
)
TIME_ZONE = Property(
    "database.connectionTimeZone",
    optional(text()),
    None,
    "Time zone of the connection for queries. TIMESTAMP values are right with any.",
    default_text="the server's",
)
TIME_ZONE_OLD = Property(
    "database.serverTimezone", optional(text()), None, "Older name of `database.connectionTimeZone`."
)
TIME_ZONE_MARIADB = Property(
    "database.timezone", optional(text()), None, "MariaDB's name of `database.connectionTimeZone`."
)
CONNECTION_FACTORY = Property(
    "database.connection.factory.class",
    optional(text()),
    None,
    "Class that makes JDBC connections.",
    Status.NOT_YET,
    _JDBC,
)
CONNECTION_TIMEOUT = Property(
    "database.connection.timeout.ms",
    integer(0),
    600000,
    "JDBC's time to connect.",
    Status.WITHOUT_EFFECT,
    "connect.timeout.ms is what holds",
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
    r"database\.(?:allowPublicKeyRetrieval|autoReconnect|cachePrepStmts|characterEncoding|characterSetResults"
    r"|defaultFetchSize|enabledTLSProtocols|forceConnectionTimeZoneToSession|noDatetimeStringSync|nullCatalogMeansCurrent"
    r"|preserveInstants|rewriteBatchedStatements|serverRsaPublicKeyFile|sessionVariables|socketTimeout|tcpKeepAlive"
    r"|tinyInt1isBit|tlsVersions|useBulkStmts|useCompression|useCursorFetch|useInformationSchema|useServerPrepStmts"
    r"|useSSL|useUnicode|verifyServerCertificate|yearIsDateType|zeroDateTimeBehavior)",
    "Options of the JDBC driver, merged into its URL.",
    Status.WITHOUT_EFFECT,
    _JDBC,
)
