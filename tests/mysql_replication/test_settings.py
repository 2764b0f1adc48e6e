"""PyMySQL's connection settings and the reader's arguments: each is used, has no effect, or is refused."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pymysql
import pytest
from pymysqlreplication import BinLogStreamReader as LibraryReader
from pymysqlreplication.event import HeartbeatLogEvent, NotImplementedEvent, QueryEvent, XidEvent

from rowtide import ConfigurationError
from rowtide.connector.config.choices import SslMode
from rowtide.connector.errors import EngineTypeError
from rowtide.mysql_replication import BinLogStreamReader
from rowtide.mysql_replication.settings import _REFUSED, _USED, _WITHOUT_EFFECT, configuration


def test_the_arguments_are_those_of_mysql_replication() -> None:
    ours = list(inspect.signature(BinLogStreamReader).parameters.values())
    theirs = list(inspect.signature(LibraryReader).parameters.values())
    assert [(one.name, one.default) for one in ours if one.kind is not one.KEYWORD_ONLY] == [
        (one.name, one.default) for one in theirs
    ]
    assert [one.name for one in ours if one.kind is one.KEYWORD_ONLY] == ["schema_history"]


def test_every_argument_of_pymysql_is_used_or_without_effect_or_refused() -> None:
    known = set(inspect.signature(pymysql.connect).parameters) - {"self"}
    assert known | {"passwd", "db"} >= _USED | _WITHOUT_EFFECT
    for name in known - _USED - _WITHOUT_EFFECT:
        with pytest.raises(EngineTypeError, match=f"connection_settings cannot be used: {name}: "):
            BinLogStreamReader({name: "x"}, 1)
    assert set(_REFUSED) <= known


@pytest.mark.parametrize("charset", ["utf8", "utf8mb4"])
def test_the_address_and_account_are_taken(charset: str) -> None:
    settings = {"host": "db", "port": 3307, "user": "me", "passwd": "secret", "charset": charset, "connect_timeout": 3}
    found = configuration(settings, 77, mariadb=False).database
    assert (found.hostname, found.port, found.user, found.server_id) == ("db", 3307, "me", 77)
    assert found.password.reveal() == "secret"
    assert found.connect_timeout_ms == 3000
    assert configuration({"init_command": "SET x = 1"}, 1, mariadb=False).database.initial_statements == ("SET x = 1",)


@pytest.mark.parametrize(
    ("given", "mode"),
    [
        ({}, SslMode.PREFERRED),
        ({"ssl_disabled": True}, SslMode.DISABLED),
        ({"ssl": {"ca": "CA"}}, SslMode.VERIFY_IDENTITY),
        ({"ssl": {"ca": "CA", "check_hostname": False}}, SslMode.VERIFY_CA),
        ({"ssl_ca": "CA", "ssl_verify_cert": True}, SslMode.VERIFY_CA),
        ({"ssl_ca": "CA", "ssl_verify_cert": True, "ssl_verify_identity": True}, SslMode.VERIFY_IDENTITY),
        ({"ssl_ca": "CA", "ssl_verify_cert": False}, SslMode.PREFERRED),
    ],
)
@pytest.mark.parametrize("mariadb", [False, True])
def test_tls_is_verified_as_pymysql_does(given: dict[str, Any], mode: SslMode, mariadb: bool, tmp_path: Any) -> None:
    ca = tmp_path / "ca.pem"
    ca.write_text("")
    text = {"CA": str(ca)}
    settings = {
        name: {key: text.get(one, one) for key, one in value.items()}
        if isinstance(value, dict)
        else text.get(value, value)
        for name, value in given.items()
    }
    assert configuration(settings, 1, mariadb=mariadb).database.tls.mode is mode


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unix_socket": "/tmp/s"}, "unix_socket: a binlog is read over TCP"),
        ({"ssl_key": "k", "nonsense": 1}, "nonsense: is not supported; omit it; ssl_key: write the key into"),
        ({"ssl": {"cert": "c", "key": "k"}}, "ssl: it has its own key"),
        ({"ssl": {"cipher": "c"}}, "ssl: cipher is not supported"),
        ({"ssl": object()}, "ssl: a object is not supported"),
    ],
)
def test_what_cannot_be_used_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(EngineTypeError, match=message):
        BinLogStreamReader(settings, 1)
    with pytest.raises(EngineTypeError, match=message):
        BinLogStreamReader({}, 1, ctl_connection_settings=settings)


def test_other_wrong_arguments_are_named() -> None:
    with pytest.raises(EngineTypeError, match="pymysql_wrapper cannot be used"):
        BinLogStreamReader({}, 1, pymysql_wrapper=pymysql.connect)
    with pytest.raises(ConfigurationError, match=r"database\.server\.id"):
        BinLogStreamReader({}, -1)
    with pytest.raises(KeyError):
        BinLogStreamReader({}, 1, only_events=[QueryEvent], ignored_events=[XidEvent])


def test_the_kinds_of_events_are_those_of_mysql_replication() -> None:
    ours, theirs = BinLogStreamReader({}, 1), LibraryReader({}, 1)
    for only in (None, [QueryEvent], [QueryEvent, NotImplementedEvent]):
        for ignored in (None, [QueryEvent]):
            for filtered in (True, False):
                expected = theirs._allowed_event_list(only, ignored, filtered)
                assert ours._allowed_event_list(only, ignored, filtered) == expected
    assert HeartbeatLogEvent not in ours._allowed
    assert HeartbeatLogEvent in BinLogStreamReader({}, 1, slave_heartbeat=1)._allowed


def test_a_missing_package_is_named_with_its_extra() -> None:
    code = "import sys; sys.modules['pymysqlreplication'] = None\nimport rowtide.mysql_replication"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "needs the package pymysqlreplication" in done.stderr
    assert "pip install 'rowtide[mysql-replication]'" in done.stderr
