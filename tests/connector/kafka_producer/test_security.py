"""The native producer on the listeners of a real broker, with a connector's properties."""

from __future__ import annotations

import hashlib
import logging
import struct
import time
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, Encoding, load_pem_private_key, pkcs12
from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import idempotent_settings, transactional_settings
from rowtide.connector.config.load import from_properties
from rowtide.connector.delivery.errors import AccessDenied, DeliveryError
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.kafka.producers import new_producer
from rowtide.connector.delivery.kafka.sink import SinkProducer
from rowtide.connector.kafka_producer.connection import connection
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from tests.support.configurations import PROPERTIES
from tests.support.kafka.listeners import PASSWORD, SESSION_MS, USER, Listeners
from tests.support.kafka.topic_tools import Topics

STORE_PASSWORD = "changeit"
_MODULE = "org.apache.kafka.common.security"
PLAIN = {"sasl.mechanism": "PLAIN", "module": f"{_MODULE}.plain.PlainLoginModule"}
SCRAM_256 = {"sasl.mechanism": "SCRAM-SHA-256", "module": f"{_MODULE}.scram.ScramLoginModule"}
SCRAM_512 = {**SCRAM_256, "sasl.mechanism": "SCRAM-SHA-512"}


def producer(
    properties: dict[str, str], transactional_id: str = "", kind: ProducerKind = ProducerKind.NATIVE
) -> SinkProducer:
    """The producer of a connector with these properties."""
    client = from_properties(PROPERTIES | properties).kafka.producer
    settings = transactional_settings(client, transactional_id) if transactional_id else idempotent_settings(client)
    return new_producer(kind, settings, quiet=EventStore().quiet, show_keys=True)


def batch(topic: str, number: int) -> Batch:
    """One message with a number."""
    return Batch(topic, -1, [(b"k", b"%d" % number, ())], SourceOffset("binlog.000001", 4), 2, 0)


def assert_delivers(listeners: Listeners, properties: dict[str, str], kind: ProducerKind = ProducerKind.NATIVE) -> None:
    topics = Topics(listeners.plain)
    topic = topics.new()
    made = producer(properties, kind=kind)
    try:
        made.send([batch(topic, number) for number in range(100)])
        assert made.drain(60)
    finally:
        made.close()
    assert [int(record.value or b"") for record in topics.read(topic)] == list(range(100))


def jks(path: Path, certificate: bytes) -> Path:
    """A trust store of Java with one certificate in DER."""
    entry = struct.pack(">IH", 2, 2) + b"ca" + struct.pack(">QH", 0, 5) + b"X.509"
    content = struct.pack(">III", 0xFEEDFEED, 2, 1) + entry + struct.pack(">I", len(certificate)) + certificate
    path.write_bytes(
        content + hashlib.sha1(STORE_PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content).digest()
    )
    return path


@pytest.fixture(scope="module")
def trust(listeners: Listeners) -> dict[str, str]:
    """Properties with a trust store of Java."""
    authority = x509.load_pem_x509_certificate(listeners.files.ca.read_bytes())
    store = jks(listeners.files.folder / "trust.jks", authority.public_bytes(Encoding.DER))
    return {"ssl.truststore.location": str(store), "ssl.truststore.password": STORE_PASSWORD}


def key_store(files: TlsFiles) -> dict[str, str]:
    """Properties with the client's key in PKCS#12."""
    key = load_pem_private_key(files.client_key.read_bytes(), None)
    certificate = x509.load_pem_x509_certificate(files.client_certificate.read_bytes())
    encryption = BestAvailableEncryption(STORE_PASSWORD.encode())
    path = files.folder / "key.p12"
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"client", key, certificate, None, encryption))  # type: ignore[arg-type]
    return {"ssl.keystore.location": str(path), "ssl.keystore.password": STORE_PASSWORD, "ssl.keystore.type": "PKCS12"}


def login(mechanism: dict[str, str], *, tls: bool = False, password: str = PASSWORD) -> dict[str, str]:
    """Properties of a login, as for Java's clients."""
    return {
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism["sasl.mechanism"],
        "sasl.jaas.config": f'{mechanism["module"]} required username="{USER}" password="{password}";',
    }


@pytest.mark.servers
def test_tls_with_the_stores_of_java(listeners: Listeners, trust: dict[str, str]) -> None:
    ssl = {"security.protocol": "SSL", **trust}
    assert_delivers(listeners, {"bootstrap.servers": listeners.tls, **ssl})
    mutual = {"bootstrap.servers": listeners.mutual, **ssl}
    assert_delivers(listeners, mutual | key_store(listeners.files))
    anonymous = producer(mutual)
    anonymous.send([batch("t", 0)._replace(partition=0)])
    while not anonymous.problem:
        assert not anonymous.drain(0.1)
    anonymous.close()
    assert "requires a client certificate, or refuses the one it got: see ssl.keystore.location" in anonymous.problem


@pytest.mark.servers
def test_logins(listeners: Listeners, trust: dict[str, str]) -> None:
    for mechanism in (PLAIN, SCRAM_256, SCRAM_512):
        assert_delivers(listeners, {"bootstrap.servers": listeners.sasl, **login(mechanism)})
        assert_delivers(listeners, {"bootstrap.servers": listeners.sasl_tls, **login(mechanism, tls=True), **trust})


@pytest.mark.servers
def test_a_login_by_a_token_is_librdkafkas(listeners: Listeners, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    token = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "producer.override.enable.sasl.oauthbearer.unsecure.jwt": "true",
        "producer.override.sasl.oauthbearer.config": f"principal={USER}",
    }
    assert_delivers(listeners, {"bootstrap.servers": listeners.sasl, **token}, ProducerKind.AUTO)
    assert "Kafka producer: librdkafka, because" in caplog.text


@pytest.mark.servers
def test_a_wrong_password_is_reported_immediately(listeners: Listeners) -> None:
    given = {"bootstrap.servers": listeners.sasl, **login(SCRAM_256, password="wrong")}
    refused = r"refused the credentials for SCRAM-SHA-256.*Check the credentials"
    made, transactional = producer(given), producer(given, "wrong")
    with pytest.raises(AccessDenied, match=refused):
        made.send([batch("t", 0)])
    with pytest.raises(AccessDenied, match=refused):
        transactional.init_transactions(60)
    made.close()
    transactional.close()


@pytest.mark.servers
def test_a_connection_that_the_broker_closes_at_the_end_of_a_session_is_replaced_without_loss(
    listeners: Listeners, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_SESSION_SHARE", 1000.0)  # it does not log in again in time
    topics = Topics(listeners.plain)
    topic = topics.new()
    made = producer({"bootstrap.servers": listeners.sasl, **login(SCRAM_512)}, f"sessions-{topic}")
    made.init_transactions(60)
    end = time.monotonic() + 2.5 * SESSION_MS / 1000
    count, problems = 0, set[str | None]()
    while time.monotonic() < end:
        made.begin_transaction()
        made.send([batch(topic, count + number) for number in range(10)])
        count += 10
        made.commit_transaction()
        problems.add(made.problem)
        time.sleep(0.05)
    made.close()
    assert any("connection" in (problem or "") for problem in problems), problems
    assert [int(record.value or b"") for record in topics.read(topic)] == list(range(count))


@pytest.mark.parametrize(
    "properties",
    [
        {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.method": "oidc"},
        {"sasl.mechanism": "OAUTHBEARER", "producer.override.enable.sasl.oauthbearer.unsecure.jwt": "true"},
        {"sasl.mechanism": "GSSAPI", "sasl.kerberos.service.name": "kafka"},
        {},
    ],
    ids=["OIDC", "unsecured token", "Kerberos", "default"],
)
def test_logins_that_only_librdkafka_has_are_refused_by_name(properties: dict[str, str]) -> None:
    given = {"bootstrap.servers": "127.0.0.1:1", "security.protocol": "SASL_PLAINTEXT", **properties}
    with pytest.raises(DeliveryError, match=r"^sasl\.mechanism.*set rowtide\.producer=librdkafka$"):
        producer(given)
