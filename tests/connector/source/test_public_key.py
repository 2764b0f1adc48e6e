"""The key with which the password is encrypted: the pinned one, or the server's own, which may be anybody's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from rowtide.connector.config import from_properties
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.source.connection import DatabaseUnreachableError, log_in
from rowtide.connector.source.connection.client import Client
from tests.support.configurations import PROPERTIES
from tests.support.mysql.fake_server import FakeMySQL, Peer

pytestmark = pytest.mark.timeout(60)

PASSWORD = PROPERTIES["database.password"].encode()
SALT = b"saltsaltmoresaltmore"
OK = b"\x00\x00\x00\x02\x00\x00\x00"
PLUGINS = [b"caching_sha2_password", b"sha256_password"]


def new_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


OWN, ROGUE = new_key(), new_key()


def pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, form)


class Server:
    """A server, or a program in its place, that asks for the password as with a plugin.

    Args:
        key: its key, which it offers.
        plugin: of the account.
        switches: whether it asks to switch to the plugin, instead of beginning with it.
        insists: whether it sends its key though it was not asked for it.

    Attributes:
        password: what it was able to read.
    """

    def __init__(self, key: rsa.RSAPrivateKey, plugin: bytes, *, switches: bool = False, insists: bool = False) -> None:
        self.password: bytes | None = None
        self._key = key
        self._plugin = plugin
        self._switches = switches
        self._insists = insists

    def __call__(self, peer: Peer) -> None:
        peer.greet(plugin=b"mysql_native_password" if self._switches else self._plugin)
        answer, named, _ = peer.read().rpartition(self._plugin)
        if not named:  # as a server asks a client whose plugin is another one
            peer.send(b"\xfe" + self._plugin + b"\0" + SALT + b"\0")
            answer = peer.read()
        if self._plugin == b"caching_sha2_password":
            peer.send(b"\x01\x04")  # the hash is not known: send the password
            answer = peer.read()
        # An encrypted password may end in the byte of a request, so its length counts, which the first packet has.
        if answer in (b"\x01", b"\x02") or answer.endswith(b"\x01\x01") or self._insists:
            peer.send(b"\x01" + pem(self._key))
            answer = peer.read()
        self._decrypt(answer)
        peer.send(OK)
        peer.answer()

    def _decrypt(self, answer: bytes) -> None:
        oaep = padding.OAEP(padding.MGF1(hashes.SHA1()), hashes.SHA1(), None)
        try:
            found = self._key.decrypt(answer[-256:], oaep)
        except ValueError:
            return
        self.password = bytes(byte ^ SALT[at % len(SALT)] for at, byte in enumerate(found)).rstrip(b"\0")


def configured(server: FakeMySQL, **more: str) -> DatabaseConfig:
    properties = {**PROPERTIES, "database.port": str(server.port), "connect.timeout.ms": "5000"}
    return from_properties({**properties, **{name.replace("__", "."): text for name, text in more.items()}}).database


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of the test count as those of another machine."""
    monkeypatch.setattr(Client, "_is_remote", lambda _client: True)


@pytest.mark.parametrize("mode", ["disabled", "preferred"])
@pytest.mark.parametrize("switches", [False, True])
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.usefixtures("remote")
def test_a_key_that_another_machine_offers_without_tls_is_refused(plugin: bytes, switches: bool, mode: str) -> None:
    rogue = Server(ROGUE, plugin, switches=switches)
    refused = pytest.raises(DatabaseUnreachableError, match=r"database\.allowPublicKeyRetrieval=true")
    with FakeMySQL(rogue) as server, refused as caught:
        log_in(configured(server, database__ssl__mode=mode))
    assert caught.value.problem.property == "database.ssl.mode"
    assert not caught.value.retriable
    assert rogue.password is None


@pytest.mark.parametrize("name", ["database__allowPublicKeyRetrieval", "driver__allowPublicKeyRetrieval"])
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.usefixtures("remote")
def test_a_key_that_the_server_offers_can_be_allowed(plugin: bytes, name: str) -> None:
    own = Server(OWN, plugin)
    with FakeMySQL(own) as server:
        log_in(configured(server, **{name: "true"}, database__ssl__mode="disabled")).close()
    assert own.password == PASSWORD


@pytest.mark.parametrize("plugin", PLUGINS)
def test_a_server_on_this_machine_may_offer_its_key(plugin: bytes) -> None:
    own = Server(OWN, plugin)
    with FakeMySQL(own) as server:
        log_in(configured(server, database__ssl__mode="disabled")).close()
    assert own.password == PASSWORD


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "::1", "10.0.0.1", "fe80::1%eth0", "192.168.1.9"])
def test_what_another_machine_is(address: str) -> None:
    class Connected:
        def getpeername(self) -> tuple[str, int]:
            return address, 3306

    client = Client.__new__(Client)
    client._sock = Connected()
    assert client._is_remote() == (not address.startswith(("127.", "::1")))


@pytest.mark.parametrize("insists", [False, True])
@pytest.mark.parametrize("switches", [False, True])
@pytest.mark.parametrize("plugin", PLUGINS)
@pytest.mark.usefixtures("remote")
def test_with_a_pinned_key_only_its_owner_can_read_the_password(
    tmp_path: Path, plugin: bytes, switches: bool, insists: bool
) -> None:
    file = tmp_path / "public_key.pem"
    file.write_bytes(pem(OWN))
    for owner, read in ((OWN, PASSWORD), (ROGUE, None)):
        found = Server(owner, plugin, switches=switches, insists=insists and plugin == b"sha256_password")
        with FakeMySQL(found) as server:
            log_in(configured(server, database__server__public__key__file=str(file))).close()
        assert found.password == read


@pytest.mark.parametrize(
    ("write", "problem"),
    [
        (lambda _file: None, "cannot be read: No such file or directory"),
        (lambda file: file.write_text("no key"), "holds no public key in PEM format"),
        (lambda file: file.write_bytes(pem(ec.generate_private_key(ec.SECP256R1()))), "that is not an RSA key"),
    ],
)
def test_a_file_without_a_key_is_named(tmp_path: Path, write: Callable[[Path], object], problem: str) -> None:
    file = tmp_path / "public_key.pem"
    write(file)
    with FakeMySQL(Server(OWN, PLUGINS[0])) as server, pytest.raises(DatabaseUnreachableError, match=problem) as caught:
        log_in(configured(server, database__server__public__key__file=str(file)))
    assert caught.value.problem.property == "database.server.public.key.file"
    assert str(file) in str(caught.value)
