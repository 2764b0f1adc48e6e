"""The stream of a connector: from the server or, for events that the server has purged, from a mirror."""

import logging
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from functools import partial
from pathlib import Path

from rowtide.connector.config import Configuration
from rowtide.connector.errors import PositionPurged
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken
from rowtide.connector.source.event_stream import EventStream, StreamFactory
from rowtide.connector.source.position.rules import PositionCheck
from rowtide.connector.source.search.binlog_search import BinlogSearch

log = logging.getLogger(__name__)


class ChangeOvers:
    """Logs each change-over between the server and a mirror once, for all streams of a run.

    Args:
        mirror: the folder of the mirror.
    """

    def __init__(self, mirror: Path) -> None:
        self._mirror = mirror
        self._reads_mirror = False

    def to_mirror(self, start: SourceOffset) -> None:
        """Note that a stream is read from the mirror, because the server has purged its start position."""
        if not self._reads_mirror:
            at = start.gtids or f"{start.file}:{start.pos}"
            log.info(
                "the server has purged the binlog at %s. The following events are read from the mirror %s, until the "
                "server has it again",
                at,
                self._mirror,
            )
        self._reads_mirror = True

    def to_server(self, start: SourceOffset) -> None:
        """Note that a stream is read from the server."""
        if self._reads_mirror:
            at = start.gtids or f"{start.file}:{start.pos}"
            log.info("the server has the binlog at %s. The following events are read from the server again", at)
        self._reads_mirror = False


def stream_factory(config: Configuration) -> StreamFactory:
    """Return a function that opens the streams of a connector for one run."""
    mirror = config.streaming.mirror
    return partial(_open_stream, config, None if mirror is None else ChangeOvers(Path(mirror.directory)))


def _open_stream(config: Configuration, changes: ChangeOvers | None, start: SourceOffset) -> EventStream:
    if config.capture.gtid_ignore_on_recovery:
        start = replace(start, gtids=None)
    mirror, connector = config.streaming.mirror, config.flavor.value
    if mirror is not None and mirror.always:
        return _mirror_stream(mirror.directory, start, connector, follow=True)
    server = BinlogStream(
        config.database,
        start,
        mariadb=config.mariadb,
        send_annotations=config.values.include_query,
        checked_sources=config.capture.gtid_sources if config.streaming.check_position else None,
        semi_sync=config.streaming.semi_sync,
    )
    if mirror is None or changes is None:
        return server
    from_mirror = _mirror_stream(mirror.directory, start, connector, follow=False)
    return StreamWithMirror(server, from_mirror, changes, start)


def _mirror_stream(directory: str, start: SourceOffset, connector: str, *, follow: bool) -> EventStream:
    from rowtide.connector.source.mirror.reader import MirrorStream  # noqa: PLC0415 - few connectors have a mirror

    return MirrorStream(Path(directory), start, connector, follow=follow)


def xa_packets(config: Configuration) -> Callable[[PreparedXa], Iterable[bytes]]:
    """Return the reader of prepared XA transactions, from the server or from the configured mirror."""
    mirror, connector = config.streaming.mirror, config.flavor.value
    archive: StreamFactory | None = None
    if mirror is not None:
        archive = partial(_mirror_stream, mirror.directory, connector=connector, follow=True)
    return BinlogSearch(config.database, mariadb=config.mariadb, archive=archive).packets


def check_with_mirror(config: Configuration, found: PositionCheck, offset: SourceOffset) -> PositionCheck:
    """Check whether the server, or the configuration's mirror, can stream from a position.

    Args:
        config: the configuration.
        found: the result of the check of the server.
        offset: the position.
    """
    mirror = config.streaming.mirror
    if mirror is None or not (mirror.always or found.purged):
        return found
    from rowtide.connector.source.mirror.reader import mirror_check  # noqa: PLC0415 - few connectors have a mirror

    mirrored = mirror_check(Path(mirror.directory), offset, config.flavor.value)
    if mirrored.available:
        why = "rowtide.mirror.read=always" if mirror.always else found.reason
        return replace(mirrored, note=f"the binlog is read from the mirror {mirror.directory} ({why})")
    if mirror.always:
        return mirrored
    return replace(found, reason=f"{found.reason}; {mirrored.reason}")


class StreamWithMirror:
    """A stream from the server if it has the start position, otherwise from the mirror.

    A stream from the mirror ends after each file. The next one is then opened at the position after it, so that the
    reader changes over to the server as soon as the server has the position: by GTID, or by file and position.

    Args:
        server: the stream from the server.
        mirror: the stream from the mirror at the same position, which ends with the mirror.
        changes: logs the change-overs.
        start: the position.
    """

    def __init__(self, server: EventStream, mirror: EventStream, changes: ChangeOvers, start: SourceOffset) -> None:
        self._server = server
        self._mirror = mirror
        self._changes = changes
        self._start = start
        self._now = server

    def events(self) -> Generator[list[bytes], None, None]:
        """Yield lists of events, as both streams do.

        Raises:
            PositionPurged: neither the server nor the mirror has the position.
            ConnectorError: raised by the streams.
        """
        begun = False
        try:
            for packets in self._server.events():
                if packets and not begun:
                    begun = True
                    self._changes.to_server(self._start)
                yield packets
        except PositionPurged as purged:
            if begun:  # the reader is further now
                raise StreamBroken(str(purged)) from purged
            if not purged.purged:
                raise
            yield from self._from_mirror(purged)

    def _from_mirror(self, purged: PositionPurged) -> Generator[list[bytes], None, None]:
        self._now = self._mirror
        self._changes.to_mirror(self._start)
        try:
            yield from self._mirror.events()
        except PositionPurged as error:
            raise PositionPurged(f"{purged}; {error}") from error

    def yield_often(self, *, often: bool) -> None:
        """Yield empty lists more often while there is nothing new, for a reader that also waits for something else."""
        self._now.yield_often(often=often)

    def requested_acknowledgement(self) -> Callable[[], None] | None:
        """Return the function that acknowledges the events so far to the server, if it waits for this."""
        return self._server.requested_acknowledgement()

    def taken_bytes(self) -> int:
        """Return the bytes received since the last call."""
        return self._now.taken_bytes()
