"""Edge: what a chunk sees of the binlog: all before a position when it is read, and nothing behind another one."""

import datetime as dt
import time
import uuid
from dataclasses import dataclass, replace

from rowtide.connector.config.choices import Watermarking
from rowtide.connector.errors import SnapshotError
from rowtide.connector.pipeline.signals.signal import WINDOW_CLOSE, WINDOW_OPEN
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.view.committed_position import committed_position
from rowtide.connector.source.server_queries import current_position, quoted, quoted_table
from rowtide.connector.source.session import Session
from rowtide.schema_history.model import TableId

_POLL_S = 0.01


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
    """The time in which a chunk is read.

    Attributes:
        id: the id of its row in the signal table; ``None`` without one.
        opened: when it was opened.
    """

    id: str | None
    opened: dt.datetime


def binlog_order(file: str, pos: int) -> tuple[int, str, int]:
    """A position in the binlog of one server, to be compared with others."""
    return len(file), file, pos


_ANY = binlog_order("", 0)
"""Before every position."""


def has_passed(position: SourceOffset, end: SourceOffset, connector: str) -> bool:
    """Whether a stream has passed a position: all transactions before ``end`` are before ``position``.

    Args:
        position: that of the stream, with its server if ``file`` and ``pos`` are known to be of it.
        end: the position, from :func:`close_window`.
        connector: ``mysql`` or ``mariadb``.

    Raises:
        SnapshotError: they are positions of different servers without GTIDs.
    """
    with_gtids = position.gtids is not None and end.gtids is not None
    if with_gtids and end.gtid_set(connector) <= position.gtid_set(connector):  # type: ignore[operator]  # of one kind
        return True
    if position.server is not None and position.server == end.server:
        return binlog_order(position.file, position.pos) >= binlog_order(end.file, end.pos)
    if position.server is None or with_gtids:
        return False
    raise SnapshotError(
        f"the stream comes from server {position.server}, but chunks are read from server {end.server}, and without "
        "GTIDs their positions cannot be compared. Let database.hostname name one server, or use GTIDs"
    )


class AwaitedPosition:
    """The position that the stream has to pass before the next chunk is emitted.

    Args:
        connector: ``mysql`` or ``mariadb``.
    """

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._order: tuple[int, str, int] | None = None

    def is_passed(self, end: SourceOffset | None, position: SourceOffset) -> bool:
        """Whether the stream has passed a position; if not, it is awaited from now on.

        Args:
            end: the position; ``None`` if there is nothing to wait for.
            position: that of the stream.

        Raises:
            SnapshotError: they cannot be compared.
        """
        self._order = _ANY
        passed = end is None or has_passed(position, end, self._connector)
        # With GTIDs, file and position may be those of another server than the stream's: then look at any time.
        if passed or end is None:
            self._order = None
        elif end.server == position.server:
            self._order = binlog_order(end.file, end.pos)
        return passed

    def may_be_passed(self, file: str, pos: int) -> bool:
        """Whether the stream may have passed the awaited position; false if none is awaited."""
        return self._order is not None and binlog_order(file, pos) >= self._order

    def clear(self) -> None:
        """Wait for nothing."""
        self._order = None


def _has_executed(executed: SourceOffset, position: SourceOffset, connector: str) -> bool:
    """Whether a server has executed what a stream has read."""
    if executed.gtids is not None and position.gtids is not None:
        return position.gtid_set(connector) <= executed.gtid_set(connector)  # type: ignore[operator]  # of one kind
    return has_passed(executed, position, connector)


def await_position(session: Session, position: SourceOffset, timeout_s: float) -> None:
    """Wait until all transactions before a position of the stream are visible to queries.

    A server sends a transaction to its replicas before it is visible, and a query may reach a replica that is behind.

    Raises:
        SnapshotError: they are not visible in time, or that cannot be found out.
    """
    connector = "mariadb" if session.mariadb else "mysql"
    limit = time.monotonic() + timeout_s
    server = _server_id(session)
    while True:
        executed = replace(committed_position(session, int(timeout_s) or 1), server=server)
        if _has_executed(executed, position, connector):
            return
        if time.monotonic() > limit:
            at = position.gtids or f"{position.file}:{position.pos}"
            raise SnapshotError(
                f"the server has not executed what the stream has read, up to {at}, for {timeout_s:.0f} s"
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
    """Close a window; returns a position behind all that a query before it has seen.

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


def end_of_binlog(session: Session) -> SourceOffset:
    """The end of the binlog. Its ``server`` is the ``server_id``, which the header of each binlog file has, too.

    Raises:
        SnapshotError: it cannot be read.
    """
    return replace(current_position(session), server=_server_id(session))


def _server_id(session: Session) -> str:
    return str(session.query("SELECT @@GLOBAL.server_id")[0][0])


def _insert(session: Session, rows: SignalRows, *values: str) -> None:
    literals = ", ".join(map(session.literal, values))
    session.execute(f"INSERT INTO {quoted_table(rows.table)} VALUES ({literals})")


def _text(moment: dt.datetime) -> str:
    """A time as Java's Instant prints it."""
    return moment.isoformat().replace("+00:00", "Z")
