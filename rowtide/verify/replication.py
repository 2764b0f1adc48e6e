"""Determines how far a server has executed the changes of another server that it replicates."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import ER

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.view.stream_order import has_executed
from rowtide.connector.source.server_queries import DENIED
from rowtide.connector.source.session import Session
from rowtide.schema_history.position.gtid import MariadbGtidPosition
from rowtide.verify.errors import Undecided
from rowtide.verify.positions import described

_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Channel:
    """A row of ``SHOW REPLICA STATUS``: the source of a replica, and its progress in executing the changes.

    Attributes:
        source: the ``server_id`` of the source.
        file: the binlog file of the source up to which its changes are executed.
        pos: the position in it.
        stopped: the reason why no further change is executed; ``""`` if the replica runs.
    """

    source: str
    file: str
    pos: int
    stopped: str

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Channel":
        """Parse a row, whose column names depend on the version."""
        named = {
            name.lower().replace("master", "source").replace("slave", "replica"): value for name, value in row.items()
        }
        stopped = ""
        for thread in ("io", "sql"):
            if named[f"replica_{thread}_running"] == "No":
                stopped = str(named[f"last_{thread}_error"] or "it was stopped (STOP REPLICA)")
        file, pos = named["relay_source_log_file"], named["exec_source_log_pos"]
        return cls(str(named["source_server_id"]), str(file or ""), int(pos or 0), stopped)


class Replication:
    """The replication of the source by another server.

    Args:
        session: with the server.
        source: the ``server_id`` of the source.
        flavor: ``mysql`` or ``mariadb``, that of both servers; ``""`` if they differ, so that GTIDs cannot be compared.

    Attributes:
        replicates: whether it is a replica, directly or of another replica of the source.

    Raises:
        Undecided: the account is not allowed to see it.
    """

    def __init__(self, session: Session, source: str, flavor: str) -> None:
        self._session, self._source, self._flavor = session, source, flavor
        self.replicates = bool(channels_of(session))

    def await_executed(self, position: SourceOffset, timeout_s: float) -> None:
        """Wait until the server has executed all changes of the source before a position.

        Args:
            position: the position, with the ``server_id`` of the source as its server.
            timeout_s: the time to wait, in seconds.

        Raises:
            Undecided: it has not executed them in time, will never execute them, or nothing shows it.
        """
        limit = time.monotonic() + timeout_s
        while not self._has_executed(position, channels := channels_of(self._session)):
            own = [one for one in channels if one.source == self._source]
            stopped = next((f": {one.stopped}" for one in own or channels if one.stopped), "")
            if stopped or time.monotonic() > limit:
                raise Undecided(
                    f"rows differ, and the other server has not executed the source's position {described(position)}"
                    + (f", because its replication has ended{stopped}" if stopped else f" in {timeout_s:.0f} s")
                    + ". Compare again when SHOW REPLICA STATUS says that it has, or raise --timeout"
                )
            time.sleep(_POLL_S)

    def _has_executed(self, position: SourceOffset, channels: list[Channel]) -> bool:
        executed = self._gtids() if position.gtids is not None else None
        if executed is not None and _contains(executed, position, self._flavor):
            return True
        # A direct replica may lack GTIDs of the source, such as those from before its creation.
        own = next((one for one in channels if one.source == self._source), None)
        if own is not None:
            return has_executed(SourceOffset(own.file, own.pos, server=own.source), position, self._flavor or "mysql")
        if executed is None:
            raise Undecided(
                "rows differ, and it is not known how far the other server has replicated: it does not replicate "
                f"directly from the server with server_id {self._source}, and both do not have GTIDs of one kind. "
                "Compare when nothing is written, or make it a direct replica"
            )
        return False

    def _gtids(self) -> str | None:
        """Return the GTIDs that the server has executed; ``None`` if it has none, or GTIDs of another kind.

        For MariaDB, these are the replicated ones: with its own writes, ``gtid_current_pos`` may be higher.
        """
        if not self._flavor:
            return None
        variable = "gtid_slave_pos" if self._session.mariadb else "gtid_executed"
        return str(self._session.query(f"SELECT @@GLOBAL.{variable}")[0][0] or "").replace("\n", "") or None


def channels_of(session: Session) -> list[Channel]:
    """Return the sources of a server; none if it is not a replica.

    Raises:
        Undecided: the account is not allowed to see them.
    """
    spellings = ("SHOW ALL SLAVES STATUS",) if session.mariadb else ("SHOW REPLICA STATUS", "SHOW SLAVE STATUS")
    for statement in spellings:
        try:
            return [Channel.of(row) for row in session.client.fetch_named(statement)]
        except pymysql.MySQLError as error:
            if error.args[0] in DENIED:
                right = "REPLICA MONITOR" if session.mariadb else "REPLICATION CLIENT"
                raise Undecided(
                    "the account may not query the replication status of a replica (SHOW REPLICA STATUS): grant it "
                    f"{right} there"
                ) from error
            if error.args[0] != ER.PARSE_ERROR:  # the spelling of another version
                raise
    return []


def _contains(executed: str, position: SourceOffset, flavor: str) -> bool:
    """Return whether GTIDs of a server contain those of a position.

    With MariaDB, numbers of different servers in one domain are not compared: two servers may write the same numbers.
    """
    if flavor != "mariadb":
        return has_executed(SourceOffset("", 0, executed), position, flavor)
    last = {(one.domain, one.server_id): one.sequence for one in MariadbGtidPosition.parse(executed)}
    wanted = MariadbGtidPosition.parse(position.gtids or "")
    return all(last.get((one.domain, one.server_id), -1) >= one.sequence for one in wanted)
