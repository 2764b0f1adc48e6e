"""Accounts on real servers: names and passwords in any script."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.source.connection import DatabaseUnreachableError, connect
from tests.support.configurations import PROPERTIES
from tests.support.connector_properties import address

if TYPE_CHECKING:
    from rowtide_stack import SqlServer

pytestmark = pytest.mark.servers

PLUGINS = [
    ("mysql", "caching_sha2_password"),
    ("mysql", "sha256_password"),
    ("mariadb", "mysql_native_password"),
]


@pytest.mark.parametrize(("kind", "plugin"), PLUGINS)
@pytest.mark.parametrize(("user", "password"), [("zoë", "pä"), ("жук", "жук"), ("plain", "日本 €\\'\"")])
@pytest.mark.parametrize("tls", ["preferred", "disabled"])
def test_names_and_passwords_are_utf8(
    request: pytest.FixtureRequest, kind: str, plugin: str, user: str, password: str, tls: str
) -> None:
    server: SqlServer = request.getfixturevalue(kind)
    quoted = password.replace("\\", "\\\\").replace("'", "\\'")
    server.execute(f"CREATE USER `{user}` IDENTIFIED {'WITH' if kind == 'mysql' else 'VIA'} {plugin}")
    try:
        server.execute(f"ALTER USER `{user}` IDENTIFIED BY '{quoted}'")
        account = {"database.user": user, "database.ssl.mode": tls}
        config = from_properties({**PROPERTIES, **address(server), **account, "database.password": password}).database
        client = connect(config)
        assert client.fetch("SELECT CURRENT_USER()") == [(f"{user}@%",)]
        client.close()
        wrong = from_properties(
            {**PROPERTIES, **address(server), **account, "database.password": password[:-1]}
        ).database
        with pytest.raises(DatabaseUnreachableError, match=r"database\.user"):
            connect(wrong)
    finally:
        server.execute(f"DROP USER `{user}`")
