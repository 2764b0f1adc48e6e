"""The settings of connections, read from settings with librdkafka's names. Pure.

A setting that changes how librdkafka connects, but is not supported here, is an error, because it must not be dropped
silently.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from rowtide.connector.kafka_producer.connection.errors import NotSupported
from rowtide.connector.kafka_producer.librdkafka_settings import MECHANISMS, ONLY_LIBRDKAFKA
from rowtide.connector.kafka_producer.wire.sasl import Password

_ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?(?:\[(?P<v6>[^\]]+)\]|(?P<host>[^:\[\]/]+))(?::(?P<port>[0-9]{1,5}))?")
_DEFAULT_PORT = 9092


@dataclass(frozen=True, slots=True)
class Address:
    """The host name or IP address of a broker, and its port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class TlsSettings:
    """The settings of TLS; those that are not set are empty.

    Attributes:
        ca_location: a file or a folder of certificates that are trusted; with ``ca_pem`` empty too, the system's.
        key_location: a file with the client's private key in PEM.
        keystore_location: a PKCS#12 file with the client's certificate and key.
        verify: whether to verify the broker's certificate.
        verify_host: whether to verify that it is the certificate of the broker's host.
    """

    ca_location: str = ""
    ca_pem: str = ""
    crl_location: str = ""
    certificate_location: str = ""
    certificate_pem: str = ""
    key_location: str = ""
    key_pem: str = field(default="", repr=False)
    key_password: str = field(default="", repr=False)
    keystore_location: str = ""
    keystore_password: str = field(default="", repr=False)
    ciphers: str = ""
    verify: bool = True
    verify_host: bool = True


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The settings of connections to brokers.

    Attributes:
        bootstrap: the brokers for the initial look-up of the cluster.
        client_id: the client's name in the broker's logs, metrics and quotas.
        tls: ``None`` for plain text.
        credentials: ``None`` for no login.
        connect_timeout: seconds for the connection, TLS and the login together.
        request_timeout: seconds to wait for an answer; longer if the broker itself may take longer for it.
        longest_answer: bytes.
        max_idle: seconds after which an idle connection is no longer used: firewalls drop it silently.
        family: ``any``, ``v4`` or ``v6``: the addresses to use of a host that has several.
        send_buffer: bytes of the socket's buffer, 0 for the system's default.
        receive_buffer: bytes of the socket's buffer, 0 for the system's default.
    """

    bootstrap: tuple[Address, ...]
    client_id: str = "rdkafka"
    tls: TlsSettings | None = None
    credentials: Password | None = None
    connect_timeout: float = 10.0
    request_timeout: float = 20.0
    longest_answer: int = 100_000_000
    max_idle: float = 540.0
    family: str = "any"
    keep_alive: bool = False
    no_delay: bool = True
    send_buffer: int = 0
    receive_buffer: int = 0


def addresses(servers: str) -> tuple[Address, ...]:
    """Return the brokers of ``bootstrap.servers``; the default port is 9092.

    Raises:
        ValueError: a server is not of the form host:port, or there is none.
    """
    found = []
    for server in filter(None, map(str.strip, servers.split(","))):
        match = _ADDRESS.fullmatch(server)
        port = int(match["port"] or _DEFAULT_PORT) if match else 0
        if match is None or not 0 < port <= 0xFFFF:
            raise ValueError(f"bootstrap.servers: {server!r} is not of the form host:port")
        found.append(Address(match["v6"] or match["host"], port))
    if not found:
        raise ValueError("bootstrap.servers names no broker")
    return tuple(found)


def connection_settings(settings: Mapping[str, object]) -> ConnectionSettings:
    """Read the settings of connections.

    Args:
        settings: the producer's settings with librdkafka's names, without synonyms.

    Raises:
        NotSupported: only librdkafka has a setting or a value.
        ValueError: ``bootstrap.servers`` names no broker, or ``sasl.username`` is missing.
    """
    read = _Reader(settings)
    for name in sorted(ONLY_LIBRDKAFKA):
        if read.text(name):
            raise NotSupported(name, "only librdkafka supports this setting")
    protocol = read.text("security.protocol", "plaintext").lower()
    return ConnectionSettings(
        bootstrap=addresses(read.text("bootstrap.servers")),
        client_id=read.text("client.id", "rdkafka"),
        tls=_tls(read) if protocol in ("ssl", "sasl_ssl") else None,
        credentials=_credentials(read) if protocol in ("sasl_plaintext", "sasl_ssl") else None,
        connect_timeout=read.seconds("socket.connection.setup.timeout.ms", 10_000),
        request_timeout=read.seconds("socket.timeout.ms", 20_000),
        longest_answer=read.number("receive.message.max.bytes", 100_000_000),
        max_idle=read.seconds("connections.max.idle.ms", 540_000) or math.inf,
        family=read.text("broker.address.family", "any").lower(),
        keep_alive=read.flag("socket.keepalive.enable", default=False),
        no_delay=read.flag("socket.nagle.disable", default=True),
        send_buffer=read.number("socket.send.buffer.bytes", 0),
        receive_buffer=read.number("socket.receive.buffer.bytes", 0),
    )


def _tls(read: "_Reader") -> TlsSettings:
    return TlsSettings(
        ca_location=read.text("ssl.ca.location"),
        ca_pem=read.text("ssl.ca.pem"),
        crl_location=read.text("ssl.crl.location"),
        certificate_location=read.text("ssl.certificate.location"),
        certificate_pem=read.text("ssl.certificate.pem"),
        key_location=read.text("ssl.key.location"),
        key_pem=read.text("ssl.key.pem"),
        key_password=read.text("ssl.key.password"),
        keystore_location=read.text("ssl.keystore.location"),
        keystore_password=read.text("ssl.keystore.password"),
        ciphers=read.text("ssl.cipher.suites"),
        verify=read.flag("enable.ssl.certificate.verification", default=True),
        verify_host=read.text("ssl.endpoint.identification.algorithm", "https").lower() == "https",
    )


def _credentials(read: "_Reader") -> Password:
    mechanism = read.text("sasl.mechanism", "GSSAPI").upper()
    if mechanism not in MECHANISMS:
        raise NotSupported("sasl.mechanism", f"only librdkafka supports {mechanism}")
    username, password = read.text("sasl.username"), read.text("sasl.password")
    if not username:
        raise ValueError(f"sasl.mechanism={mechanism} needs sasl.username and sasl.password")
    return Password(mechanism, username, password)


class _Reader:
    """Reads settings, which are texts, numbers or booleans."""

    def __init__(self, settings: Mapping[str, object]) -> None:
        self._settings = settings

    def text(self, name: str, default: str = "") -> str:
        value = self._settings.get(name, default)
        return value if isinstance(value, str) else str(value)

    def number(self, name: str, default: int) -> int:
        return int(self.text(name, str(default)))

    def seconds(self, name: str, default_ms: int) -> float:
        return self.number(name, default_ms) / 1000

    def flag(self, name: str, *, default: bool) -> bool:
        return self.text(name, str(default)).strip().lower() == "true"
