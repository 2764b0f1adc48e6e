"""The first requests of a connection: the broker's versions, then the login. Sans-IO: a generator of requests.

::

    ApiVersions ─► (ApiVersions of a version that the broker has) ─► SaslHandshake ─► SaslAuthenticate …
"""

import re
from collections.abc import Generator
from typing import Any

from rowtide.connector.kafka_producer.wire.apis import (
    API_VERSIONS,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    BrokerVersions,
)
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode, code_text
from rowtide.connector.kafka_producer.wire.errors import AuthenticationFailed, UnsupportedBroker
from rowtide.connector.kafka_producer.wire.messages.opening import (
    ApiVersionsAnswer,
    ApiVersionsRequest,
    SaslAuthenticateAnswer,
    SaslAuthenticateRequest,
    SaslHandshakeAnswer,
    SaslHandshakeRequest,
)
from rowtide.connector.kafka_producer.wire.sasl import Password, start
from rowtide.connector.kafka_producer.wire.schema import Request

Step = tuple[Request[Any], int]
"""A request and its version."""


def versions(software: str, software_version: str) -> Generator[Step, Any, BrokerVersions]:
    """Find out the broker's versions; the generator's return value.

    Args:
        software: the client's name, for the broker's metrics.
        software_version: its version. Brokers refuse other characters than letters, digits, dots and hyphens
            (KIP-511), so each of those becomes a hyphen.

    Raises:
        UnsupportedBroker: the broker and rowtide have no version of ApiVersions in common.
    """
    accepted = re.sub(r"[^a-zA-Z0-9.-]", "-", software_version).strip(".-")
    request = ApiVersionsRequest(client_software_name=software, client_software_version=accepted)
    answer: ApiVersionsAnswer = yield request, API_VERSIONS.highest
    if answer.error == ErrorCode.UNSUPPORTED_VERSION:
        # A broker before Kafka 2.4 does not say which versions it has.
        known = BrokerVersions.of(answer)
        answer = yield request, known.version(API_VERSIONS) if API_VERSIONS.key in known.ranges else 0
    if answer.error:
        raise UnsupportedBroker(f"the broker refused ApiVersions with {code_text(answer.error)}")
    return BrokerVersions.of(answer)


def login(known: BrokerVersions, credentials: Password, nonce: str) -> Generator[Step, Any, int]:
    """Authenticate; the generator's return value is the time of the session in milliseconds, 0 for no limit.

    Also authenticates again on an open connection, which a broker with a limit requires (KIP-368).

    Args:
        known: the broker's versions.
        credentials: whose.
        nonce: a random text, a new one for each login.

    Raises:
        AuthenticationFailed: the broker refused the mechanism or the credentials, or did not prove that it has them.
        UnsupportedBroker: the broker is older than Kafka 1.0.
    """
    name = credentials.mechanism
    handshake: SaslHandshakeAnswer = yield SaslHandshakeRequest(mechanism=name), known.version(SASL_HANDSHAKE)
    if handshake.error == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        raise AuthenticationFailed(
            f"the broker's listener does not support sasl.mechanism={name}; it supports "
            f"{', '.join(handshake.mechanisms)}"
        )
    if handshake.error == ErrorCode.ILLEGAL_SASL_STATE:
        raise AuthenticationFailed("the broker's listener does not support SASL: check security.protocol")
    if handshake.error:
        raise AuthenticationFailed(f"the broker refused the SASL mechanism {name}: {code_text(handshake.error)}")
    mechanism = start(credentials, nonce)
    message: bytes | None = mechanism.first()
    lifetime = 0
    while message is not None:
        answer: SaslAuthenticateAnswer = yield (
            SaslAuthenticateRequest(auth_bytes=message),
            known.version(SASL_AUTHENTICATE),
        )
        if answer.error == ErrorCode.SASL_AUTHENTICATION_FAILED:
            raise AuthenticationFailed(f"the broker refused the credentials for {name}: {answer.error_message}")
        if answer.error:
            raise AuthenticationFailed(
                f"SASL authentication with {name} failed: {code_text(answer.error)}: {answer.error_message}"
            )
        message, lifetime = mechanism.next(answer.auth_bytes), answer.session_lifetime_ms
    return lifetime
