"""Stores of Java's Kafka clients become PEM."""

from pathlib import Path

import pytest

from rowtide.connector.config import ConfigurationError
from rowtide.connector.config.load import from_properties
from rowtide.connector.worker.changed_secrets import values_in_files
from tests.support.configurations import PROPERTIES

STORES = Path(__file__).parents[1] / "files" / "stores"
TRUST = {"ssl.truststore.location": str(STORES / "trust.jks"), "ssl.truststore.password": "changeit"}
KEY = {
    "ssl.keystore.location": str(STORES / "key.jks"),
    "ssl.keystore.password": "changeit",
    "ssl.key.password": "other-pw",
}


def test_java_stores_become_settings_of_librdkafka() -> None:
    config = from_properties(PROPERTIES | TRUST | KEY | {"ssl.truststore.type": "JKS"})
    for client in (config.kafka.producer, config.kafka.consumer, config.kafka.admin, config.history.consumer):
        assert client["ssl.ca.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
        assert client["ssl.certificate.pem"].startswith("-----BEGIN CERTIFICATE-----\n")
        assert client["ssl.key.pem"].startswith("-----BEGIN PRIVATE KEY-----\n")
        assert not client.keys() & {"ssl.keystore.location", "ssl.keystore.password", "ssl.key.password"}
    assert config.masked_properties()["ssl.keystore.location"] == KEY["ssl.keystore.location"]
    assert "PRIVATE" not in f"{config}{config.masked_properties()}"


def test_the_stores_of_one_client_are_its_own() -> None:
    config = from_properties(PROPERTIES | {f"producer.override.{name}": text for name, text in TRUST.items()})
    assert "ssl.ca.pem" in config.kafka.producer
    assert "ssl.ca.pem" not in config.kafka.consumer


def test_the_password_of_a_store_that_becomes_a_setting_may_come_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "secrets.properties"
    file.write_text("trust=changeit\n")
    referred = {"ssl.truststore.password": f"${{file:{file}:trust}}"}
    config = from_properties(PROPERTIES | TRUST | referred)
    assert "ssl.ca.pem" in config.kafka.producer
    assert config.file_values == values_in_files(config.properties) == {"ssl.truststore.password": "changeit"}
    assert "changeit" not in f"{config}"


def test_the_content_counts_and_not_the_name() -> None:
    config = from_properties(PROPERTIES | TRUST | {"ssl.truststore.location": str(STORES / "trust_pkcs12.jks")})
    assert "ssl.ca.pem" in config.kafka.producer


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (TRUST | {"ssl.truststore.password": "secret-x"}, "its password is not correct"),
        (KEY | {"ssl.key.password": "secret-x"}, "its key has a different password"),
        (TRUST | {"ssl.truststore.location": "/none/trust.jks"}, "/none/trust.jks cannot be read"),
        ({**KEY, "ssl.keystore.location": TRUST["ssl.truststore.location"]}, "has no private key"),
    ],
)
def test_a_store_that_cannot_be_used_is_one_problem(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        from_properties(PROPERTIES | given)
    (problem,) = caught.value.problems
    assert problem.property.endswith("store.location")
    assert message in problem.message
    assert "secret-x" not in str(problem)
