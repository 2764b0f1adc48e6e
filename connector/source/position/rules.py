"""Decides whether a server can stream from a position, by its GTID sets, its binlog files and its identity. Pure."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtid, MariadbGtidPosition
from rowtide.topics.filters import Selection


@dataclass(frozen=True, slots=True)
class PositionCheck:
    """The result of the check whether a server can stream from a position.

    Attributes:
        available: whether it can.
        reason: the reason why it cannot, as part of a sentence.
        purged: whether the reason is that the server deleted its binlog there, so that a mirror may have it.
        note: if it can, a note for a report of the start; may be empty.
    """

    available: bool
    reason: str = ""
    purged: bool = False
    note: str = ""


_AVAILABLE = PositionCheck(available=True)
_THREAD = re.compile(r"#\d+")


def server_check(offset: SourceOffset, server: str) -> PositionCheck:
    """Check, without GTIDs, whether the position, which is valid on only one server, was read from this one.

    Args:
        offset: the position; a position that Debezium stored does not name its server, and passes.
        server: the identity of the server that is connected.
    """
    if offset.server in (None, server):
        return _AVAILABLE
    return _unavailable(
        f"it was read from server {offset.server}, and this is server {server}, whose binlog files have other contents "
        "under the same names; without GTIDs (gtid_mode=ON) a connector cannot change servers"
    )


def file_check(offset: SourceOffset, logs: Mapping[str, int]) -> PositionCheck:
    """Check, without GTIDs, whether the binlog file exists and reaches the position.

    Args:
        offset: the position.
        logs: size by name of the server's binlog files (SHOW BINARY LOGS), oldest first.
    """
    size = logs.get(offset.file)
    if size is None:
        names = list(logs)
        known = f"it has {names[0]} to {names[-1]}" if names else "it has none"
        return _unavailable(
            f"the server no longer has the binlog file {offset.file} ({known}); it was purged, or never there",
            purged=True,
        )
    if offset.pos > size:
        return _unavailable(
            f"the binlog file {offset.file} ends at {size}, before the position {offset.pos}: this is another server, "
            "or it lost the end of its binlog in a crash (sync_binlog)"
        )
    return _AVAILABLE


def with_owned(executed: str, owned: str) -> str:
    """Return MySQL's executed GTIDs together with those of transactions that are not committed yet.

    With semi-synchronous replication (AFTER_SYNC), a replica has a transaction while its commit waits: it is in the
    binlog, and not executed yet. After a restart, a connector therefore can be ahead of ``@@gtid_executed``.

    Args:
        executed: ``@@gtid_executed``.
        owned: ``@@gtid_owned``: GTIDs, each with its threads (``uuid:5#31:6#32``).
    """
    return str(GtidSet.parse(executed) | GtidSet.parse(_THREAD.sub("", owned)))


def mysql_gtid_check(stored: str, executed: str, purged: str, sources: Selection) -> PositionCheck:
    """Check, with MySQL's GTIDs, whether the server has all read transactions, and still has all unread ones.

    Args:
        stored: the GTIDs of the position.
        executed: the GTIDs that the server has, see :func:`with_owned`.
        purged: ``@@gtid_purged``.
        sources: the servers whose GTIDs are compared.
    """
    done, has, gone = (GtidSet.parse(text).filter(sources.selects) for text in (stored, executed, purged))
    if not done <= has:
        return _unavailable(
            f"the server has not executed {done - has}, which were read before: this is another server to which they "
            "were not replicated, or it was set back to an older state"
        )
    missed = gone - done
    if missed:
        return _unavailable(f"the server has purged {missed}, which were not read yet and would be missed", purged=True)
    return _AVAILABLE


def mysql_start(stored: str, executed: str, purged: str, sources: Selection) -> str:
    """Return the GTIDs that MySQL must not send, for a stream from a position.

    The server may lack read transactions of sources that do not count, and may have purged unread ones. In neither case
    must it refuse the stream.

    Args:
        stored: the GTIDs of the position.
        executed: the GTIDs that the server has, see :func:`with_owned`.
        purged: ``@@gtid_purged``.
        sources: the servers whose GTIDs are compared.
    """
    done, has, gone = (GtidSet.parse(text) for text in (stored, executed, purged))

    def ignored(source: str) -> bool:
        return not sources.selects(source)

    return str(done.filter(sources.selects) | (done.filter(ignored) & has) | gone.filter(ignored))


def mariadb_start(stored: str, state: str, sources: Selection) -> str:
    """Return the position in each domain from which MariaDB must send, for a stream from a position.

    MariaDB refuses a GTID that it lacks, whatever transactions of other servers it has in the same domain. If the
    source of that GTID does not count, the domain is sent from its beginning, because the end of the transactions
    before the GTID is not known.

    Args:
        stored: the GTID position.
        state: ``@@gtid_binlog_state``: the last GTID of each server in each domain.
        sources: the servers whose GTIDs are compared.
    """
    written = [MariadbGtid.parse(text) for text in state.split(",") if text.strip()]
    last = {(gtid.domain, gtid.server_id): gtid.sequence for gtid in written}
    found = MariadbGtidPosition()
    for gtid in MariadbGtidPosition.parse(stored):
        has = last.get((gtid.domain, gtid.server_id), -1) >= gtid.sequence
        if has or sources.selects(f"{gtid.domain}-{gtid.server_id}"):
            found.add(gtid)
    return str(found)


def mariadb_check(stored: str, written: str, oldest: str, sources: Selection) -> PositionCheck:
    """Check, with MariaDB's GTIDs, whether the server has all read transactions, and still has all unread ones.

    Args:
        stored: the GTID position.
        written: ``@@gtid_binlog_pos``.
        oldest: the GTID position at the start of the oldest binlog file.
        sources: the servers whose GTIDs are compared.
    """
    done, has, begin = (MariadbGtidPosition.parse(text).filter(sources.selects) for text in (stored, written, oldest))
    if not done <= has:
        return _unavailable(
            f"the server's binlog ends at {has}, and {done} was read before: this is another server to which it was "
            "not replicated, or it was set back to an older state"
        )
    if not begin <= done:
        return _unavailable(
            f"the server has purged its binlog up to {begin}, and transactions after {done} would be missed",
            purged=True,
        )
    return _AVAILABLE


def _unavailable(reason: str, *, purged: bool = False) -> PositionCheck:
    return PositionCheck(available=False, reason=reason, purged=purged)
