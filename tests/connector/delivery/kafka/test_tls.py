"""TLS contexts: certificates and keys from files, texts and PKCS#12."""

from __future__ import annotations

import socket
import ssl
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
    pkcs12,
)
from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.delivery.kafka.tls import TlsFileError, tls_context
from rowtide.connector.kafka_producer.connection.settings import TlsSettings


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> TlsFiles:
    return TlsFiles.make(tmp_path_factory.mktemp("tls"))


@pytest.fixture(scope="module")
def encrypted_key(files: TlsFiles) -> Path:
    """The client's key, encrypted with the password "secret"."""
    key = load_pem_private_key(files.client_key.read_bytes(), None)
    path = files.folder / "encrypted.key"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")))
    return path


@pytest.fixture(scope="module")
def key_store(files: TlsFiles) -> Path:
    """The client's key and certificate as PKCS#12, with the password "secret"."""
    key: Any = load_pem_private_key(files.client_key.read_bytes(), None)
    certificate = x509.load_pem_x509_certificate(files.client_certificate.read_bytes())
    path = files.folder / "client.p12"
    path.write_bytes(
        pkcs12.serialize_key_and_certificates(b"client", key, certificate, None, BestAvailableEncryption(b"secret"))
    )
    return path


def client_seen(files: TlsFiles, tls: TlsSettings) -> str:
    """The name in the certificate that a server gets from a client with these settings; empty if it gets none."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(files.folder / "server.pem", files.folder / "server.key")
    server.load_verify_locations(files.ca)
    server.verify_mode = ssl.CERT_OPTIONAL
    ours, theirs = socket.socketpair()

    def receive() -> None:
        with tls_context(tls).wrap_socket(ours, server_hostname="localhost") as sock:
            sock.recv(1)

    client = threading.Thread(target=receive)
    client.start()
    with server.wrap_socket(theirs, server_side=True) as sock:
        certificate: Any = sock.getpeercert()
        sock.send(b"x")
    client.join()
    return str(certificate["subject"][0][0][1]) if certificate else ""


def test_certificates_and_keys(files: TlsFiles, encrypted_key: Path, key_store: Path, tmp_path: Path) -> None:
    both = tmp_path / "both.pem"
    both.write_bytes(files.client_key.read_bytes() + files.client_certificate.read_bytes())
    certificate, key = str(files.client_certificate), str(files.client_key)
    trusted = TlsSettings(ca_location=str(files.ca))
    assert client_seen(files, trusted) == ""
    identities = [
        {"certificate_location": certificate, "key_location": key},
        {"certificate_location": str(both)},
        {"certificate_location": certificate, "key_location": str(encrypted_key), "key_password": "secret"},
        {"certificate_pem": Path(certificate).read_text(), "key_pem": Path(key).read_text()},
        {"certificate_pem": Path(certificate).read_text(), "key_location": key, "key_password": "not needed"},
        {"certificate_location": certificate, "key_pem": encrypted_key.read_text(), "key_password": "secret"},
        {"keystore_location": str(key_store), "keystore_password": "secret"},
    ]
    for identity in identities:
        assert client_seen(files, replace(trusted, **identity)) == "client", identity


def test_the_authority_as_a_text(files: TlsFiles) -> None:
    assert client_seen(files, TlsSettings(ca_pem=files.ca.read_text())) == ""


def test_what_is_verified() -> None:
    contexts = {
        (verify, host): tls_context(TlsSettings(verify=verify, verify_host=host))
        for verify in (True, False)
        for host in (True, False)
    }
    found = {which: (context.verify_mode, context.check_hostname) for which, context in contexts.items()}
    assert found == {
        (True, True): (ssl.CERT_REQUIRED, True),
        (True, False): (ssl.CERT_REQUIRED, False),
        (False, True): (ssl.CERT_NONE, False),
        (False, False): (ssl.CERT_NONE, False),
    }


@pytest.mark.parametrize("location", ["", "probe"])
def test_the_authorities_of_the_system(location: str, files: TlsFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(files.ca))
    assert client_seen(files, TlsSettings(ca_location=location)) == ""


def test_revoked_certificates_are_looked_up(files: TlsFiles) -> None:
    context = tls_context(TlsSettings(ca_location=str(files.ca), crl_location=str(files.ca)))
    assert context.verify_flags & ssl.VERIFY_CRL_CHECK_LEAF


def test_ciphers() -> None:
    context = tls_context(TlsSettings(ciphers="ECDHE-RSA-AES256-GCM-SHA384"))
    names = {cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] == "TLSv1.2"}
    assert names == {"ECDHE-RSA-AES256-GCM-SHA384"}


def test_what_cannot_be_used(files: TlsFiles, encrypted_key: Path, key_store: Path) -> None:
    certificate = str(files.client_certificate)
    encrypted = "the client's private key is encrypted: set ssl.key.password"
    cases: list[tuple[dict[str, str], str]] = [
        ({"ca_location": "/no/such/file"}, "ssl.ca.location cannot be used: .*No such file"),
        ({"ca_location": str(files.client_key)}, "ssl.ca.location cannot be used"),
        ({"ca_pem": "no certificate"}, "ssl.ca.pem cannot be used"),
        ({"crl_location": "/no/such/file"}, "ssl.crl.location cannot be used"),
        ({"ciphers": "NO-SUCH-CIPHER"}, "ssl.cipher.suites cannot be used"),
        ({"certificate_location": "/no/such/file"}, "ssl.certificate.location cannot be used: .*No such file"),
        ({"certificate_location": certificate}, "ssl.certificate.location cannot be used"),
        ({"certificate_location": certificate, "key_location": str(encrypted_key)}, encrypted),
        ({"certificate_location": certificate, "key_pem": encrypted_key.read_text()}, encrypted),
        (
            {"certificate_location": certificate, "key_location": str(encrypted_key), "key_password": "wrong"},
            "ssl.certificate.location cannot be used",
        ),
        (
            {"certificate_location": certificate, "key_pem": encrypted_key.read_text(), "key_password": "wrong"},
            "ssl.key.pem cannot be used",
        ),
        ({"certificate_pem": "text", "key_location": "/no/such/file"}, "ssl.key.location cannot be used"),
        ({"key_pem": "text", "certificate_pem": "text"}, "ssl.key.pem cannot be used"),
        ({"keystore_location": str(key_store), "keystore_password": "wrong"}, "ssl.keystore.location cannot be used"),
        ({"keystore_location": "/no/such/file"}, "ssl.keystore.location cannot be used: .*No such file"),
    ]
    for given, problem in cases:
        with pytest.raises(TlsFileError, match=problem) as caught:
            tls_context(TlsSettings(**given))
        assert "secret" not in str(caught.value)


def test_an_encrypted_key_alone_is_written_to_the_disk(
    files: TlsFiles, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    written = []
    load = ssl.SSLContext.load_cert_chain

    def recorded(self: ssl.SSLContext, path: str, **more: Any) -> None:
        written.append((Path(path), Path(path).read_text(), Path(path).stat().st_mode & 0o777))
        load(self, path, **more)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", recorded)
    tls_context(TlsSettings(certificate_pem=files.client_certificate.read_text(), key_pem=files.client_key.read_text()))
    ((path, text, mode),) = written
    assert text.startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert mode == 0o600
    assert not path.exists()
