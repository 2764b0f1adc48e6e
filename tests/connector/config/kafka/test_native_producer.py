"""The settings of rowtide's own producer: each of librdkafka's is read, reported, or known to be harmless."""

from __future__ import annotations

from typing import Any

import pytest

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.connector.config.kafka.librdkafka import SETTINGS
from rowtide.connector.config.kafka.producer_settings import native_problems
from rowtide.connector.kafka_producer.connection.settings import connection_settings
from rowtide.connector.kafka_producer.librdkafka_settings import ONLY_LIBRDKAFKA, WITHOUT_EFFECT
from rowtide.connector.kafka_producer.settings import producer_settings
from tests.support.configurations import PROPERTIES

NATIVE = {"rowtide.producer": "native"}
PROMISED = {"acks", "allow.auto.create.topics", "enable.idempotence", "max.in.flight.requests.per.connection"}
"""What delivery requires has one value, see ``producer_settings``."""
BY_VALUE = {"client.dns.lookup", "partitioner", "queuing.strategy"}


class Recorder(dict[str, Any]):
    """Settings, and the names that are read."""

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__(settings)
        self.names: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.names.add(name)
        return super().get(name, default)


def found(properties: dict[str, str]) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        from_properties(PROPERTIES | properties)
    return {problem.property: problem.message for problem in caught.value.problems}


def test_no_setting_of_a_producer_is_dropped_silently() -> None:
    of_producers = {name for name, (scope, _) in SETTINGS.items() if scope in "P*"}
    settings = Recorder(
        {
            "bootstrap.servers": "k:9092",
            "security.protocol": "sasl_ssl",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "a",
        }
    )
    producer_settings(settings)
    connection_settings(settings)
    read = settings.names
    assert of_producers - read - PROMISED - BY_VALUE == WITHOUT_EFFECT
    assert (read - ONLY_LIBRDKAFKA) & WITHOUT_EFFECT == set()
    assert of_producers >= ONLY_LIBRDKAFKA


@pytest.mark.parametrize("name", sorted(ONLY_LIBRDKAFKA))
def test_every_setting_that_only_librdkafka_has_is_reported(name: str) -> None:
    ((subject, message),) = native_problems({"bootstrap.servers": "k:9092", name: "1"})
    assert subject == name
    assert "rowtide.producer=librdkafka" in message


def test_usual_settings_are_not_a_problem() -> None:
    usual = {
        "partitioner": "murmur2_random",
        "queuing.strategy": "FIFO",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "scram-sha-512",
        "retries": "2147483647",
        "linger.ms": "5",
    }
    assert list(native_problems(usual)) == []


def test_all_problems_are_reported_together_by_the_names_of_their_properties() -> None:
    given = {
        "tabel.include.list": "x",
        "producer.override.partitioner": "random",
        "producer.ssl.sigalgs.list": "ed25519",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "GSSAPI",
        "producer.override.acks": "1",
    }
    problems = found(given | NATIVE)
    assert problems.keys() == given.keys() - {"security.protocol", "producer.override.acks"} | {"producer.override"}
    assert "only supports murmur2_random, not random" in problems["producer.override.partitioner"]
    assert "not GSSAPI" in problems["sasl.mechanism"]


def test_a_login_without_a_mechanism_is_kerberos() -> None:
    assert found({"security.protocol": "SASL_PLAINTEXT"} | NATIVE).keys() == {"sasl.mechanism"}


def test_the_property_that_overrides_others_is_named() -> None:
    given = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "producer.override.sasl.mechanism": "OAUTHBEARER",
    }
    assert found(given | NATIVE).keys() == {"producer.override.sasl.mechanism"}


@pytest.mark.parametrize(
    "other", [{}, {"rowtide.producer": "auto"}, {"rowtide.producer": "librdkafka"}, {"rowtide.sink": "stdout"} | NATIVE]
)
def test_without_the_native_producer_there_is_no_problem(other: dict[str, str]) -> None:
    assert from_properties(PROPERTIES | {"producer.override.partitioner": "random"} | other)
