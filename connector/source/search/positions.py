"""Finds positions in binlog files: by time, by GTID, by GTID set, and the end. Pure.

A file is found by its first events, which have its time and the transactions before it; then its transactions are read
in sequence. A position is always the beginning of a transaction.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from rowtide.connector.errors import ConnectorError
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import GTID_TYPES, HEADER, EventType, end_of_event
from rowtide.connector.protocol.statements import is_begin, is_end
from rowtide.connector.source.files.heads import FileHead, read_head
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtid, MariadbGtidPosition

Gtids = GtidSet | MariadbGtidPosition
_DECODED = frozenset(
    {
        EventType.FORMAT_DESCRIPTION,
        EventType.PREVIOUS_GTIDS,
        EventType.MARIADB_GTID_LIST,
        EventType.QUERY,
        EventType.MARIADB_QUERY_COMPRESSED,
        *GTID_TYPES,
    }
)
_LAST = frozenset({EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD})
"""The events with which a transaction ends, QUERY apart."""
_FIRST_EVENT = 4


class PositionNotFound(ConnectorError):
    """The binlog files do not have the position."""


class BinlogFiles(Protocol):
    """Binlog files that can be searched."""

    @property
    def names(self) -> Sequence[str]:
        """Their names, oldest first; there is at least one."""
        ...

    def events(self, file: str) -> Iterator[bytes]:
        """Return the events of one file, from the first to the last one."""
        ...


@dataclass(frozen=True, slots=True)
class FoundPosition:
    """A position.

    Attributes:
        file: the binlog file.
        pos: the beginning of a transaction, or the end of the binlog.
        gtids: executed before it; ``None`` without GTIDs.
        gtid: of the transaction that begins there; ``None`` at the end, and without GTIDs.
        micros: the time at which the server committed that transaction, in µs since the epoch; ``None`` at the end.
    """

    file: str
    pos: int
    gtids: str | None = None
    gtid: str | None = None
    micros: int | None = None

    @property
    def at_end(self) -> bool:
        """Whether no transaction begins there yet."""
        return self.micros is None


@dataclass(frozen=True, slots=True)
class Head:
    """The first event of a transaction.

    Attributes:
        start: its position in the file.
        event: the event.
    """

    start: int
    event: events.Gtid | events.MariadbGtidEvent

    @property
    def micros(self) -> int:
        """When this server committed the transaction, in µs since the epoch; in whole seconds on MariaDB."""
        if isinstance(self.event, events.Gtid) and self.event.immediate_commit_timestamp:
            return self.event.immediate_commit_timestamp
        return self.event.header.timestamp * 1_000_000

    @property
    def gtid(self) -> str | None:
        """The text of the GTID; ``None`` if it has none."""
        if isinstance(self.event, events.MariadbGtidEvent):
            return str(self.event.gtid)
        return None if self.event.anonymous else self.event.text

    def within(self, gtids: Gtids | None) -> bool:
        """Return whether a set contains the transaction."""
        if isinstance(self.event, events.MariadbGtidEvent):
            return isinstance(gtids, MariadbGtidPosition) and gtids.contains(self.event.gtid)
        return isinstance(gtids, GtidSet) and gtids.contains(self.event.uuid, self.event.gno, self.event.tag)


class _Walk:
    """Iterates over the transactions of one file.

    Attributes:
        gtids: executed before the current transaction, or after the last one.
        end: the end of the last complete transaction.
    """

    def __init__(self, file: str) -> None:
        self.file = file
        self.gtids: Gtids | None = None
        self.end = _FIRST_EVENT
        self._decoder = EventDecoder(file)
        self._open: events.Gtid | events.MariadbGtidEvent | None = None
        self._within = False  # after BEGIN

    @property
    def is_open(self) -> bool:
        """Whether the last transaction has not ended."""
        return self._open is not None

    def heads(self, packets: Iterable[bytes]) -> Iterator[Head]:
        position = _FIRST_EVENT
        for packet in packets:
            _, kind, _, size, log_pos, _ = HEADER.unpack_from(packet)
            position = end_of_event(position, size, log_pos)
            if kind in _DECODED:
                event = self._decoder.decode(packet)
                if isinstance(event, events.Gtid | events.MariadbGtidEvent):
                    self._close()
                    yield Head(position - size, event)
                    self._open, self._within = event, isinstance(event, events.MariadbGtidEvent) and not event.flags & 1
                else:
                    self._follow(event)
            elif kind in _LAST:
                self._close()
            if self._open is None:
                self.end = position

    def _follow(self, event: events.Event) -> None:
        if isinstance(event, events.PreviousGtids):
            self.gtids = event.gtids.copy()
        elif isinstance(event, events.MariadbGtidList):
            self.gtids = MariadbGtidPosition.parse(",".join(map(str, event.gtids)))
        elif isinstance(event, events.Query):
            word = event.statement[:24].lstrip().upper()
            if is_begin(word) or word.startswith(b"XA START"):
                self._within = True
            elif not self._within or is_end(word) or word.startswith((b"XA COMMIT", b"XA ROLLBACK")):
                self._close()

    def _close(self) -> None:
        """Note that the current transaction has ended."""
        event, self._open = self._open, None
        if isinstance(event, events.MariadbGtidEvent) and isinstance(self.gtids, MariadbGtidPosition):
            self.gtids.add(event.gtid)
        elif isinstance(event, events.Gtid) and not event.anonymous and isinstance(self.gtids, GtidSet):
            self.gtids.add(event.uuid, event.gno, event.tag)

    def found(self, head: Head | None) -> FoundPosition:
        """Return the position of a transaction.

        ``None`` for the end, without a transaction that is not complete yet.
        """
        gtids = None if self.gtids is None else str(self.gtids)
        if head is None:
            return FoundPosition(self.file, self.end, gtids or None)
        return FoundPosition(self.file, head.start, gtids if head.gtid else None, head.gtid, head.micros)


def end_of(files: BinlogFiles) -> FoundPosition:
    """Return the end of the last file."""
    walk = _Walk(files.names[-1])
    for _ in walk.heads(files.events(walk.file)):
        pass
    return walk.found(None)


def is_inside_transaction(files: BinlogFiles, file: str, pos: int) -> bool:
    """Return whether a position is after the first event of a transaction's rows or statement, and before its end."""
    head = _FIRST_EVENT

    def before() -> Iterator[bytes]:
        nonlocal head
        position = _FIRST_EVENT
        for packet in files.events(file):
            if position >= pos:
                return
            yield packet
            position += len(packet)
            if packet[4] in GTID_TYPES:
                head = position

    walk = _Walk(file)
    for _ in walk.heads(before()):
        pass
    return walk.is_open and head != pos


def find_time(files: BinlogFiles, micros: int) -> FoundPosition:
    """Return the first transaction that was committed at a time or later; the end if there is none.

    Args:
        files: the binlog files.
        micros: the time, in µs since the epoch.

    Raises:
        PositionNotFound: the files begin later, and earlier transactions were purged.
    """
    # A file's time is in whole seconds, so it certainly began before a time only if it is at least a second earlier.
    heads = _Heads(files)
    index = bisect_right(heads, micros // 1_000_000 - 1, key=lambda head: head.began) - 1
    if index < 0 and not _nothing_before(heads[0]):
        raise PositionNotFound(
            f"the binlog begins later, and the events before that are purged: {heads[0].file} was begun at "
            f"{utc(heads[0].began * 1_000_000)}. Search a mirror (rowtide position --from)"
        )
    return _first(files, max(0, index), lambda head: head.micros >= micros)


def find_gtids(files: BinlogFiles, gtids: Gtids) -> FoundPosition:
    """Return the first transaction that is not in a set, where a stream with it begins; the end if there is none.

    Raises:
        PositionNotFound: such transactions were purged, or the files have no GTIDs.
    """
    file = file_of_gtids(files, gtids)
    if file is None:
        raise PositionNotFound(
            f"transactions that are not in the set are purged: the binlog begins with {files.names[0]}, after "
            f"{_Heads(files)[0].gtids}. Search a mirror (rowtide position --from)"
        )
    return _first(files, files.names.index(file), lambda head: not head.within(gtids))


def file_of_gtids(files: BinlogFiles, gtids: Gtids) -> str | None:
    """Return the file in which a stream with a GTID set begins; ``None`` if transactions outside of it were purged.

    Raises:
        PositionNotFound: the files have no GTIDs.
    """
    index = bisect_left(_Heads(files), True, key=lambda head: not _covered(head, gtids)) - 1
    return None if index < 0 else files.names[index]


def find_gtid(files: BinlogFiles, gtid: str) -> FoundPosition:
    """Return the beginning of a transaction.

    Args:
        files: the binlog files.
        gtid: one GTID: ``uuid:number``, ``uuid:tag:number``, or ``domain-server-number``.

    Raises:
        PositionNotFound: the files do not have it.
        ValueError: the text is not a GTID.
    """
    wanted = one_gtid(gtid)
    heads = _Heads(files)
    index = bisect_left(heads, True, key=lambda head: _contains(head, wanted)) - 1
    if index < 0:
        raise PositionNotFound(
            f"{gtid} is purged: the binlog begins with {files.names[0]}, after {heads[0].gtids}. Search a mirror "
            "(rowtide position --from)"
        )
    found = _first(files, index, lambda head: _is(head, wanted), last=index)
    if found.at_end:
        raise PositionNotFound(f"no transaction of the binlog has the GTID {gtid}")
    return found


def one_gtid(text: str) -> GtidSet | MariadbGtid:
    """Return a GTID as a set of one GTID, or as MariaDB's GTID.

    Raises:
        ValueError: the text is neither.
    """
    try:
        return MariadbGtid.parse(text)
    except ValueError:
        gtids = GtidSet.parse(text)
    intervals = [interval for _, _, found in gtids.items() for interval in found]
    if len(intervals) != 1 or intervals[0][1] - intervals[0][0] != 1:
        raise ValueError(f"not a single GTID: {text!r}. Use --gtids for a set")
    return gtids


def utc(micros: int) -> str:
    """Return a time, in µs since the epoch, as ISO 8601 in UTC."""
    moment = datetime.fromtimestamp(micros // 1_000_000, UTC)
    fraction = micros % 1_000_000
    return f"{moment:%Y-%m-%dT%H:%M:%S}{f'.{fraction:06}' if fraction else ''}Z"


class _Heads(Sequence[FileHead]):
    """The heads of files, read when they are needed. A last file without a complete head counts as begun later."""

    def __init__(self, files: BinlogFiles) -> None:
        self._files = files
        self._read: dict[int, FileHead] = {}
        names = files.names
        self._count = len(names)
        if self._head(self._count - 1) is None and self._count > 1:
            self._count -= 1

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> FileHead:  # type: ignore[override]
        head = self._head(index)
        if head is None:
            raise PositionNotFound(f"the binlog file {self._files.names[index]} has no events")
        return head

    def _head(self, index: int) -> FileHead | None:
        if index not in self._read:
            name = self._files.names[index]
            head = read_head(name, self._files.events(name))
            if head is None:
                return None
            self._read[index] = head
        return self._read[index]


def _first(files: BinlogFiles, index: int, wanted: Callable[[Head], bool], last: int | None = None) -> FoundPosition:
    """Return the first wanted transaction in a file or later ones, or the end."""
    stop = len(files.names) if last is None else last + 1
    for file in files.names[index:stop]:
        walk = _Walk(file)
        for head in walk.heads(files.events(file)):
            if wanted(head):
                return walk.found(head)
    return walk.found(None)


def _nothing_before(head: FileHead) -> bool:
    return head.gtids is not None and not head.gtids


def _covered(head: FileHead, gtids: Gtids) -> bool:
    before = head.gtids
    if isinstance(before, GtidSet) and isinstance(gtids, GtidSet):
        return before <= gtids
    if isinstance(before, MariadbGtidPosition) and isinstance(gtids, MariadbGtidPosition):
        return before <= gtids
    if not gtids and before is not None:  # an empty set belongs to either server
        return not before
    raise PositionNotFound(
        f"the binlog file {head.file} has no GTIDs of this kind (gtid_mode=OFF, or GTIDs of the other kind of server): "
        "search for a time instead"
    )


def _contains(head: FileHead, wanted: GtidSet | MariadbGtid) -> bool:
    if isinstance(wanted, MariadbGtid):
        return isinstance(head.gtids, MariadbGtidPosition) and head.gtids.contains(wanted)
    return isinstance(head.gtids, GtidSet) and wanted <= head.gtids


def _is(head: Head, wanted: GtidSet | MariadbGtid) -> bool:
    if isinstance(wanted, MariadbGtid):
        return isinstance(head.event, events.MariadbGtidEvent) and head.event.gtid == wanted
    return head.within(wanted)
