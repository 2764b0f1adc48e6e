"""The first message of each mechanism, and that secrets are not shown."""

from __future__ import annotations

import pytest

from rowtide.connector.kafka_producer.librdkafka_settings import MECHANISMS
from rowtide.connector.kafka_producer.wire.sasl import Password, start


def test_plain() -> None:
    plain = start(Password("PLAIN", "älice", "sécret"), "")
    assert plain.first() == "\0älice\0sécret".encode()
    assert plain.next(b"") is None


def test_every_mechanism_that_the_configuration_accepts() -> None:
    for mechanism in MECHANISMS:
        assert b"alice" in start(Password(mechanism, "alice", "secret"), "nonce").first()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(mechanism: str) -> None:
    assert start(Password(mechanism, "alice", "secret"), "nonce").first() == b"n,,n=alice,r=nonce"


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(Password("PLAIN", "alice", "secret"))
