"""Determines the part of the binlog that a chunk includes: everything before one position, nothing after another."""

import datetime as dt
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace

from rowtide.connector.config.choices import Watermarking
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.signals.signal import WINDOW_CLOSE, WINDOW_OPEN
from rowtide.connector.snapshot.view.committed_position import committed_position
from rowtide.connector.snapshot.view.stream_order import has_executed
from rowtide.connector.source.server_queries import current_position, end_of_binlog, quoted, quoted_table, server_id
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId

_POLL_S = 0.01
_WAY_OUT = "end the transactions whose commits wait, for example for a replica that acknowledges none"


@dataclass(frozen=True, slots=True)
class SignalRows:
    """The rows that mark a window in the signal table (``signal.data.collection``).

    Attributes:
        table: the signal table.
        id_column: the name of its first column.
        strategy: whether the window ends with a second row, or when the first one is deleted.
    """

    table: TableId
    id_column: str
    strategy: Watermarking


@dataclass(frozen=True, slots=True)
class Window:
    """The time window in which a chunk is read.

    Attributes:
        id: the id of its row in the signal table; ``None`` without one.
        opened: when it was opened.
    """

    id: str | None
    opened: dt.datetime


def await_position(
    session: Session,
    position: SourceOffset,
    timeout_s: float,
    cancelled: Callable[[], bool] = lambda: False,
    *,
    held: bool = False,
) -> None:
    """Wait until all transactions before a position of the stream are visible to queries.

    A server sends a transaction to its replicas before it is visible, and a query may reach a replica that lags.

    Args:
        session: a connection to the server.
        position: that of the stream, with its server if ``file`` and ``pos`` are known to belong to it.
        timeout_s: seconds to wait.
        cancelled: whether the result is no longer needed; if so, this returns.
        held: whether the stream waits until then. Other commits may then wait for the stream (``rowtide.semi.sync``),
            so this does not wait for them if GTIDs show which transactions are visible.

    Raises:
        SnapshotError: they are not visible in time, or this cannot be determined.
    """
    connector = "mariadb" if session.mariadb else "mysql"
    limit = time.monotonic() + timeout_s
    server = server_id(session)
    same = position.server == server
    while not cancelled():
        if held and not session.mariadb and position.gtids is not None:
            committed = current_position(session)  # gtid_executed has only transactions that are visible
        else:
            committed = committed_position(session, int(timeout_s) or 1, _WAY_OUT, with_gtids=not same)
        if has_executed(replace(committed, server=server), position, connector):
            return
        if time.monotonic() > limit:
            at = position.gtids or f"{position.file}:{position.pos}"
            raise SnapshotError(
                f"the server has not executed everything that the stream has read, up to {at}, for {timeout_s:.0f} s. "
                "Let "
                "database.hostname name one server, not several servers of which some lag"
            )
        time.sleep(_POLL_S)


def open_window(session: Session, rows: SignalRows | None) -> Window:
    """Open a window: write its first row, if there is a signal table.

    Raises:
        pymysql.MySQLError: the server refuses it.
    """
    now = dt.datetime.now(dt.UTC)
    if rows is None:
        return Window(None, now)
    window = Window(str(uuid.uuid4()), now)
    _insert(session, rows, f"{window.id}-open", WINDOW_OPEN, f'{{"openWindowTimestamp": "{_text(now)}"}}')
    return window


def close_window(session: Session, rows: SignalRows | None, window: Window) -> SourceOffset:
    """Close a window, and return a position after all changes that earlier queries have seen.

    Raises:
        pymysql.MySQLError: the server refuses to write the row.
        SnapshotError: the position cannot be read.
    """
    if rows is not None and window.id is not None:
        if rows.strategy is Watermarking.INSERT_DELETE:
            name, row_id = quoted(rows.id_column), session.literal(f"{window.id}-open")
            session.execute(f"DELETE FROM {quoted_table(rows.table)} WHERE {name} = {row_id}")
        else:
            times = f'"openWindowTimestamp": "{_text(window.opened)}", "closeWindowTimestamp": '
            times += f'"{_text(dt.datetime.now(dt.UTC))}"'
            _insert(session, rows, f"{window.id}-close", WINDOW_CLOSE, f"{{{times}}}")
    return end_of_binlog(session)


def _insert(session: Session, rows: SignalRows, *values: str) -> None:
    literals = ", ".join(map(session.literal, values))
    session.execute(f"INSERT INTO {quoted_table(rows.table)} VALUES ({literals})")


def _text(moment: dt.datetime) -> str:
    """Return a time in the format of Java's Instant."""
    return moment.isoformat().replace("+00:00", "Z")
