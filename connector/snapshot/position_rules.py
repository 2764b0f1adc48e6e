"""Whether a stored position can still be streamed from, judged from what the server says. Pure."""

from collections.abc import Mapping

from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.decision import PositionCheck
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from rowtide.topics.filters import Selection

_FINE = PositionCheck(available=True)


def file_check(offset: SourceOffset, logs: Mapping[str, int]) -> PositionCheck:
    """Without GTIDs.

    Args:
        offset: the stored position.
        logs: size by name of the server's binlog files (SHOW BINARY LOGS), in their order.
    """
    size = logs.get(offset.file)
    if size is None:
        names = list(logs)
        known = f"it has {names[0]} to {names[-1]}" if names else "it has none"
        return _gone(f"the server no longer has the binlog file {offset.file} ({known}); it was purged, or never there")
    if offset.pos > size:
        return _gone(
            f"the binlog file {offset.file} ends at {size}, before the position {offset.pos}: this is another server, "
            "or it lost the end of its binlog in a crash (sync_binlog)"
        )
    return _FINE


def mysql_gtid_check(stored: str, executed: str, purged: str, sources: Selection) -> PositionCheck:
    """With MySQL's GTIDs.

    Args:
        stored: the GTIDs of the stored position.
        executed: ``@@gtid_executed``.
        purged: ``@@gtid_purged``.
        sources: whose GTIDs count.
    """
    done = GtidSet.parse(stored).filter(sources.selects)
    has, lost = GtidSet.parse(executed).filter(sources.selects), GtidSet.parse(purged).filter(sources.selects)
    if not done <= has:
        return _gone(
            f"the server has not executed {done - has}: this is another server, or it was set back to an older state"
        )
    missing = lost - done
    if missing:
        return _gone(f"the server has purged {missing}, which were not read yet")
    return _FINE


def mariadb_check(stored: str, written: str, oldest: str, sources: Selection) -> PositionCheck:
    """With MariaDB's GTIDs.

    Args:
        stored: the GTID position that is stored.
        written: ``@@gtid_binlog_pos``.
        oldest: the GTID position at the beginning of the oldest binlog file.
        sources: whose GTIDs count.
    """
    done = MariadbGtidPosition.parse(stored).filter(sources.selects)
    has, begin = (MariadbGtidPosition.parse(text).filter(sources.selects) for text in (written, oldest))
    if not done <= has:
        return _gone(f"the server's binlog ends at {has}: this is another server, or it was set back to an older state")
    if not begin <= done:
        return _gone(f"the server has purged its binlog up to {begin}, which was not all read yet")
    return _FINE


def _gone(reason: str) -> PositionCheck:
    return PositionCheck(available=False, reason=reason)
