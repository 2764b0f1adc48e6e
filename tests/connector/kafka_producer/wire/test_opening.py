"""The first requests of a connection, with answers of brokers of several ages."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from rowtide.connector.kafka_producer.wire.apis import SASL_AUTHENTICATE, SASL_HANDSHAKE, BrokerVersions
from rowtide.connector.kafka_producer.wire.errors import AuthenticationFailed, UnsupportedBroker
from rowtide.connector.kafka_producer.wire.frames import decode_answer
from rowtide.connector.kafka_producer.wire.messages.opening import (
    ApiRange,
    ApiVersionsAnswer,
    SaslAuthenticateAnswer,
    SaslAuthenticateRequest,
    SaslHandshakeAnswer,
    SaslHandshakeRequest,
)
from rowtide.connector.kafka_producer.wire.opening import login, versions
from rowtide.connector.kafka_producer.wire.sasl import Password
from tests.support.kafka.wire import EXCHANGES

VERSIONS = ApiVersionsAnswer(error=0, api_keys=(ApiRange(api_key=0, min_version=3, max_version=9),))
UNSUPPORTED = ApiVersionsAnswer(error=35, api_keys=())
SASL = BrokerVersions({SASL_HANDSHAKE.key: (0, 1), SASL_AUTHENTICATE.key: (0, 2)}, {})
PLAIN = Password("PLAIN", "alice", "secret")
NONCE = "fyko+d2lbbFgONRv9qkxdawL"
"""That of the recorded logins."""


def followed(steps: Generator[Any, Any, Any], answers: list[Any]) -> tuple[list[Any], Any]:
    """The requests of a generator, and its return value."""
    requests = [next(steps)]
    for answer in answers:
        try:
            requests.append(steps.send(answer))
        except StopIteration as end:
            return requests, end.value
    raise AssertionError(f"it needs an answer to {requests[-1]}")


def accepted(message: bytes = b"", lifetime: int = 0) -> SaslAuthenticateAnswer:
    return SaslAuthenticateAnswer(error=0, error_message=None, auth_bytes=message, session_lifetime_ms=lifetime)


def test_the_versions_of_a_broker() -> None:
    requests, found = followed(versions("rowtide", "1.0"), [VERSIONS])
    ((request, version),) = requests
    assert (request.client_software_name, request.client_software_version, version) == ("rowtide", "1.0", 4)
    assert found == BrokerVersions({0: (3, 9)}, {})


@pytest.mark.parametrize(
    ("given", "sent"), [("1.2.3", "1.2.3"), ("1.0.dev3+g12ab.d2026", "1.0.dev3-g12ab.d2026"), ("1.0+", "1.0")]
)
def test_characters_that_a_broker_refuses_in_a_version(given: str, sent: str) -> None:
    ((request, _),), _ = followed(versions("rowtide", given), [VERSIONS])
    assert request.client_software_version == sent


@pytest.mark.parametrize(
    ("known", "expected"),
    [((), 0), ((ApiRange(api_key=18, min_version=0, max_version=2),), 2)],
    ids=["before Kafka 2.4", "since Kafka 2.4"],
)
def test_a_broker_without_the_newest_version(known: tuple[ApiRange, ...], expected: int) -> None:
    requests, found = followed(versions("rowtide", "1.0"), [ApiVersionsAnswer(error=35, api_keys=known), VERSIONS])
    assert [version for _, version in requests] == [4, expected]
    assert found.ranges == {0: (3, 9)}


def test_a_broker_without_any_version() -> None:
    with pytest.raises(UnsupportedBroker, match=r"refused ApiVersions with UNSUPPORTED_VERSION \(35\)"):
        followed(versions("rowtide", "1.0"), [UNSUPPORTED, UNSUPPORTED])
    newer = ApiVersionsAnswer(error=35, api_keys=(ApiRange(api_key=18, min_version=5, max_version=6),))
    with pytest.raises(UnsupportedBroker, match="the versions 5 to 6 of ApiVersions, rowtide has 0 to 4"):
        followed(versions("rowtide", "1.0"), [newer])


def test_a_login() -> None:
    requests, lifetime = followed(
        login(SASL, PLAIN, NONCE), [SaslHandshakeAnswer(error=0, mechanisms=("PLAIN",)), accepted(lifetime=5000)]
    )
    assert requests == [
        (SaslHandshakeRequest(mechanism="PLAIN"), 1),
        (SaslAuthenticateRequest(auth_bytes=b"\0alice\0secret"), 2),
    ]
    assert lifetime == 5000


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_recorded_login(mechanism: str) -> None:
    recorded = [exchange for exchange in EXCHANGES if exchange.name == mechanism]
    answers = [decode_answer(exchange.sent, exchange.answer) for exchange in recorded]
    requests, lifetime = followed(login(SASL, Password(mechanism, "alice", "alice-secret"), NONCE), answers)
    sent = [request.auth_bytes for request, _ in requests[1:]]
    assert all(message in exchange.request for message, exchange in zip(sent, recorded[1:], strict=True))
    assert lifetime == 5000
    with pytest.raises(AuthenticationFailed, match="did not prove that it has the user's password"):
        followed(login(SASL, Password(mechanism, "alice", "another"), NONCE), answers)


@pytest.mark.parametrize(
    ("name", "credentials", "problem"),
    [
        (
            "PLAIN with a wrong password",
            PLAIN,
            "refused the credentials for PLAIN: Authentication failed: Invalid username or password",
        ),
        (
            "SCRAM-SHA-512 with a wrong password",
            Password("SCRAM-SHA-512", "alice", "wrong"),
            "refused the credentials for SCRAM-SHA-512: .*invalid credentials with SASL mechanism SCRAM-SHA-512",
        ),
        (
            "an unknown mechanism",
            PLAIN,
            "does not support sasl.mechanism=PLAIN; it supports PLAIN, SCRAM-SHA-512, SCRAM-SHA-256, OAUTHBEARER",
        ),
    ],
)
def test_a_recorded_refusal(name: str, credentials: Password, problem: str) -> None:
    recorded = [exchange for exchange in EXCHANGES if exchange.name == name]
    answers = [decode_answer(exchange.sent, exchange.answer) for exchange in recorded]
    with pytest.raises(AuthenticationFailed, match=problem):
        followed(login(SASL, credentials, NONCE), answers)


def test_a_listener_without_logins() -> None:
    with pytest.raises(
        AuthenticationFailed, match=r"the broker's listener does not support SASL: check security\.protocol"
    ):
        followed(login(SASL, PLAIN, NONCE), [SaslHandshakeAnswer(error=34, mechanisms=())])


def test_other_errors() -> None:
    with pytest.raises(AuthenticationFailed, match=r"refused the SASL mechanism PLAIN: UNKNOWN_SERVER_ERROR \(-1\)"):
        followed(login(SASL, PLAIN, NONCE), [SaslHandshakeAnswer(error=-1, mechanisms=())])
    failed = SaslAuthenticateAnswer(error=34, error_message="why", auth_bytes=b"")
    with pytest.raises(
        AuthenticationFailed, match=r"SASL authentication with PLAIN failed: ILLEGAL_SASL_STATE \(34\).*why"
    ):
        followed(login(SASL, PLAIN, NONCE), [SaslHandshakeAnswer(error=0, mechanisms=()), failed])


def test_a_broker_that_accepts_without_a_proof() -> None:
    credentials = Password("SCRAM-SHA-256", "alice", "secret")
    with pytest.raises(AuthenticationFailed, match="the broker's message cannot be used"):
        followed(login(SASL, credentials, NONCE), [SaslHandshakeAnswer(error=0, mechanisms=()), accepted()])


def test_a_broker_before_kafka_1_0() -> None:
    old = BrokerVersions({SASL_HANDSHAKE.key: (0, 0)}, {})
    with pytest.raises(UnsupportedBroker, match="the versions 0 to 0 of SaslHandshake, rowtide has 1 to 1"):
        followed(login(old, PLAIN, NONCE), [])
