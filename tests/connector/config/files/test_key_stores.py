"""Java's stores, as ``keytool`` of Java 17 made them: the store's password is changeit, that of the key other-pw."""

from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_der_private_key

from rowtide.connector.config.files.key_stores import KeyStore, kind_of, pem, read_key_store

STORES = Path(__file__).parent / "stores"


def content(name: str) -> bytes:
    return (STORES / name).read_bytes()


def subject(certificate: bytes) -> str:
    return x509.load_der_x509_certificate(certificate).subject.rfc4514_string()


@pytest.mark.parametrize("name", ["trust.jks", "trust_pkcs12.jks"])
def test_trusted_certificates_are_read(name: str) -> None:
    store = read_key_store(content(name), "changeit")
    assert [subject(one) for one in store.certificates] == ["CN=client"]
    assert store.key is None


def test_a_key_with_its_chain_is_read() -> None:
    store = read_key_store(content("key.jks"), "changeit", "other-pw")
    assert store.key is not None
    assert [subject(one) for one in store.chain] == ["CN=client"]
    key = load_der_private_key(store.key, None)
    assert key.public_key() == x509.load_der_x509_certificate(store.chain[0]).public_key()


def test_the_kind_follows_from_the_content() -> None:
    assert [kind_of(content(name)) for name in ("key.jks", "trust_pkcs12.jks")] == ["JKS", "PKCS12"]
    assert kind_of(b"\xce\xce\xce\xce") == "JCEKS"
    assert kind_of(pem("CERTIFICATE", b"abc").encode()) == "PEM"


def test_without_a_password_certificates_are_read_and_keys_are_not() -> None:
    assert len(read_key_store(content("trust.jks"), None).trusted) == 1
    assert read_key_store(content("key.jks"), None) == KeyStore()


@pytest.mark.parametrize(
    ("name", "passwords", "reason"),
    [
        ("trust.jks", ("wrong", None), "its password is not correct"),
        ("key.jks", ("changeit", None), "its key has a different password"),
        ("key.jks", ("changeit", "wrong"), "its key has a different password"),
        ("trust_pkcs12.jks", ("wrong", None), "[Ii]nvalid password"),
    ],
)
def test_a_wrong_password_is_an_error(name: str, passwords: tuple[str, str | None], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_key_store(content(name), *passwords)


@pytest.mark.parametrize("name", ["trust.jks", "key.jks"])
def test_a_damaged_store_is_an_error_wherever_it_is_cut(name: str) -> None:
    whole = content(name)
    for length in range(4, len(whole)):
        with pytest.raises(ValueError, match=r"damaged|another"):
            read_key_store(whole[:length], "changeit", "other-pw")


def test_a_store_of_another_kind_names_the_conversion() -> None:
    with pytest.raises(ValueError, match=r"JCEKS.*keytool -importkeystore"):
        read_key_store(b"\xce\xce\xce\xce", "changeit")
