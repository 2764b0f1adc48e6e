"""The settings of connections, from settings with librdkafka's names."""

from __future__ import annotations

import math

import pytest

from rowtide.connector.config.kafka.clients import ClientKind, translate
from rowtide.connector.config.kafka.librdkafka import SETTINGS
from rowtide.connector.kafka_producer.connection.errors import NotSupported
from rowtide.connector.kafka_producer.connection.settings import (
    Address,
    ConnectionSettings,
    TlsSettings,
    addresses,
    connection_settings,
)
from rowtide.connector.kafka_producer.wire.sasl import Password

SERVERS = {"bootstrap.servers": "kafka:9092"}
NAMES_THAT_CONNECT = ("ssl.", "sasl.", "socket.", "security.", "enable.ssl", "broker.address.")
OF_OTHER_PARTS = {
    "broker.address.ttl",
    "enable.ssl.certificate.verification",
    "socket.blocking.max.ms",
    "socket.max.fails",
}


def test_defaults_are_those_of_librdkafka() -> None:
    assert connection_settings(SERVERS) == ConnectionSettings(bootstrap=(Address("kafka", 9092),))


def test_every_setting_of_a_socket() -> None:
    settings = {
        "bootstrap.servers": "a:1,b:2",
        "client.id": "orders",
        "socket.connection.setup.timeout.ms": "1500",
        "socket.timeout.ms": 2500,
        "receive.message.max.bytes": "1000000",
        "broker.address.family": "v4",
        "socket.keepalive.enable": "true",
        "socket.nagle.disable": False,
        "socket.send.buffer.bytes": "70000",
        "socket.receive.buffer.bytes": "80000",
    }
    assert connection_settings(settings) == ConnectionSettings(
        bootstrap=(Address("a", 1), Address("b", 2)),
        client_id="orders",
        connect_timeout=1.5,
        request_timeout=2.5,
        longest_answer=1_000_000,
        family="v4",
        keep_alive=True,
        no_delay=False,
        send_buffer=70_000,
        receive_buffer=80_000,
    )


@pytest.mark.parametrize(
    ("servers", "expected"),
    [
        ("kafka", [Address("kafka", 9092)]),
        (" kafka-1:1 , SASL_SSL://kafka-2.example:2,", [Address("kafka-1", 1), Address("kafka-2.example", 2)]),
        ("[::1]:9093,127.0.0.1:9094", [Address("::1", 9093), Address("127.0.0.1", 9094)]),
    ],
)
def test_addresses(servers: str, expected: list[Address]) -> None:
    assert addresses(servers) == tuple(expected)


def test_the_text_of_an_address() -> None:
    assert [str(address) for address in addresses("[::1]:1,kafka:2")] == ["[::1]:1", "kafka:2"]


@pytest.mark.parametrize("servers", ["kafka:0", "kafka:65536", "kafka:x", "::1:9092", "http:/kafka"])
def test_addresses_of_another_form(servers: str) -> None:
    with pytest.raises(ValueError, match=f"bootstrap.servers: '{servers}' is not of the form host:port"):
        addresses(servers)


@pytest.mark.parametrize("servers", ["", " , "])
def test_no_address(servers: str) -> None:
    with pytest.raises(ValueError, match=r"bootstrap\.servers names no broker"):
        addresses(servers)


def test_tls() -> None:
    texts = {
        "ssl.ca.location": "a",
        "ssl.ca.pem": "b",
        "ssl.crl.location": "c",
        "ssl.certificate.location": "d",
        "ssl.certificate.pem": "e",
        "ssl.key.location": "f",
        "ssl.key.pem": "g",
        "ssl.key.password": "h",
        "ssl.keystore.location": "i",
        "ssl.keystore.password": "j",
        "ssl.cipher.suites": "k",
    }
    assert connection_settings({**SERVERS, **texts}).tls is None
    for protocol, more in (("ssl", {}), ("SASL_SSL", {"sasl.mechanism": "PLAIN", "sasl.username": "alice"})):
        given = {**SERVERS, **texts, **more, "security.protocol": protocol}
        assert connection_settings(given).tls == TlsSettings(*texts.values())


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("enable.ssl.certificate.verification", "false", TlsSettings(verify=False)),
        ("ssl.endpoint.identification.algorithm", "none", TlsSettings(verify_host=False)),
        ("ssl.endpoint.identification.algorithm", "HTTPS", TlsSettings()),
    ],
)
def test_verification(name: str, value: str, expected: TlsSettings) -> None:
    assert connection_settings({**SERVERS, "security.protocol": "ssl", name: value}).tls == expected


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "scram-sha-512"])
def test_passwords(mechanism: str) -> None:
    settings = {
        **SERVERS,
        "security.protocol": "sasl_plaintext",
        "sasl.mechanism": mechanism,
        "sasl.username": "alice",
        "sasl.password": "secret",
    }
    assert connection_settings(settings).credentials == Password(mechanism.upper(), "alice", "secret")
    assert connection_settings({**settings, "security.protocol": "plaintext"}).credentials is None
    del settings["sasl.username"]
    with pytest.raises(ValueError, match=f"sasl.mechanism={mechanism.upper()} needs sasl.username and sasl.password"):
        connection_settings(settings)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("sasl.mechanism", "GSSAPI"),
        ("sasl.mechanism", "OAUTHBEARER"),
        ("sasl.mechanism", ""),
        ("ssl.engine.id", "pkcs11"),
        ("ssl.providers", "fips"),
        ("ssl.curves.list", "X25519"),
    ],
)
def test_what_only_librdkafka_has(name: str, value: str) -> None:
    with pytest.raises(NotSupported) as caught:
        connection_settings({**SERVERS, "security.protocol": "sasl_ssl", "sasl.username": "alice", name: value})
    assert caught.value.setting == name


def test_no_setting_of_connections_is_dropped() -> None:
    """A setting of librdkafka about connections is either read or refused."""
    names = {name for name in SETTINGS if name.startswith(NAMES_THAT_CONNECT)} - OF_OTHER_PARTS
    read: set[str] = set()

    class Recorder(dict[str, str]):
        def get(self, name: str, default: str | None = None) -> str | None:  # type: ignore[override]
            read.add(name)
            return super().get(name, default)

    settings = {**SERVERS, "security.protocol": "sasl_ssl", "sasl.username": "alice", "sasl.mechanism": "PLAIN"}
    connection_settings(Recorder(settings))
    of_logins_by_librdkafka = {name for name in names if name.startswith(("sasl.kerberos.", "sasl.oauthbearer."))}
    assert names - read - of_logins_by_librdkafka == set()


def test_the_names_of_java() -> None:
    java = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": 'org.example.ScramLoginModule required username="a" password="b";',
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": "/ca.pem",
        "ssl.endpoint.identification.algorithm": "",
    }
    settings, problems = translate(ClientKind.PRODUCER, "", java)
    assert problems == []
    found = connection_settings({**SERVERS, **settings})
    assert found.credentials == Password("SCRAM-SHA-512", "a", "b")
    assert found.tls == TlsSettings(ca_location="/ca.pem", verify_host=False)


@pytest.mark.parametrize(("given", "seconds"), [("180000", 180.0), ("0", math.inf), (None, 540.0)])
def test_the_longest_idle_time_is_javas_unless_it_is_set(given: str | None, seconds: float) -> None:
    more = {} if given is None else {"connections.max.idle.ms": given}
    assert connection_settings({**SERVERS, **more}).max_idle == seconds
