"""The settings of PyMySQL's connections as the configuration of a connector."""

import getpass
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.errors import EngineTypeError

_WITHOUT_EFFECT = frozenset(
    {
        "autocommit", "binary_prefix", "charset", "client_flag", "collation", "compress", "conv", "cursorclass",
        "database", "db", "defer_connect", "local_infile", "max_allowed_packet", "program_name", "sql_mode",
        "use_unicode", "write_timeout",
    }
)  # fmt: skip
"""Arguments of ``pymysql.connect`` that change nothing in a binlog stream."""
_USED = frozenset(
    {
        "host", "port", "user", "password", "passwd", "connect_timeout", "read_timeout", "init_command", "ssl",
        "ssl_ca", "ssl_cert", "ssl_disabled", "ssl_verify_cert", "ssl_verify_identity",
    }
)  # fmt: skip
_REFUSED = {
    "unix_socket": "a binlog is read over TCP: set host and port",
    "ssl_key": "write the key into the PEM file of ssl_cert, after the certificate",
    "ssl_key_password": "write the key into the PEM file of ssl_cert without a password",
    "read_default_file": "set host, port, user and password here",
}
_PEM = "write certificate and key into one PEM file, and name it as cert"


def configuration(settings: Mapping[str, Any], server_id: int, *, mariadb: bool) -> Configuration:
    """Return the configuration of a connector with a server's connection.

    Args:
        settings: the arguments of ``pymysql.connect``.
        server_id: the server id of the replica.
        mariadb: whether the server is MariaDB.

    Raises:
        EngineTypeError: an argument is unknown, or has no counterpart; the message names each.
        ConfigurationError: a value is invalid.
    """
    _refuse(settings)
    ssl_mode, files = _tls(settings)
    password = settings.get("password") or settings.get("passwd") or ""
    properties = {
        "name": "binlog-stream-reader",
        "database.flavor": "mariadb" if mariadb else "mysql",
        "topic.prefix": "binlog-stream-reader",
        "database.hostname": str(settings.get("host") or "localhost"),
        "database.port": str(settings.get("port") or 3306),
        "database.user": str(settings.get("user") or getpass.getuser()),
        "database.password": password.decode() if isinstance(password, bytes) else str(password),
        "database.server.id": str(server_id),
        **({} if mariadb else {"database.ssl.mode": ssl_mode, **files}),
        "driver.allowPublicKeyRetrieval": "true",  # as PyMySQL does
        "connect.timeout.ms": str(int(1000 * settings.get("connect_timeout", 10))),
        "rowtide.sink": "python",
        "schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory",
        "offset.storage": "org.apache.kafka.connect.storage.MemoryOffsetBackingStore",
    }
    config = from_properties(properties)
    if mariadb:  # whose modes of TLS lack "preferred"
        tls = configuration(settings, server_id, mariadb=False).database.tls
        config = replace(config, database=replace(config.database, tls=tls))
    if init := settings.get("init_command"):
        config = replace(config, database=replace(config.database, initial_statements=(str(init),)))
    return config


def _refuse(settings: Mapping[str, Any]) -> None:
    """Refuse arguments that would have an effect but are not supported."""
    given = {name for name, value in settings.items() if value is not None} - _USED - _WITHOUT_EFFECT
    problems = [f"{name}: {_REFUSED.get(name, 'is not supported; omit it')}" for name in sorted(given)]
    if problems:
        raise EngineTypeError(f"connection_settings cannot be used: {'; '.join(problems)}")


def _tls(settings: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Return the TLS mode with the name in MySQL's clients, and the properties of its files, by PyMySQL's rules."""
    given = settings.get("ssl")
    if settings.get("ssl_disabled") or given is False:
        return "disabled", {}
    found: dict[str, Any] = {
        "ca": settings.get("ssl_ca"),
        "cert": settings.get("ssl_cert"),
        "check_hostname": settings.get("ssl_verify_identity"),
        "verify_mode": settings.get("ssl_verify_cert"),
    }
    if isinstance(given, Mapping):
        unknown = sorted(set(given) - {"ca", "cert", "key", "check_hostname", "verify_mode"})
        if unknown or given.get("key") not in (None, given.get("cert")):
            why = f"{', '.join(unknown)} is not supported" if unknown else f"it has its own key; {_PEM}"
            raise EngineTypeError(f"connection_settings cannot be used: ssl: {why}")
        found = {"check_hostname": True, **given}
    elif given not in (None, True):
        raise EngineTypeError(
            f"connection_settings cannot be used: ssl: a {type(given).__name__} is not supported; use a dict with ca, "
            "cert, check_hostname and verify_mode"
        )
    files = {}
    if found.get("ca"):
        files["database.ssl.truststore"] = str(found["ca"])
    if found.get("cert"):
        files["database.ssl.keystore"] = str(found["cert"])
    if not found.get("ca") or found.get("verify_mode") in (False, "none", "0", "false", "no"):
        return "preferred", files
    return "verify_identity" if found.get("check_hostname") else "verify_ca", files
