"""Records replication sessions of real servers, for the tests that replay them without a server.

    .venv/bin/python -m tests.support.mysql.replication_recorder tests/connector/protocol/replication

A recording has one line of hexadecimal bytes for each piece that was sent (``>``) and received (``<``) behind the
log-in; its first line is the request.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3] / "docker"))

from rowtide_stack import MariaDB, MySQL, SqlServer

from rowtide.connector.config import from_properties
from rowtide.connector.protocol.replication.commands import NON_BLOCK
from rowtide.connector.protocol.replication.request import ReplicaRegistration, StreamRequest
from rowtide.connector.protocol.replication.session import ReplicationSession, ServerError, StreamEnded
from rowtide.connector.source.connection import log_in
from tests.support.configurations import PROPERTIES

REPLICA = ReplicaRegistration(184054, "8f3a2f6e-2f0b-5d5c-9c3e-4f1a0e6f5b11", "rowtide-recorded", "", 3306)


@dataclass
class Recording:
    """A session: the request, and the pieces in order.

    Attributes:
        request: what was requested.
        pieces: the direction (``>`` to the server, ``<`` from it) and the bytes.
    """

    request: StreamRequest
    pieces: list[tuple[str, bytes]] = field(default_factory=list)

    def to_text(self) -> str:
        """The text of a file."""
        lines = [json.dumps(asdict(self.request)), *(f"{way} {data.hex()}" for way, data in self.pieces)]
        return "\n".join(lines) + "\n"

    @classmethod
    def read(cls, path: Path) -> Recording:
        """Read a file."""
        head, *lines = path.read_text().splitlines()
        fields = json.loads(head)
        request = StreamRequest(**{**fields, "replica": ReplicaRegistration(**fields["replica"])})
        return cls(request, [(line[0], bytes.fromhex(line[2:])) for line in lines])


def record(server: SqlServer, request: StreamRequest, acknowledgements: int | None = None) -> Recording:
    """Run a session until the server ends it, or until so many acknowledgements are sent."""
    properties = {
        **PROPERTIES,
        "database.hostname": server.host,
        "database.port": str(server.port),
        "database.user": server.user,
        "database.password": server.password,
        "database.ssl.mode": "disable" if request.mariadb else "disabled",
        "database.flavor": "mariadb" if request.mariadb else "mysql",
    }
    client = log_in(from_properties(properties).database)
    sock = client.raw_socket()
    recording, session, sent = Recording(request), ReplicationSession(request), 0
    data = session.start()
    try:
        while True:
            if data:
                recording.pieces.append((">", data))
                sock.sendall(data)
            if sent == acknowledgements:
                break
            space = session.space()
            count = sock.recv_into(space)
            recording.pieces += [("<", bytes(space[:count]))] * bool(count)
            session.received(count)
            if requested := session.requested_acknowledgement():
                session.acknowledge(requested)
                sent += 1
            data = session.to_send()
    except (ServerError, StreamEnded) as error:
        print(error)
    finally:
        client.abort()
    return recording


def _save(folder: Path, name: str, recording: Recording) -> None:
    (folder / f"{name}.txt").write_text(recording.to_text())
    print(name, sum(len(data) for _, data in recording.pieces), "bytes")


def _mysql(folder: Path) -> None:
    with MySQL({"binlog_checksum": "CRC32"}) as server:
        server.execute("RESET BINARY LOGS AND GTIDS", "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        server.execute("FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (1)")
        server.execute("SET gtid_next='AUTOMATIC:shop'", "INSERT INTO d.t VALUES (2)")
        uuid, executed = server.query("SELECT @@server_uuid, @@gtid_executed")[0]
        request = StreamRequest(REPLICA, "binlog.000002", flags=NON_BLOCK)
        _save(folder, "mysql_file", record(server, request))
        _save(folder, "mysql_gtids", record(server, replace(request, file="", gtids=f"{uuid}:1-2")))
        _save(folder, "mysql_tagged_gtids", record(server, replace(request, file="", gtids=str(executed))))
        _save(folder, "mysql_refused", record(server, replace(request, file="binlog.000009")))


def _mariadb(folder: Path) -> None:
    with MariaDB({"binlog_checksum": "CRC32"}) as server:
        server.execute("RESET MASTER", "CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)")
        (before,) = server.query("SELECT @@gtid_binlog_pos")[0]
        server.execute("FLUSH BINARY LOGS", "INSERT INTO d.t VALUES (1)", "INSERT INTO d.t VALUES (2)")
        request = StreamRequest(REPLICA, "binlog.000002", mariadb=True, annotate=True, flags=NON_BLOCK)
        _save(folder, "mariadb_file", record(server, request))
        _save(folder, "mariadb_gtids", record(server, replace(request, file="", gtids=str(before))))
        _save(folder, "mariadb_refused", record(server, replace(request, file="", gtids="0-1-999", gtid_strict=True)))


_SEMI_SYNC: dict[type[SqlServer], tuple[str, ...]] = {
    MySQL: (
        "INSTALL PLUGIN rpl_semi_sync_source SONAME 'semisync_source.so'",
        "SET GLOBAL rpl_semi_sync_source_enabled = ON",
    ),
    MariaDB: ("SET GLOBAL rpl_semi_sync_master_enabled = ON",),
}


def _semi_sync(folder: Path, kind: type[SqlServer]) -> None:
    mariadb = kind is MariaDB
    with kind({"binlog_checksum": "CRC32"}) as server:
        server.execute(*_SEMI_SYNC[kind])
        file, position = server.query("SHOW MASTER STATUS" if mariadb else "SHOW BINARY LOG STATUS")[0][:2]
        request = StreamRequest(REPLICA, str(file), int(position), mariadb=mariadb, semi_sync=True)
        statements = ("CREATE DATABASE d", "CREATE TABLE d.t (a INT PRIMARY KEY)", "INSERT INTO d.t VALUES (1)")
        client = threading.Thread(target=server.execute, args=(*statements, "FLUSH LOGS", "INSERT INTO d.t VALUES (2)"))
        client.start()
        _save(folder, server.name, record(server, request, acknowledgements=4))
        client.join()


def main(arguments: Sequence[str]) -> None:
    """Record all sessions into folders in a folder."""
    plain, semi_sync = (Path(arguments[0]) / name for name in ("recorded", "recorded_semi_sync"))
    plain.mkdir(exist_ok=True)
    semi_sync.mkdir(exist_ok=True)
    _mysql(plain)
    _mariadb(plain)
    _semi_sync(semi_sync, MySQL)
    _semi_sync(semi_sync, MariaDB)


if __name__ == "__main__":
    main(sys.argv[1:])
