"""How a stream registers as a replica, and what it does about another replica with its server id."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from rowtide_stack import MariaDB, MySQL, SqlServer

from rowtide.connector.config import from_properties
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken, StreamRefused, registered_replica
from tests.support.configurations import PROPERTIES
from tests.support.recordings.live_snapshot import binlog_end


def configured(server: SqlServer | None = None, **more: str) -> DatabaseConfig:
    properties = {**PROPERTIES, "name": "shop", "database.server.id": "6317"}
    if server is not None:
        properties |= {
            "database.hostname": server.host,
            "database.port": str(server.port),
            "database.user": server.user,
            "database.password": server.password,
            "database.flavor": "mariadb" if isinstance(server, MariaDB) else "mysql",
        }
    return from_properties({**properties, **{name.replace("_", "."): value for name, value in more.items()}}).database


def test_the_name_and_the_server_id_make_the_replica() -> None:
    replica = registered_replica(configured())
    assert (replica.server_id, replica.host, replica.user, replica.port) == (6317, "rowtide-shop", "", 0)
    assert replica == registered_replica(configured(database_user="other"))
    assert replica.uuid != registered_replica(configured(name="crm")).uuid
    assert replica.uuid != registered_replica(configured(database_server_id="6318")).uuid
    assert registered_replica(configured(name="é" * 40)).host == "rowtide-" + "é" * 26


def test_every_field_can_be_set() -> None:
    uuid = "8F3A2F6E-2f0b-5d5c-9c3e-4f1a0e6f5b11"
    replica = registered_replica(
        configured(
            rowtide_replica_host="h", rowtide_replica_user="u", rowtide_replica_port="9", rowtide_replica_uuid=uuid
        )
    )
    assert (replica.host, replica.user, replica.port, replica.uuid) == ("h", "u", 9, uuid)


def end_of(server: SqlServer) -> SourceOffset:
    """The end of the server's binlog."""
    return SourceOffset(*binlog_end(server))


@contextlib.contextmanager
def streaming(server: SqlServer, config: DatabaseConfig) -> Iterator[Iterator[list[bytes]]]:
    """A stream from the end of the server's binlog that has begun."""
    stream = BinlogStream(config, end_of(server), mariadb=isinstance(server, MariaDB))
    with contextlib.closing(stream.events()) as pieces:
        assert next(pieces)
        yield pieces


def shown(server: SqlServer) -> dict[int, dict[str, Any]]:
    """The server's replicas, by server id."""
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW SLAVE HOSTS" if isinstance(server, MariaDB) else "SHOW REPLICAS")
        names = [column[0].lower() for column in cursor.description]
        return {row[0]: dict(zip(names, row, strict=True)) for row in cursor.fetchall()}


@pytest.mark.servers
def test_mysql_shows_the_replica_and_reports_another_one_with_its_id(
    mysql: MySQL, caplog: pytest.LogCaptureFixture
) -> None:
    config = configured(mysql, rowtide_replica_port="8083")
    with streaming(mysql, config) as pieces:
        replica = shown(mysql)[6317]
        assert (replica["host"], replica["port"]) == ("rowtide-shop", 8083)
        assert replica["replica_uuid"] == registered_replica(config).uuid
        with caplog.at_level(logging.WARNING), streaming(mysql, configured(mysql, name="crm")) as others:
            assert "another replica from rowtide-shop" in caplog.text
            mysql.execute("CREATE DATABASE both_read", "DROP DATABASE both_read")
            assert next(pieces)
            assert next(others)


@pytest.mark.servers
def test_mysql_ends_an_older_session_of_the_same_connector(mysql: MySQL) -> None:
    config = configured(mysql)
    refused = pytest.raises(StreamRefused, match=r"it is this connector, started a second time.*database\.server\.id")
    with streaming(mysql, config) as older, streaming(mysql, config), refused:
        list(older)


@pytest.mark.servers
def test_a_replica_of_mariadb_is_not_disconnected_by_another_with_its_id(mariadb: MariaDB) -> None:
    with streaming(mariadb, configured(mariadb)) as pieces:
        assert shown(mariadb)[6317]["host"] == "rowtide-shop"
        other = BinlogStream(configured(mariadb, name="crm"), end_of(mariadb), mariadb=True)
        with pytest.raises(StreamBroken, match=r"rowtide-shop has the same server id 6317.*database\.server\.id"):
            next(other.events())
        mariadb.execute("CREATE DATABASE both_read", "DROP DATABASE both_read")
        assert next(pieces)
