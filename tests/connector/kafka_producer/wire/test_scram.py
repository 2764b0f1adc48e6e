"""SCRAM: the example of RFC 7677, recorded logins, and brokers that are not right."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.wire.errors import AuthenticationFailed
from rowtide.connector.kafka_producer.wire.sasl import Scram

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_NONCE = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
FIRST = f"r={SERVER_NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"


def pencil() -> Scram:
    return Scram("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_the_example_of_the_rfc() -> None:
    scram = pencil()
    assert scram.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert scram.next(FIRST.encode()) == (
        f"c=biws,r={SERVER_NONCE},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    )
    assert scram.next(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


@pytest.mark.parametrize(
    "final", [b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G0=", b"v=AAAA", b"v=", b"", b"w=AAAA", b"v=!"]
)
def test_a_broker_that_does_not_have_the_password(final: bytes) -> None:
    scram = pencil()
    scram.next(FIRST.encode())
    with pytest.raises(AuthenticationFailed, match="SCRAM-SHA-256: the broker"):
        scram.next(final)


def test_the_broker_refuses() -> None:
    scram = pencil()
    scram.next(FIRST.encode())
    with pytest.raises(AuthenticationFailed, match="the broker refused the login: invalid-proof"):
        scram.next(b"e=invalid-proof")


@pytest.mark.parametrize(
    ("first", "problem"),
    [
        (FIRST.replace(NONCE, "x" * len(NONCE)), "its nonce does not extend the client's"),
        (f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "its nonce does not extend the client's"),
        (FIRST.replace("s=", "t="), "its attribute s is missing or not Base64"),
        (FIRST.replace("s=W", "s=%"), "its attribute s is missing or not Base64"),
        (FIRST.replace("4096", "4095"), "'4095' iterations are not 4096 to 1000000"),
        (FIRST.replace("4096", "1000001"), "'1000001' iterations are not"),
        (FIRST.replace("4096", "9" * 30), "iterations are not"),
        (FIRST.replace("4096", "0000040960"), "'0000040960' iterations are not"),
        (FIRST.replace("4096", "-4096"), "'-4096' iterations are not"),
        (FIRST.replace("4096", "٤٠٩٦"), "iterations are not"),
        (FIRST.replace(",i=4096", ""), "'' iterations are not"),
        ("", "is missing or not Base64"),
    ],
)
def test_a_first_message_that_cannot_be_used(first: str, problem: str) -> None:
    with pytest.raises(AuthenticationFailed, match=f"the broker's message cannot be used: .*{problem}"):
        pencil().next(first.encode())


def test_a_message_that_is_not_utf_8() -> None:
    with pytest.raises(AuthenticationFailed, match="its message is not UTF-8"):
        pencil().next(b"\xff\xfe")


@given(st.binary(max_size=60))
def test_random_messages_are_refused(message: bytes) -> None:
    with pytest.raises(AuthenticationFailed):
        pencil().next(message)


@pytest.mark.parametrize(("mechanism", "name"), [("SCRAM-SHA-256", "sha256"), ("SCRAM-SHA-512", "sha512")])
@pytest.mark.parametrize(("username", "sent"), [("alice", "alice"), ("a=b,c", "a=3Db=2Cc"), ("jürgen", "jürgen")])
def test_the_proof_is_what_a_broker_expects(mechanism: str, name: str, username: str, sent: str) -> None:
    """The broker's side, with the formulas of RFC 5802."""
    salt, password = b"salt of a broker", "pässword"
    scram = Scram(mechanism, username, password, "abc")
    bare = scram.first().removeprefix(b"n,,")
    assert bare.decode() == f"n={sent},r=abc"
    first = f"r=abcdef,s={base64.b64encode(salt).decode()},i=5000".encode()
    final, _, proof = (scram.next(first) or b"").rpartition(b",p=")
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, 5000)
    stored = hashlib.new(name, hmac.digest(salted, b"Client Key", name)).digest()
    signed = b",".join([bare, first, final])
    signature = hmac.digest(stored, signed, name)
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), signature, strict=True))
    assert hashlib.new(name, key).digest() == stored
    server = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    assert scram.next(b"v=" + base64.b64encode(server)) is None
