"""The user and the password of each log-in: from files that change, from a command, from a function."""

from __future__ import annotations

import os
import select
import ssl
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pymysql._auth import scramble_native_password
from rowtide_stack.servers.tls import TlsFiles

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.source.connection import DatabaseUnreachableError, log_in
from tests.support.configurations import PROPERTIES
from tests.support.mysql.fake_server import FakeMySQL, Peer

SALT = b"saltsaltmoresaltmore"
DENIED = b"\xff\x15\x04#28000Access denied for user"  # 1045
SOURCE = "rowtide.database.password.source"


@pytest.fixture
def server() -> Iterator[FakeMySQL]:
    """A server that logs in everybody whose user is not called nobody."""

    def serve(peer: Peer) -> None:
        peer.greet()
        if b"nobody\0" in peer.read():
            peer.send(DENIED)
        else:
            peer.send(b"\x00\x00\x00\x02\x00\x00\x00")
            peer.answer()

    with FakeMySQL(serve) as found:
        yield found


def configured(server: FakeMySQL, **more: str) -> DatabaseConfig:
    properties = {**PROPERTIES, "database.port": str(server.port), "connect.timeout.ms": "5000"}
    if SOURCE in more:
        del properties["database.password"]
    return from_properties({**properties, **more}).database


def logged_in(server: FakeMySQL, config: DatabaseConfig) -> Callable[[str, str], bool]:
    """Log in; return whether that was as a user with a password."""
    log_in(config).close()
    sent = server.peers[-1].received[0]
    return lambda user, password: (
        user.encode() + b"\0" in sent and scramble_native_password(password.encode(), SALT) in sent
    )


def test_files_are_read_at_each_log_in(server: FakeMySQL, tmp_path: Path) -> None:
    """As Kubernetes, Vault and others replace them. A file that is gone for a moment leaves what was known."""
    file, mounted = tmp_path / "secrets.properties", tmp_path / "user"
    file.write_text("password=one\n")
    mounted.write_text("anna")
    references = {
        "database.password": f"${{file:{file}:password}}",
        "database.user": f"${{kube:{tmp_path}:user}}",
        "config.providers": "kube",
        "config.providers.kube.class": "org.apache.kafka.common.config.provider.DirectoryConfigProvider",
    }
    config = configured(server, **references)
    assert logged_in(server, config)("anna", "one")
    file.write_text("password=two\n")
    mounted.write_text("berta")
    assert logged_in(server, config)("berta", "two")
    file.unlink()
    assert logged_in(server, config)("berta", "one")


def test_what_is_not_a_file_stays_as_it_is(server: FakeMySQL) -> None:
    assert configured(server).renewal is None
    assert configured(server, **{"database.password": "a${b"}).renewal is None


def test_a_password_of_a_command(server: FakeMySQL, tmp_path: Path) -> None:
    counter = tmp_path / "count"
    counter.write_text("0")
    program = (
        "import pathlib,sys; p=pathlib.Path(sys.argv[1]); n=int(p.read_text())+1; p.write_text(str(n)); "
        "print(*sys.argv[2:], n)"
    )
    command = f"command:{sys.executable} -c '{program}' {counter} {{user}}@{{host}}:{{port}}"
    config = configured(server, **{SOURCE: command})
    for number in (1, 2):
        password = f"{config.user}@{config.hostname}:{server.port} {number}"
        assert logged_in(server, config)(config.user, password), "each log-in has a new one"
    shown = from_properties({**PROPERTIES, "database.password": "", SOURCE: command}).masked_properties()
    assert shown[SOURCE] == "********"


def token(host: str, port: int, user: str) -> str:
    """What a user of rowtide would write."""
    return f"{user}/{host}/{port}"


def broken(_host: str, _port: int, _user: str) -> int:
    raise RuntimeError("no metadata server")


def number(_host: str, _port: int, _user: str) -> int:
    return 7


def test_a_password_of_a_function(server: FakeMySQL) -> None:
    config = configured(server, **{SOURCE: f"python:{__name__}.token"})
    assert logged_in(server, config)(config.user, token(config.hostname, server.port, config.user))


@pytest.mark.parametrize(
    ("source", "message", "passes"),
    [
        ("command:rowtide-has-no-such-program", "rowtide-has-no-such-program cannot be run: No such file", True),
        ("command:sh -c 'echo a >&2; echo why >&2; exit 3'", "sh has ended with exit code 3: why", True),
        ("command:sh -c 'exit 4'", "sh has ended with exit code 4", True),
        ("command:true", "it has returned an empty password", True),
        ("command:sleep 60", "sleep did not end within 1 s", True),
        ("command:sh -c 'echo {user}'", r"\{user\} would be 'a;b', which a shell may take for a command", False),
        ("command:echo --user {user}", r"\{user\} would be '-h', which a shell may take for a command", False),
        (f"python:{__name__}.broken", "has failed: RuntimeError: no metadata server", True),
        (f"python:{__name__}.number", "must return a string, not int", False),
        (f"python:{__name__}.nothing", "has no attribute 'nothing'", False),
        ("python:raising_module.f", "raising_module.f cannot be imported: KeyError: 'TOKEN'", False),
        ("python:no_such_module_at_all.f", "Install it, or add its folder to PYTHONPATH", False),
    ],
)
def test_a_source_that_yields_none(
    server: FakeMySQL, source: str, message: str, passes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At the start that is a wrong configuration. Once there was a password, the next attempt may have one."""
    (tmp_path / "raising_module.py").write_text("import os\nos.environ['TOKEN']\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delenv("TOKEN", raising=False)
    user = "-h" if "'-h'" in message else "a;b"
    config = configured(server, **{SOURCE: source, "connect.timeout.ms": "1000", "database.user": user})
    for worked in (False, True):
        assert config.renewal is not None
        config.renewal.accepted = worked
        with pytest.raises(DatabaseUnreachableError, match=message) as caught:
            log_in(config)
        assert caught.value.problem.property == SOURCE
        assert caught.value.retriable is (worked and passes)
    assert not server.peers


def test_a_command_that_hangs_ends_with_all_that_it_has_started(server: FakeMySQL, tmp_path: Path) -> None:
    """Each log-in would leave a process behind otherwise."""
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    command = f"command:sh -c 'exec 3>{fifo}; echo begun >&3; sleep 600 & wait'"
    with pytest.raises(DatabaseUnreachableError, match="sh did not end within 1 s"):
        log_in(configured(server, **{SOURCE: command, "connect.timeout.ms": "1000"}))
    os.set_blocking(reader, True)
    with os.fdopen(reader, "rb") as stream:
        assert stream.readline() == b"begun\n"
        assert select.select([stream], [], [], 60)[0], "sleep has the other end"
        assert stream.read() == b""


def test_a_refused_log_in_is_tried_again_only_after_an_accepted_one(server: FakeMySQL, tmp_path: Path) -> None:
    """The server has a new password, and the file has the old one for some seconds."""
    user = tmp_path / "user"
    user.write_text("nobody")
    config = configured(server, **{"database.user": f"${{dir:{tmp_path}:user}}"})
    with pytest.raises(DatabaseUnreachableError) as first:
        log_in(config)
    assert not first.value.retriable
    user.write_text("anna")
    log_in(config).close()
    user.write_text("nobody")
    with pytest.raises(DatabaseUnreachableError) as later:
        log_in(config)
    assert later.value.retriable
    with pytest.raises(DatabaseUnreachableError) as constant:
        log_in(configured(server, **{"database.user": "nobody"}))
    assert not constant.value.retriable


@pytest.mark.parametrize("source", ["aws rds", "command:", "command:'", "python:function", "python:", "shell:a"])
def test_sources_that_are_none(source: str) -> None:
    with pytest.raises(ConfigurationError, match=SOURCE) as caught:
        from_properties({**PROPERTIES, "database.password": "", SOURCE: source})
    assert "aws" not in str(caught.value)


def test_a_password_and_a_source_exclude_each_other() -> None:
    with pytest.raises(ConfigurationError, match=r"cannot be used together with database\.password"):
        from_properties({**PROPERTIES, SOURCE: "command:true"})


def test_a_token_is_sent_in_clear_text_over_verified_tls(tmp_path: Path) -> None:
    """As Amazon RDS and Cloud SQL request it."""
    files = TlsFiles.make(tmp_path)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(files.folder / "server.pem", files.folder / "server.key")

    def serve(peer: Peer) -> None:
        peer.greet(tls=True)
        peer.read()
        peer.socket = context.wrap_socket(peer.socket, server_side=True)
        peer.read()
        peer.send(b"\xfemysql_clear_password\0")
        peer.read()
        peer.send(b"\x00\x00\x00\x02\x00\x00\x00")
        peer.answer()

    with FakeMySQL(serve) as server:
        verified = {"database.ssl.mode": "verify_ca", "database.ssl.truststore": str(files.ca)}
        log_in(configured(server, **verified, **{SOURCE: "command:echo -n to-ken"})).close()
        assert server.peers[-1].received[2] == b"to-ken\0"
