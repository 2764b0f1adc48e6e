"""Holds the events of a transaction until it is known which of its rows a rollback has undone.

::

    GTID, rows, SAVEPOINT, rows ──► held ──► COMMIT               ──► the same events
                                             ROLLBACK TO, COMMIT  ──► rows after SAVEPOINT are IGNORABLE events
                                             ROLLBACK             ──► all rows are IGNORABLE events

A server writes a transaction to the binlog although it is rolled back if a part of it cannot be undone, such as CREATE
TEMPORARY TABLE. MariaDB does so in every format of the binlog, and nothing at the beginning of a transaction shows that
it will be rolled back, so all of them are held. MySQL does so only for transactions with statements, which it marks. A
server writes a transaction at its end, so holding it takes no longer than its transfer. Changes of non-transactional
tables are not undone: servers write their rows as separate transactions, which commit.

Positions count events. Therefore, a row event that is undone stays in its place, as an event that replicas ignore.
"""

import itertools
import logging
import re
import unicodedata
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO

from rowtide.connector.errors import ProtocolError, TransactionNotHeld
from rowtide.connector.protocol.events.compression import decompress
from rowtide.connector.protocol.events.log_events import FormatDescription
from rowtide.connector.protocol.header import GTID_TYPES, HEADER, HEADER_LENGTH, IGNORABLE, ROWS_TYPES, EventType

log = logging.getLogger(__name__)

_MOST_BYTES = 32 << 20
"""The bytes of a transaction that are held in memory; a larger one is held in a temporary file."""
_WRITE_BYTES = 1 << 20

_HAS_STATEMENTS = 1
"""FLAG_MAY_HAVE_SBR of a MySQL GTID event: the transaction may have changes that are logged as statements."""
_STANDALONE = 1
"""FL_STANDALONE of a MariaDB GTID event: a single statement, without COMMIT."""
_FLAGS, _MARIADB_FLAGS = HEADER_LENGTH, HEADER_LENGTH + 12
_CREATED = HEADER_LENGTH + 52
"""Where FORMAT_DESCRIPTION says whether the server has started with this file."""
_QUERY_HEAD = HEADER_LENGTH + 13
"""Where the status variables of a QUERY event begin."""


def _types(*kinds: int) -> frozenset[bytes]:
    return frozenset(bytes([kind]) for kind in kinds)


_XID, _FORMAT = bytes([EventType.XID]), bytes([EventType.FORMAT_DESCRIPTION])
_MARIADB_GTID = bytes([EventType.MARIADB_GTID])
_GTIDS = _types(*GTID_TYPES)
_MYSQL_GTIDS = _types(EventType.GTID, EventType.ANONYMOUS_GTID)
"""Without GTID_TAGGED: with ``gtid_mode=ON``, MySQL refuses what it could not roll back."""
_QUERIES = _types(EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED)
_LAST = _types(EventType.XID, EventType.XA_PREPARE)
_TELLING = _QUERIES | _LAST | _GTIDS | {_FORMAT}
_SAVEPOINT = re.compile(
    rb"(?:SAVEPOINT|(?P<back>ROLLBACK\s+(?:WORK\s+)?TO)(?:\s+SAVEPOINT)?)\s+(?P<name>.+)", re.IGNORECASE | re.DOTALL
)


TemporaryFile = Callable[[], IO[bytes]]
"""Opens a temporary file."""


class EventGroups:
    """The transactions of one stream.

    Args:
        temporary_file: opens a file for the events of a large transaction; without it, all are held in memory.
        most: the bytes of a transaction that are held in memory.
    """

    def __init__(self, temporary_file: TemporaryFile | None = None, most: int = _MOST_BYTES) -> None:
        self._temporary_file = temporary_file
        self._most = most
        self._group: _Group | None = None
        # Until the first GTID event, the stream may begin after one, or come from a server that writes none.
        self._openers = _GTIDS | _QUERIES

    @property
    def holding(self) -> bool:
        """Whether the beginning of a transaction is held."""
        return self._group is not None

    def passes(self, packet: bytes) -> bool:
        """Return whether an event need not be added: no transaction is held, and it begins none."""
        return self._group is None and packet[4:5] not in self._openers

    def commits_within(self, packets: Sequence[bytes], at: int) -> bool:
        """Return whether ``packets[at]`` begins a transaction of MariaDB that commits in this list with all its rows.

        It need not be added then, and neither need the other events of the transaction.
        """
        if self._group is not None or packets[at][4:5] != _MARIADB_GTID:
            return False
        for place in range(at + 1, len(packets)):
            kind = packets[place][4:5]
            if kind in _TELLING:
                return kind == _XID
        return False

    def add(self, packet: bytes, description: FormatDescription | None) -> Iterable[bytes]:
        """Take the next event, and return the events that can be processed now, in order.

        Args:
            packet: the event.
            description: the FORMAT_DESCRIPTION of its file.

        Raises:
            TransactionNotHeld: there is no space for the temporary file of a large transaction.
        """
        kind, group = packet[4:5], self._group
        checksums = description is not None and description.checksum == "CRC32"
        if group is not None and kind in _GTIDS:
            self._group = None  # a transaction without an end
            return itertools.chain(group.events(checksums), self.add(packet, description))
        if group is not None and kind == _FORMAT and any(packet[_CREATED : _CREATED + 4]):
            self.abandon("the server crashed while it wrote the transaction")
            return (packet,)
        if group is None:
            if not self._opens(packet, checksums):
                return (packet,)
            group = self._group = _Group(self._temporary_file, self._most, awaits_begin=kind in _MYSQL_GTIDS)
        if not group.ends_with(packet, checksums):
            return ()
        self._group = None
        return group.events(checksums)

    def abandon(self, reason: str) -> None:
        """Drop a transaction whose end does not come. A replica rolls it back."""
        group, self._group = self._group, None
        if group is not None:
            log.warning("the last transaction has no end, so its rows are skipped: %s", reason)

    def _opens(self, packet: bytes, checksums: bool) -> bool:
        kind = packet[4:5]
        if kind in _GTIDS:
            self._openers = _GTIDS
        if kind == _MARIADB_GTID:
            return not _flags(packet, _MARIADB_FLAGS) & _STANDALONE
        if kind in _MYSQL_GTIDS:
            return bool(_flags(packet, _FLAGS) & _HAS_STATEMENTS)
        return kind in _QUERIES and _begins(_statement(packet, checksums))


class _Group:
    """The events of a transaction.

    Args:
        temporary_file: opens a file for its events, if it is large.
        most: the bytes of it that are held in memory.
        awaits_begin: whether it is a transaction only if its second event is BEGIN.
    """

    def __init__(self, temporary_file: TemporaryFile | None, most: int, *, awaits_begin: bool) -> None:
        self._temporary_file = temporary_file
        self._most = most
        self._awaits_begin = awaits_begin
        self._count = 0
        self._packets: list[bytes] = []
        self._size = 0
        self._file: IO[bytes] | None = None
        self._savepoints: dict[str, int] = {}
        self._undone: deque[tuple[int, int]] = deque()  # ranges of events, in order

    def ends_with(self, packet: bytes, checksums: bool) -> bool:
        """Take the next event, and return whether it is the last one."""
        number, kind = self._count, packet[4:5]
        self._count += 1
        self._packets.append(packet)
        self._size += len(packet)
        if len(packet) < HEADER_LENGTH or HEADER.unpack_from(packet)[3] != len(packet):
            return True  # its decoding reports that it is damaged
        if self._size > self._most and self._temporary_file is not None:
            self._write(self._temporary_file)
        if number == 1 and self._awaits_begin:
            return not (kind in _QUERIES and _begins(_statement(packet, checksums)))
        return kind in _LAST or (kind in _QUERIES and self._ends(_statement(packet, checksums), number))

    def _ends(self, statement: bytes, number: int) -> bool:
        word = statement[:24].upper()
        if word.startswith(b"COMMIT"):
            return True
        if word.rstrip(b" ;") == b"ROLLBACK":
            self._undo(0, number)
            return True
        found = _SAVEPOINT.fullmatch(statement)
        if found is not None:
            name = _name(found["name"])
            if found["back"] is None:
                self._savepoints.pop(name, None)  # the new one comes after all others
                self._savepoints[name] = number
            else:
                # One that was set before the first change of the transaction is not in the binlog.
                since = self._savepoints.get(name, 0)
                self._savepoints = {one: place for one, place in self._savepoints.items() if place <= since}
                self._undo(since, number)
        return False

    def _undo(self, begin: int, end: int) -> None:
        while self._undone and self._undone[-1][0] >= begin:
            self._undone.pop()
        self._undone.append((begin, end))

    def _write(self, temporary_file: TemporaryFile) -> None:
        """Move the events that are in memory to the temporary file."""
        try:
            if self._file is None:
                self._file = temporary_file()
                self._most = min(self._most, _WRITE_BYTES)
            self._file.writelines(self._packets)
        except OSError as error:
            raise TransactionNotHeld(
                "cannot hold a large transaction in a temporary file until it is known whether it was rolled back: "
                f"{error.strerror}. Set TMPDIR to a folder with space for the largest transaction of the server"
            ) from error
        self._packets.clear()
        self._size = 0

    def events(self, checksums: bool) -> Iterator[bytes]:
        """Yield the events; row events that are undone as IGNORABLE.

        DDL is not undone: in a transaction, it is that of temporary tables.
        """
        undone = self._undone
        for number, packet in enumerate(self._held()):
            while undone and undone[0][1] <= number:
                undone.popleft()
            if undone and undone[0][0] <= number and packet[4] in ROWS_TYPES:
                yield _ignorable(packet, checksums)
            else:
                yield packet

    def _held(self) -> Iterator[bytes]:
        if self._file is not None:
            with self._file as file:
                file.seek(0)
                while head := file.read(HEADER_LENGTH):
                    yield head + file.read(HEADER.unpack(head)[3] - HEADER_LENGTH)
        yield from self._packets


def _flags(packet: bytes, place: int) -> int:
    """Return the flags of a GTID event; 0 if it is damaged, which its decoding reports."""
    return packet[place] if len(packet) > place else 0


def _begins(statement: bytes) -> bool:
    return statement[:24].upper().startswith((b"BEGIN", b"XA START"))


def _statement(packet: bytes, checksums: bool) -> bytes:
    """Return the statement of a QUERY event; empty if the event is damaged, which its decoding reports."""
    if len(packet) < _QUERY_HEAD:
        return b""
    start = _QUERY_HEAD + int.from_bytes(packet[_QUERY_HEAD - 2 : _QUERY_HEAD], "little") + packet[_QUERY_HEAD - 5] + 1
    statement = packet[start : len(packet) - 4 if checksums else len(packet)]
    if packet[4] == EventType.MARIADB_QUERY_COMPRESSED:
        try:
            statement = decompress(statement, 0, len(statement))
        except ProtocolError:
            return b""
    return statement.strip()


def _name(quoted: bytes) -> str:
    """Return the name of a savepoint in one spelling: servers compare names without regard to case and accents."""
    text = quoted.rstrip(b" ;").decode("utf-8", "replace")
    text = text[1:-1].replace("``", "`") if text.startswith("`") else text
    return "".join(one for one in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(one))


def _ignorable(packet: bytes, checksums: bool) -> bytes:
    """Return the event with the type IGNORABLE."""
    changed = bytearray(packet)
    changed[4] = EventType.IGNORABLE
    changed[17] |= IGNORABLE
    if checksums:
        changed[-4:] = zlib.crc32(memoryview(changed)[:-4]).to_bytes(4, "little")
    return bytes(changed)
