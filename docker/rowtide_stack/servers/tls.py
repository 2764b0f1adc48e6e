"""Certificates for tests: of an authority, of a server on this machine, and of a client."""

import datetime as dt
import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate

__all__ = ["TlsFiles"]


@dataclass(frozen=True, slots=True)
class TlsFiles:
    """A folder with ``ca.pem``, ``server.pem``, ``server.key``, ``client.pem`` and ``client.key``."""

    folder: Path

    @property
    def ca(self) -> Path:
        """The certificate of the authority, which clients must trust."""
        return self.folder / "ca.pem"

    @property
    def client_certificate(self) -> Path:
        """A client certificate that the server trusts, for accounts with REQUIRE X509."""
        return self.folder / "client.pem"

    @property
    def client_key(self) -> Path:
        """The private key of `client_certificate`."""
        return self.folder / "client.key"

    @classmethod
    def make(cls, folder: Path) -> "TlsFiles":
        """Create an authority and two certificates, valid for a week, in ``folder``; creates the folder if needed."""
        folder.mkdir(exist_ok=True)
        files = cls(folder)
        ca_key, ca = _certificate("rowtide test authority", None)
        _write(files.ca, ca)
        for name in ("server", "client"):
            key, certificate = _certificate(name, (ca_key, ca))
            _write(files.folder / f"{name}.pem", certificate)
            _write(files.folder / f"{name}.key", key)
        return files


def _certificate(
    name: str, issuer: "tuple[EllipticCurvePrivateKey, Certificate] | None"
) -> "tuple[EllipticCurvePrivateKey, Certificate]":
    """Return a key and its certificate, signed by the issuer, or self-signed as an authority."""
    from cryptography import x509  # noqa: PLC0415 - not needed by users of other servers
    from cryptography.hazmat.primitives import hashes  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer[1].subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(hours=1))
        .not_valid_after(now + dt.timedelta(days=7))
        .add_extension(x509.BasicConstraints(ca=issuer is None, path_length=None), critical=True)
    )
    if issuer:
        names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
    return key, builder.sign(issuer[0] if issuer else key, hashes.SHA256())


def _write(path: Path, item: "EllipticCurvePrivateKey | Certificate") -> None:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.x509 import Certificate  # noqa: PLC0415

    pem = serialization.Encoding.PEM
    if isinstance(item, Certificate):
        data = item.public_bytes(pem)
    else:
        plain = serialization.NoEncryption()
        data = item.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain)
    path.write_bytes(data)
