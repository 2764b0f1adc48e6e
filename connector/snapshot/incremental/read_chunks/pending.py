"""The chunks of a table that were read but not emitted yet, and the row events since then. Pure."""

from rowtide.connector.errors import SnapshotError
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.keys.journal import Journal
from rowtide.connector.snapshot.incremental.scan import Failed, ReadChunk
from rowtide.connector.snapshot.view.stream_order import AwaitedPosition, has_executed


class PendingChunks:
    """Chunks in the order of the key; each stays until the stream has passed all changes that it includes.

    Args:
        connector: ``mysql`` or ``mariadb``.

    Attributes:
        journal: the keys of the row events that the stream has emitted.
        failure: the reason why no further chunk is read, if any.
        next: the number of the chunk that is emitted next.
    """

    def __init__(self, connector: str) -> None:
        self._connector = connector
        self._awaited = AwaitedPosition(connector)
        self.clear()

    def clear(self) -> None:
        """Drop all events."""
        self.journal = Journal()
        self.failure: Failed | None = None
        self.next = 0
        self._chunks: dict[int, ReadChunk] = {}
        self._awaited.clear()
        self._seen: SourceOffset | None = None
        self._seen_events = 0
        self._server: str | None = None

    def add(self, read: ReadChunk | Failed, server: str | None) -> None:
        """Add the results of a worker.

        Args:
            read: the chunk.
            server: the server of the stream.
        """
        if isinstance(read, Failed):
            self.failure = self.failure or read
        else:
            self._chunks[read.chunk.number] = read
            self._server = server
            # Unless the stream waited, a transaction before the current one may be missing in the view.
            self._seen = read.seen if self.journal.number == read.since else None

    def recorded(self, progress: Progress) -> None:
        """Note that the journal has another event, at a position of the stream."""
        if self._seen is None:
            return
        within = progress.pos + 1  # the event is before a position that is after its beginning
        at = SourceOffset(progress.file, within, progress.gtid, server=self._server)
        try:
            seen = has_executed(self._seen, at, self._connector)
        except SnapshotError:  # of different servers
            seen = False
        if seen:
            self._seen_events = self.journal.number
        else:
            self._seen = None

    def since(self, read: ReadChunk) -> int:
        """Return the number of the journal's last event that a chunk certainly includes."""
        return read.since if read.seen is None else max(read.since, self._seen_events)

    def may_be_passed(self, progress: Progress) -> bool:
        """Return whether the stream may have passed the awaited position."""
        return self._awaited.may_be_passed(progress.file, progress.end)

    def passed(self, position: SourceOffset) -> ReadChunk | None:
        """Return the next chunk, if the stream has passed all changes that it includes."""
        chunk = self._chunks.get(self.next)
        return chunk if chunk is not None and self.is_passed(chunk.end, position) else None

    def is_passed(self, end: SourceOffset | None, position: SourceOffset) -> bool:
        """Return whether the stream has passed a position. If they cannot be compared, set the failure."""
        try:
            return self._awaited.is_passed(end, position)
        except SnapshotError as error:
            self.failure = Failed(str(error))
            return False

    def emitted(self) -> None:
        """Note that the next chunk was emitted."""
        del self._chunks[self.next]
        self.next += 1
