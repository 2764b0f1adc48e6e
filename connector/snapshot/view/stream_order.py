"""Positions of a stream, compared with those that queries have read on the server. Pure."""

from dataclasses import replace

from rowtide.connector.errors import SnapshotError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.records.offset import SourceOffset


def stream_position(pipeline: Pipeline) -> SourceOffset:
    """Return the position of a stream between two transactions, with its server: the argument of :func:`has_passed`."""
    progress, header = pipeline.progress, pipeline.decoder.format
    server = None if header is None else str(header.header.server_id)
    return replace(pipeline.offset(), file=progress.file, pos=progress.end, server=server)


def is_comparable(position: SourceOffset) -> bool:
    """Return whether a position can be compared with others: it cannot before the header of the first binlog file."""
    return position.server is not None or position.gtids is not None


def binlog_order(file: str, pos: int) -> tuple[int, str, int]:
    """Return a position in the binlog of one server, for comparison with others."""
    return len(file), file, pos


def has_passed(position: SourceOffset, end: SourceOffset, connector: str) -> bool:
    """Return whether a stream has passed a position: all transactions before ``end`` are before ``position``.

    Args:
        position: that of the stream, with its server if ``file`` and ``pos`` are known to belong to it.
        end: the position, with the ``server_id`` as its server.
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
        f"the stream comes from server {position.server}, but tables are read from server {end.server}, and without "
        "GTIDs their positions cannot be compared. Let database.hostname name one server, or use GTIDs"
    )


def has_executed(executed: SourceOffset, position: SourceOffset, connector: str) -> bool:
    """Return whether a server has executed everything that a stream has read.

    Args:
        executed: the executed position of the server, with the ``server_id`` as its server.
        position: that of the stream; see :func:`has_passed`.
        connector: ``mysql`` or ``mariadb``.

    Raises:
        SnapshotError: they are positions of different servers without GTIDs.
    """
    if executed.gtids is not None and position.gtids is not None:
        return position.gtid_set(connector) <= executed.gtid_set(connector)  # type: ignore[operator]  # of one kind
    return has_passed(executed, position, connector)


def is_same(position: SourceOffset, end: SourceOffset, connector: str) -> bool:
    """Return whether exactly the same transactions precede two positions. See :func:`has_passed` for the arguments."""
    if position.server is not None and position.server == end.server:
        return (position.file, position.pos) == (end.file, end.pos) or _same_gtids(position, end, connector)
    return _same_gtids(position, end, connector)


def _same_gtids(position: SourceOffset, end: SourceOffset, connector: str) -> bool:
    known = position.gtids is not None and end.gtids is not None
    return known and position.gtid_set(connector) == end.gtid_set(connector)


_ANY = binlog_order("", 0)
"""Before every position."""


class AwaitedPosition:
    """The position that the stream has to pass before the next chunk is emitted.

    Args:
        connector: ``mysql`` or ``mariadb``.
    """

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._order: tuple[int, str, int] | None = None

    def is_passed(self, end: SourceOffset | None, position: SourceOffset) -> bool:
        """Return whether the stream has passed a position; if not, await it from now on.

        Args:
            end: the position; ``None`` if there is nothing to wait for.
            position: that of the stream.

        Raises:
            SnapshotError: they cannot be compared.
        """
        self._order = _ANY
        passed = end is None or has_passed(position, end, self._connector)
        # With GTIDs, file and position may belong to a server other than the stream's: then always check.
        if passed or end is None:
            self._order = None
        elif end.server == position.server:
            self._order = binlog_order(end.file, end.pos)
        return passed

    def may_be_passed(self, file: str, pos: int) -> bool:
        """Return whether the stream may have passed the awaited position; false if none is awaited."""
        return self._order is not None and binlog_order(file, pos) >= self._order

    def clear(self) -> None:
        """Stop waiting."""
        self._order = None
