"""Connections to the database: TLS files, time zones, and the meaning of errors."""

import datetime as dt
import ssl
from pathlib import Path
from typing import Any

import pymysql
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import pkcs12

from rowtide.connector.config import Configuration, Secret, from_properties
from rowtide.connector.config.choices import SslMode
from rowtide.connector.config.model.database import Tls
from rowtide.connector.source.connection.client import Client, connection_arguments
from rowtide.connector.source.connection.errors import connection_failed
from rowtide.connector.source.connection.login import session_time_zone
from rowtide.connector.source.connection.tls import TlsError, tls_context
from tests.support.configurations import PROPERTIES


def configured(**more: str) -> Configuration:
    return from_properties(
        PROPERTIES
        | {"database.hostname": "db.example.com"}
        | {name.replace("_", "."): value for name, value in more.items()}
    )


@pytest.fixture(scope="module")
def identity() -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "test")])
    now = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now)
        .not_valid_after(dt.datetime(2120, 1, 1, tzinfo=dt.UTC))
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    return key, certificate


@pytest.fixture
def pem(identity: tuple[ec.EllipticCurvePrivateKey, x509.Certificate], tmp_path: Path) -> str:
    key, certificate = identity
    path = tmp_path / "me.pem"
    form = serialization.PrivateFormat.PKCS8
    secret = serialization.BestAvailableEncryption(b"pw")
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, form, secret)
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    return str(path)


@pytest.fixture
def store(identity: tuple[ec.EllipticCurvePrivateKey, x509.Certificate], tmp_path: Path) -> str:
    key, certificate = identity
    path = tmp_path / "me.p12"
    secret = serialization.BestAvailableEncryption(b"pw")
    path.write_bytes(pkcs12.serialize_key_and_certificates(b"me", key, certificate, [certificate], secret))
    return str(path)


def tls(mode: SslMode, *, key: str | None = None, trust: str | None = None, password: str | None = "pw") -> Tls:
    secret = Secret(password) if password is not None else None
    return Tls(mode=mode, keystore=key, keystore_password=secret, truststore=trust, truststore_password=secret)


def test_modes_of_tls() -> None:
    assert tls_context(tls(SslMode.DISABLED)) is None
    required = tls_context(tls(SslMode.REQUIRED))
    assert required is not None
    assert (required.verify_mode, required.check_hostname) == (ssl.CERT_NONE, False)


def test_optional_tls_loads_no_certificates_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssl, "create_default_context", pytest.fail)
    server = {"database_hostname": "127.0.0.1", "database_port": "1", "database_ssl_mode": "preferred"}
    with pytest.raises(pymysql.err.OperationalError, match="refused"):
        Client(configured(**server).database)


def test_a_key_and_certificates_from_pem_and_pkcs12(pem: str, store: str) -> None:
    for path in (pem, store):
        context = tls_context(tls(SslMode.VERIFY_IDENTITY, key=path, trust=path))
        assert context is not None
        assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
        assert context.get_ca_certs()


@pytest.mark.parametrize("password", [None, ""])
def test_an_encrypted_key_without_a_password_is_an_error_and_no_prompt(pem: str, password: str | None) -> None:
    with pytest.raises(TlsError, match=r"is encrypted: set database\.ssl\.keystore\.password") as caught:
        tls_context(tls(SslMode.REQUIRED, key=pem, password=password))
    assert caught.value.property == "database.ssl.keystore"


def test_the_key_of_a_pkcs12_store_is_never_written_in_plain_text(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    load = ssl.SSLContext.load_cert_chain

    def spy(context: ssl.SSLContext, path: str, **options: Any) -> None:
        written.append(Path(path).read_bytes())
        load(context, path, **options)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", spy)
    assert tls_context(tls(SslMode.REQUIRED, key=store)) is not None
    (content,) = written
    assert b"BEGIN ENCRYPTED PRIVATE KEY" in content
    assert b"BEGIN PRIVATE KEY" not in content


@pytest.mark.parametrize("which", ["keystore", "truststore"])
def test_a_file_that_cannot_be_used_is_named_with_its_property(which: str, store: str, tmp_path: Path) -> None:
    java, other = tmp_path / "store.jks", tmp_path / "store.jceks"
    java.write_bytes(b"\xfe\xed\xfe\xed rest")
    other.write_bytes(b"\xce\xce\xce\xce rest")
    nothing = tmp_path / "nothing.pem"
    nothing.write_text("nothing")
    cases = {
        str(tmp_path / "none.pem"): ("pw", "cannot be read: No such file"),
        str(java): ("pw", "password is not correct, or the file is damaged"),
        str(other): ("pw", "keytool -importkeystore"),
        str(nothing): ("pw", "usable certificate"),
        store: ("wrong", "usable certificate"),
    }
    for path, (password, reason) in cases.items():
        key, trust = (path, None) if which == "keystore" else (None, path)
        with pytest.raises(TlsError, match=reason) as caught:
            tls_context(tls(SslMode.VERIFY_CA, key=key, trust=trust, password=password))
        assert caught.value.property == f"database.ssl.{which}"
        assert "wrong" not in str(caught.value)


def test_tls_is_required_unless_it_is_only_preferred() -> None:
    assert "ssl" not in connection_arguments(configured().database)
    assert connection_arguments(configured(database_ssl_mode="disabled").database)["ssl_disabled"]
    assert "ssl" in connection_arguments(configured(database_ssl_mode="required").database)


def test_timeouts_are_in_seconds() -> None:
    arguments = connection_arguments(configured(connect_timeout_ms="2500", database_query_timeout_ms="0").database)
    assert arguments["connect_timeout"] == 2
    assert arguments["read_timeout"] is None
    assert connection_arguments(configured().database, 100)["connect_timeout"] == 1


@pytest.mark.parametrize(
    ("name", "zone"),
    [
        (None, None),
        ("SERVER", None),
        ("LOCAL", None),
        ("UTC", "+00:00"),
        ("Z", "+00:00"),
        ("GMT+2", "+02:00"),
        ("UTC-05:30", "-05:30"),
        ("+02:00", "+02:00"),
        ("Asia/Tokyo", "Asia/Tokyo"),
    ],
)
def test_time_zones_as_jdbc_names_them(name: str | None, zone: str | None) -> None:
    assert session_time_zone(name) == zone


@pytest.mark.parametrize(
    ("error", "subject", "text"),
    [
        (pymysql.OperationalError(1045, "Access denied for user"), "database.password", "does not let user 'dbz' in"),
        (pymysql.OperationalError(2003, "Can't connect"), "database.hostname", "db.example.com:3306 cannot be reached"),
        (pymysql.OperationalError(1130, "Host is not allowed"), "database.user", "no connection from this host"),
        (pymysql.OperationalError(1040, "Too many connections"), "database.hostname", "Raise max_connections"),
        (pymysql.OperationalError(1203, "User has more than"), "database.hostname", "no connection free"),
        (pymysql.OperationalError(1226, "User has exceeded"), "database.hostname", "no connection free"),
        (pymysql.OperationalError(1862, "Your password has expired"), "database.user", "cannot be used"),
        (
            pymysql.OperationalError(2059, "Authentication plugin"),
            "database.user",
            "authentication plugin that is not supported",
        ),
        (pymysql.OperationalError(2026, "SSL connection error"), "database.ssl.mode", "no TLS connection"),
        (RuntimeError("'cryptography' package is required"), "database.user", "rowtide[connector]"),
        (OSError("broken"), "database.hostname", "cannot be reached: broken"),
    ],
)
def test_the_property_and_message_of_an_error(error: Exception, subject: str, text: str) -> None:
    problem = connection_failed(error, configured().database).problem
    assert problem.property == subject
    assert text in problem.message
    assert PROPERTIES["database.password"] not in problem.message


@pytest.mark.parametrize("code", [1040, 1203, 1226, 3032, 3955])
def test_a_server_that_lets_nobody_in_at_present_can_be_retried(code: int) -> None:
    failure = connection_failed(pymysql.OperationalError(code, "not now"), configured().database)
    assert failure.retriable
    assert "cannot be reached" not in failure.problem.message


@pytest.mark.parametrize("reason", ["DECRYPTION_FAILED_OR_BAD_RECORD_MAC", "SSLV3_ALERT_BAD_RECORD_MAC"])
def test_a_log_in_with_a_damaged_byte_can_be_retried(reason: str) -> None:
    text = f"Lost connection to MySQL server during query ([SSL: {reason}] (_ssl.c:2580))"
    failure = connection_failed(pymysql.OperationalError(2013, text), configured().database)
    assert failure.retriable
    assert failure.problem.property == "database.hostname"


@pytest.mark.parametrize("code", [1045, 1130, 1129, 1820, 1862, 3118, 4151])
def test_an_account_that_is_refused_is_not_tried_again(code: int) -> None:
    """More attempts could lock it. A new process reads the files of passwords again."""
    assert not connection_failed(pymysql.OperationalError(code, "no"), configured().database).retriable
