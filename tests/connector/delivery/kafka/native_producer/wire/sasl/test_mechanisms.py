"""PLAIN and OAUTHBEARER, and that secrets are not shown."""

from __future__ import annotations

import pytest

from rowtide.connector.delivery.kafka.native_producer.wire.errors import AuthenticationFailed
from rowtide.connector.delivery.kafka.native_producer.wire.sasl.mechanisms import Password, Token, start


def test_plain() -> None:
    plain = start(Password("PLAIN", "älice", "sécret"), "")
    assert plain.first() == "\0älice\0sécret".encode()
    assert plain.next(b"") is None


def test_a_token() -> None:
    bearer = start(Token(lambda: "abc.def", {"traceId": "12", "app": "rowtide"}), "")
    assert bearer.first() == b"n,,\1auth=Bearer abc.def\1traceId=12\1app=rowtide\1\1"
    assert bearer.next(b"") is None


def test_a_refused_token_is_acknowledged() -> None:
    bearer = start(Token(lambda: "abc"), "")
    assert bearer.next(b'{"status":"invalid_token"}') == b"\1"
    with pytest.raises(AuthenticationFailed, match=r'refused the token: {"status":"invalid_token"}'):
        bearer.next(b"")


def test_each_login_has_a_current_token() -> None:
    tokens = iter(["first", "second"])
    credentials = Token(lambda: next(tokens))
    assert b"first" in start(credentials, "").first()
    assert b"second" in start(credentials, "").first()


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram(mechanism: str) -> None:
    assert start(Password(mechanism, "alice", "secret"), "nonce").first() == b"n,,n=alice,r=nonce"


def test_secrets_are_not_shown() -> None:
    assert "secret" not in repr(Password("PLAIN", "alice", "secret"))
