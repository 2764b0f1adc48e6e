"""How far a replica is, by what it says of itself."""

from __future__ import annotations

from typing import Any

import pymysql
import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.verify.errors import Undecided
from rowtide.verify.replication import Channel, Replication

NEW = {
    "Source_Server_Id": 1,
    "Relay_Source_Log_File": "binlog.000009",
    "Exec_Source_Log_Pos": 100,
    "Replica_IO_Running": "Yes",
    "Replica_SQL_Running": "Yes",
    "Last_IO_Error": "",
    "Last_SQL_Error": "",
}
UUID = f"{'0' * 8}-0000-0000-0000-{'0' * 12}"
STOPPED = NEW | {"Source_Server_Id": 7, "Replica_SQL_Running": "No"}
OLD = {name.replace("Source", "Master").replace("Replica", "Slave"): value for name, value in NEW.items()}


class Server:
    """A session with a server, and its connection.

    Args:
        channels: its answer to SHOW REPLICA STATUS, or the error.
        executed: the GTIDs that it has executed.
        mariadb: whether it is MariaDB.
    """

    def __init__(self, channels: object, executed: str = "", *, mariadb: bool = False) -> None:
        self._channels, self._executed, self.mariadb = channels, executed, mariadb
        self.client = self

    def query(self, statement: str) -> list[tuple[str]]:
        assert statement == f"SELECT @@GLOBAL.{'gtid_slave_pos' if self.mariadb else 'gtid_executed'}"
        return [(self._executed,)]

    def fetch_named(self, statement: str) -> Any:
        if isinstance(self._channels, Exception):
            raise self._channels
        if self.mariadb:
            assert statement == "SHOW ALL SLAVES STATUS"
        elif statement == "SHOW REPLICA STATUS" and "Master_Server_Id" in str(self._channels):
            raise pymysql.err.ProgrammingError(1064, "You have an error in your SQL syntax")
        return self._channels


def replication(server: Server, flavor: str = "mysql") -> Replication:
    session: Any = server
    return Replication(session, "1", flavor)


@pytest.mark.parametrize("row", [NEW, OLD])
def test_a_channel_is_read_in_both_spellings(row: dict[str, Any]) -> None:
    assert Channel.of(row) == Channel("1", "binlog.000009", 100, "")
    assert replication(Server([row])).replicates
    assert not replication(Server([])).replicates


@pytest.mark.parametrize(
    ("server", "flavor", "position"),
    [
        (Server([NEW]), "mysql", SourceOffset("binlog.000009", 100, server="1")),
        (Server([OLD]), "mysql", SourceOffset("binlog.000008", 900, server="1")),
        (Server([OLD], mariadb=True), "", SourceOffset("binlog.000009", 100, "0-1-5", server="1")),
        (Server([NEW | {"Source_Server_Id": 7}], f"{'0' * 8}-0000-0000-0000-{'0' * 12}:1-9"), "mysql", None),
        (Server([OLD], "0-1-5", mariadb=True), "mariadb", SourceOffset("binlog.000099", 100, "0-1-5", server="1")),
        (Server([NEW], f"{UUID}:5-9"), "mysql", SourceOffset("binlog.000009", 100, f"{UUID}:1-9", server="1")),
        (Server([NEW, STOPPED]), "mysql", SourceOffset("binlog.000009", 100, server="1")),
    ],
)
def test_what_is_executed_is_not_waited_for(server: Server, flavor: str, position: SourceOffset | None) -> None:
    given = position or SourceOffset("other.000001", 4, f"{'0' * 8}-0000-0000-0000-{'0' * 12}:3-9", server="1")
    replication(server, flavor).await_executed(given, 0)


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (Server([NEW]), r"has not executed the source's position binlog.000009:101 in 0 s"),
        (Server([NEW | {"Replica_SQL_Running": "No", "Last_SQL_Error": "Duplicate entry '7'"}]), "ended: Duplicate"),
        (Server([OLD | {"Slave_IO_Running": "No"}]), r"ended: it was stopped \(STOP REPLICA\)"),
        (Server([NEW | {"Source_Server_Id": 7}]), "does not replicate directly from the server with server_id 1"),
        (Server([STOPPED, NEW]), r"has not executed the source's position binlog.000009:101 in 0 s"),
    ],
)
def test_what_is_not_executed_is_undecided(server: Server, reason: str) -> None:
    with pytest.raises(Undecided, match=reason):
        replication(server).await_executed(SourceOffset("binlog.000009", 101, server="1"), 0)


@pytest.mark.parametrize(
    ("replicated", "source"),
    [("0-7-150", "1"), ("0-1-100", "1"), ("0-7-150", "9"), ("5-1-150", "1")],
    ids=["another source writes the same domain", "late", "a replica of a replica", "another domain"],
)
def test_numbers_of_other_servers_of_mariadb_say_nothing(replicated: str, source: str) -> None:
    """A change that is on its way would be taken for a difference."""
    server = Server([OLD | {"Master_Server_Id": source}], replicated, mariadb=True)
    with pytest.raises(Undecided, match="has not executed the source's position"):
        replication(server, "mariadb").await_executed(SourceOffset("binlog.000009", 101, "0-1-120", server="1"), 0)


def test_a_server_whose_state_may_not_be_seen_is_undecided() -> None:
    denied = pymysql.err.OperationalError(1227, "Access denied; you need SUPER or REPLICATION CLIENT")
    with pytest.raises(Undecided, match="grant it REPLICATION CLIENT there"):
        replication(Server(denied))
