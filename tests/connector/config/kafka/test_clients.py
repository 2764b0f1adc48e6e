"""Settings of Kafka clients with Java's and with librdkafka's names."""

from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from rowtide.connector.config import from_properties
from rowtide.connector.config.kafka.clients import DEFAULTS, ClientKind, ClientSettings, layers, translate
from rowtide.connector.config.kafka.librdkafka import SETTINGS

JAVA = {
    "linger.ms": ("50", {"linger.ms": "50"}),
    "batch.size": ("524288", {"batch.size": "524288"}),
    "buffer.memory": ("33554433", {"queue.buffering.max.kbytes": "32769"}),
    "max.request.size": ("2097152", {"message.max.bytes": "2097152"}),
    "compression.type": ("lz4", {"compression.type": "lz4"}),
    "compression.zstd.level": ("3", {"compression.level": "3"}),
    "acks": ("all", {"acks": "all"}),
    "delivery.timeout.ms": ("1000", {"message.timeout.ms": "1000"}),
    "request.timeout.ms": ("30000", {"request.timeout.ms": "30000"}),
    "send.buffer.bytes": ("-1", {"socket.send.buffer.bytes": "0"}),
    "security.protocol": ("SASL_SSL", {"security.protocol": "SASL_SSL"}),
    "ssl.endpoint.identification.algorithm": ("", {"ssl.endpoint.identification.algorithm": "none"}),
    "ssl.truststore.location": ("/etc/ca.pem", {"ssl.ca.location": "/etc/ca.pem"}),
    "ssl.keystore.location": (
        "/etc/me.pem",
        {"ssl.certificate.location": "/etc/me.pem", "ssl.key.location": "/etc/me.pem"},
    ),
    "ssl.truststore.certificates": ("-----BEGIN", {"ssl.ca.pem": "-----BEGIN"}),
    "max.block.ms": ("60000", {}),
    "metric.reporters": ("", {}),
    "partitioner.class": (
        "org.apache.kafka.clients.producer.internals.DefaultPartitioner",
        {"partitioner": "murmur2_random"},
    ),
    "sasl.jaas.config": (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="u\\"x" password=\'p=;\';',
        {"sasl.username": 'u"x', "sasl.password": "p=;"},
    ),
}


@pytest.mark.parametrize("name", JAVA)
def test_javas_names_of_a_producers_settings(name: str) -> None:
    value, expected = JAVA[name]
    assert translate(ClientKind.PRODUCER, "producer.", {name: value}) == (expected, [])


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("queue.buffering.max.kbytes", "1024", {"queue.buffering.max.kbytes": "1024"}),
        ("queue.buffering.max.ms", "5", {"linger.ms": "5"}),
        ("request.required.acks", "-1", {"acks": "-1"}),
        ("message.timeout.ms", "0", {"message.timeout.ms": "0"}),
        ("compression.codec", "zstd", {"compression.type": "zstd"}),
    ],
)
def test_librdkafkas_own_names(name: str, value: str, expected: dict[str, str]) -> None:
    assert translate(ClientKind.PRODUCER, "", {name: value}) == (expected, [])


def test_the_request_timeout_is_the_socket_timeout_except_for_producers() -> None:
    assert translate(ClientKind.ADMIN, "", {"request.timeout.ms": "5000"})[0] == {"socket.timeout.ms": "5000"}


@pytest.mark.parametrize("store", ["keystore", "truststore"])
def test_a_java_key_store_is_refused_with_the_command_to_convert_it(store: str, tmp_path: Path) -> None:
    path = tmp_path / "store.jks"
    _, problems = translate(ClientKind.PRODUCER, "producer.", {f"ssl.{store}.location": str(path)})
    assert problems[0].message == f"{path} cannot be read: No such file or directory"
    path.touch()
    _, problems = translate(ClientKind.PRODUCER, "producer.", {f"ssl.{store}.location": str(path)})
    assert "keytool" in problems[0].message
    stated = {f"ssl.{store}.location": "/x/store", f"ssl.{store}.type": "PEM"}
    assert translate(ClientKind.PRODUCER, "", stated)[1] == []


def test_a_key_store_may_be_pkcs12() -> None:
    settings, problems = translate(
        ClientKind.PRODUCER, "", {"ssl.keystore.location": "a.p12", "ssl.keystore.password": "x"}
    )
    assert settings == {"ssl.keystore.location": "a.p12", "ssl.keystore.password": "x"}
    assert problems == []


def test_kerberos_and_oauth_logins() -> None:
    kerberos = 'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" principal="p@R";'
    assert translate(ClientKind.ADMIN, "", {"sasl.jaas.config": kerberos})[0] == {
        "sasl.kerberos.keytab": "/k",
        "sasl.kerberos.principal": "p@R",
    }
    oauth = 'a.b.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="z";'
    assert translate(ClientKind.ADMIN, "", {"sasl.jaas.config": oauth})[0] == {
        "sasl.oauthbearer.method": "oidc",
        "sasl.oauthbearer.client.id": "i",
        "sasl.oauthbearer.client.secret": "s",
        "sasl.oauthbearer.scope": "z",
    }


def test_settings_of_one_client_override_those_of_all_clients(valid: dict[str, str]) -> None:
    config = from_properties(
        valid
        | {
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": "PLAIN",
            "client.id": "all",
            "producer.client.id": "some",
            "producer.linger.ms": "1",
            "producer.override.linger.ms": "2",
            "producer.override.bootstrap.servers": "other:9092",
            "schema.history.internal.producer.client.id": "history",
            "schema.history.internal.consumer.fetch.min.bytes": "1",
            "schema.history.internal.kafka.bootstrap.servers": "third:9092",
        }
    )
    common = {**DEFAULTS, "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    assert config.kafka.producer == {**common, "client.id": "some", "linger.ms": "2", "bootstrap.servers": "other:9092"}
    assert config.kafka.admin == {**common, "client.id": "all", "bootstrap.servers": "127.0.0.1:9092"}
    assert config.history.producer == {**common, "client.id": "history", "bootstrap.servers": "third:9092"}
    assert config.history.consumer["fetch.min.bytes"] == "1"
    assert config.history.admin["client.id"] == "history"


def test_settings_override_the_defaults_of_all_clients(valid: dict[str, str]) -> None:
    config = from_properties(valid | {"reconnect.backoff.ms": "500", "producer.override.reconnect.backoff.ms": "200"})
    clients = (config.kafka.producer, config.kafka.consumer, config.kafka.admin, config.history.admin)
    assert [client["reconnect.backoff.ms"] for client in clients] == ["200", "500", "500", "500"]


def test_the_longest_prefix_applies() -> None:
    properties = {"producer.a": "1", "producer.override.b": "2", "x": "3"}
    assert dict(layers(properties, "producer.", "producer.override.")) == {
        "producer.": {"a": "1"},
        "producer.override.": {"b": "2"},
    }


def test_printed_settings_contain_names_only() -> None:
    assert str(ClientSettings({"sasl.password": "geheim"})) == "ClientSettings(sasl.password)"


def test_librdkafka_accepts_the_settings_of_the_table() -> None:
    """A name that librdkafka does not have is rejected with an error that says so."""
    unknown = []
    for name, (scope, allowed) in SETTINGS.items():
        if " .. " not in allowed:
            continue
        client = Consumer if scope == "C" else Producer if scope == "P" else AdminClient
        try:
            made = client({"group.id": "g", "log_level": 0, name: allowed.split(" .. ")[0]})
        except KafkaException as error:
            if "No such configuration property" in str(error):
                unknown.append(name)
        else:
            if isinstance(made, Consumer):
                made.close()
    assert unknown == []


def test_a_producer_accepts_translated_settings(valid: dict[str, str]) -> None:
    tuned = {
        "producer.override.linger.ms": "50",
        "producer.override.batch.size": "524288",
        "producer.override.compression.type": "lz4",
        "producer.override.buffer.memory": "67108864",
        "producer.override.max.request.size": "4194304",
        "producer.override.acks": "all",
        "producer.override.enable.idempotence": "true",
        "producer.override.max.in.flight.requests.per.connection": "5",
        "producer.override.retries": "2147483647",
    }
    config = from_properties(valid | tuned)
    Producer({"log_level": 0, **config.kafka.producer})
