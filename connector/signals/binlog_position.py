"""``set-binlog-position``: the position from which the next start resumes, carried by every offset until then."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rowtide.connector.errors import SignalError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.signal import Signal
from rowtide.schema_history.position.binlog_position import file_number
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition

_RESTART, _MOVED_BY = "rowtide_signal_restart", "rowtide_signal_moved_by"
_FILE = re.compile(r"[^/\\\x00]+\.\d{6,}")
_KEPT_IDS = 100
"""Ids of signals that offsets keep: each of their rows may be read again."""
_FIRST_EVENT = 4
_LAST_POSITION = 2**32 - 1
"""The position of the first event in a binlog file."""


def restart_position(signal: Signal, connector: str, current: SourceOffset) -> SourceOffset:
    """Return the position that a signal demands.

    Args:
        signal: with ``binlog_filename`` and ``binlog_position``, or with ``gtid_set``.
        connector: ``mysql`` or ``mariadb``.
        current: the resume position.

    Raises:
        SignalError: neither, both, or a wrong one.
    """
    file, pos, gtids = signal.text("binlog_filename"), signal.data.get("binlog_position"), signal.text("gtid_set")
    plain = SourceOffset(current.file, current.pos, server_id=current.server_id, server=current.server)
    if gtids is not None:
        if file is not None or pos is not None:
            raise SignalError("the data must have either 'gtid_set' or 'binlog_filename' and 'binlog_position'")
        return replace(plain, gtids=_gtid_set(gtids, connector))
    if file is None or pos is None:
        raise SignalError("the data must have 'binlog_filename' and 'binlog_position', or 'gtid_set'")
    if not _FILE.fullmatch(file):
        raise SignalError(
            f"'binlog_filename' must be the name of a binlog file, such as binlog.000042, not {file!r:.200}"
        )
    if not isinstance(pos, int) or isinstance(pos, bool) or pos < _FIRST_EVENT:
        raise SignalError(f"'binlog_position' must be a whole number of at least {_FIRST_EVENT}, not {pos!r:.200}")
    if pos > _LAST_POSITION:
        raise SignalError(f"'binlog_position' {pos:.3g} is beyond 4 GiB; name the next file, or a 'gtid_set'")
    return replace(plain, file=file, pos=pos)


def _gtid_set(text: str, connector: str) -> str:
    kind = MariadbGtidPosition if connector == "mariadb" else GtidSet
    try:
        parsed = str(kind.parse(text))
    except ValueError as error:
        raise SignalError(f"'gtid_set' is not a GTID set: {error}") from error
    if not parsed:
        raise SignalError("'gtid_set' is empty")
    return parsed


def next_start(start: SourceOffset, after: SourceOffset, connector: str) -> str:
    """Return a description of the events that the next start reads.

    Args:
        start: the position that the signal has set.
        after: the resume position after the signal. The stream continues from there until the connector stops.
        connector: ``mysql`` or ``mariadb``.
    """
    if start.gtids is not None:
        reads = f"the next start reads the transactions that are not in {start.gtids}"
        again, ahead = _compared_gtids(start, after, connector) if after.gtids is not None else ("", "")
    else:
        reads = f"the next start reads from {start.file}:{start.pos} on"
        here, there = _place(start), _place(after)
        place = f"{after.file}:{after.pos}"
        again = f"everything from there to {place}" if here < there else ""
        ahead = f"everything from {place} to there" if here > there else ""
    return "; ".join(
        part
        for part in (
            reads,
            again and f"of what was read so far, {again} is sent again",
            ahead and f"{ahead} is never read, unless the connector reads it before it stops",
        )
        if part
    )


def _compared_gtids(start: SourceOffset, after: SourceOffset, connector: str) -> tuple[str, str]:
    """Return the transactions that are sent again, and those that have not been read yet and are omitted."""
    here, there = start.gtid_set(connector), after.gtid_set(connector)
    if isinstance(here, GtidSet) and isinstance(there, GtidSet):
        return str(there - here), str(here - there)
    assert isinstance(here, MariadbGtidPosition)
    assert isinstance(there, MariadbGtidPosition)
    again = ", ".join(f"everything after the set up to {gtid}" for gtid in there if not here.contains(gtid))
    ahead = ", ".join(f"everything up to {gtid}" for gtid in here if not there.contains(gtid))
    return again, ahead


def _place(position: SourceOffset) -> tuple[int, int]:
    return file_number(position.file) or 0, position.pos


def with_restart_position(carried: Mapping[str, Any] | None, start: SourceOffset, signal: Signal) -> dict[str, Any]:
    """Return the fields of all later offsets."""
    moved_by = [*_moved_by(carried), signal.id][-_KEPT_IDS:]
    return {**(carried or {}), _RESTART: start.to_json(), _MOVED_BY: "\n".join(moved_by)}


def is_repeated(carried: Mapping[str, Any] | None, signal: Signal) -> bool:
    """Return whether a row of the signal table is read again because its own signal, or a later one, has moved back."""
    return signal.channel == "source" and signal.id in _moved_by(carried)


def _moved_by(carried: Mapping[str, Any] | None) -> list[str]:
    """Return the ids of the signals that were carried out, oldest first."""
    text = (carried or {}).get(_MOVED_BY)
    return [] if text is None else str(text).split("\n")


def start_of(stored: SourceOffset) -> SourceOffset:
    """Return the position from which to start: the stored one, or the one with which a signal has replaced it.

    Raises:
        ValueError: the position of the signal is damaged.
    """
    demanded = (stored.carried or {}).get(_RESTART)
    if demanded is None:
        return stored
    return replace(SourceOffset.from_json(demanded), carried=without_demand(stored).carried)


def without_demand(stored: SourceOffset) -> SourceOffset:
    """Return the stored position without the one with which a signal has replaced it."""
    carried = {name: value for name, value in (stored.carried or {}).items() if name != _RESTART}
    return replace(stored, carried=carried or None)


def demanded_by(stored: SourceOffset) -> str:
    """Return the id of the last signal that has set a position."""
    return next(reversed(_moved_by(stored.carried)), "")
