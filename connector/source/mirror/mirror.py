"""Mirrors the binlog of a server into a folder until it is stopped, and resumes after lost connections."""

import contextlib
import logging
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pymysql

from rowtide.connector.backoff import Backoff
from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import MirrorError, PositionPurged
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.binlog_stream import BinlogStream, StreamBroken, StreamRefused
from rowtide.connector.source.connection import Client, DatabaseUnreachableError, connect
from rowtide.connector.source.mirror.binlog_copy import FIRST_EVENT, BinlogCopy, CopyPosition, NextFile, is_next
from rowtide.connector.source.mirror.folder import MirrorFolder, MirrorRetention, Origin
from rowtide.connector.source.search.places import ServerFiles
from rowtide.connector.source.search.positions import file_of_gtids
from rowtide.connector.source.server_queries import binlog_files, server_identity
from rowtide.schema_history.position.binlog_position import file_number, parse_gtids

log = logging.getLogger(__name__)

_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.5, 30.0
_SYNC_S = 1.0
_SUMMARY_S = 60.0
_IDLE_S = 60.0
"""After this long without an event, the server's files are compared with the mirror: MySQL keeps a stream open and
silent when its binlog is reset."""

StartFile = Callable[[Sequence[tuple[str, int]]], str]
"""Chooses the first file of a new mirror among the names and sizes of the server's files."""


@dataclass(frozen=True, slots=True)
class MirrorSettings:
    """The settings for writing a mirror.

    Attributes:
        start: chooses the first file of a new mirror.
        sync: when files are written through to the disk: ``always`` after each piece, ``interval`` each second, or
            ``file`` at the end of each file.
        retention: the rules for deleting files.
        once: end at the position that was the end of the server's binlog at the start.
    """

    start: StartFile
    sync: str = "interval"
    retention: MirrorRetention = field(default_factory=MirrorRetention)
    once: bool = False


@dataclass(slots=True)
class MirrorStatus:
    """The state of a mirror. Its thread writes it, others read it.

    Attributes:
        connected: whether a stream is open.
        file: the file that is written.
        pos: its size.
        event_at: when the server logged the last event, in seconds since the epoch; 0 before the first one.
        files: number of files.
        bytes: their sizes.
        copied_bytes: bytes that this process has written.
        reconnects: the number of times a stream was opened again.
        error: why no stream is open.
    """

    connected: bool = False
    file: str = ""
    pos: int = 0
    event_at: int = 0
    files: int = 0
    bytes: int = 0
    copied_bytes: int = 0
    reconnects: int = 0
    error: str | None = None


def as_mirror(config: DatabaseConfig, folder: str, server_id: int | None = None) -> DatabaseConfig:
    """Return the configuration of a database with which a mirror registers as a separate replica.

    Args:
        config: that of a connector.
        folder: the folder of the mirror.
        server_id: its server id; by default an id derived from the folder.
    """
    derived = (1 << 31) + (zlib.crc32(f"{config.server_id}/{folder}".encode()) >> 2)
    return replace(config, server_id=server_id or derived, replica=replace(config.replica, uuid=None))


class Mirror:
    """Copies the binlog files of a server.

    Args:
        config: address, account and server id.
        folder: the mirror, locked by this process.
        settings: the settings for writing it.
        mariadb: whether the server is MariaDB.

    Attributes:
        status: the state of the mirror.
    """

    def __init__(
        self, config: DatabaseConfig, folder: MirrorFolder, settings: MirrorSettings, *, mariadb: bool
    ) -> None:
        self.status = MirrorStatus()
        self._config = config
        self._folder = folder
        self._settings = settings
        self._mariadb = mariadb
        self._stop = threading.Event()
        self._at: CopyPosition | None = None
        self._backoff = Backoff(_FIRST_WAIT_S, _LONGEST_WAIT_S)
        self._until: tuple[int, int] | None = None
        self._synced_at = self._summary_at = self._heard_at = time.monotonic()

    def stop(self) -> None:
        """Stop within a tick of the stream; may be called from any thread."""
        self._stop.set()

    def run(self) -> None:
        """Mirror until :meth:`stop` is called, or with ``once`` until the end of the binlog.

        Raises:
            MirrorError: the mirror cannot be continued, or its directory cannot be written.
            ConnectorError: the server refuses to send its binlog.
            DatabaseUnreachableError: the account or the configuration is wrong.
        """
        self._at = self._folder.resume()
        while not self._stop.is_set():
            before = self._at
            try:
                self._follow()
            except (StreamBroken, PositionPurged, DatabaseUnreachableError) as error:
                if isinstance(error, DatabaseUnreachableError) and not error.retriable:
                    raise
                if self._at is not None and self._at == before and _NO_EVENT in str(error):
                    raise MirrorError(
                        f"the server cannot send {before.file} from {before.start} on, where the mirror has an event: "
                        f"{error}. Its binlog was reset, or this is another server: begin a mirror in another "
                        "directory (--to), and keep this one as an archive"
                    ) from error
                self._retry(error, moved=self._at != before)
            finally:
                self.status.connected = False
            if self._reached():
                return

    def _retry(self, error: Exception, *, moved: bool) -> None:
        if moved:
            self._backoff.succeeded()
        wait = self._backoff.failed()
        log.warning("%s; the mirror resumes in %.1f s", error, wait)
        self.status.error = str(error)
        self.status.reconnects += 1
        self._stop.wait(wait)

    def _follow(self) -> None:
        """Copy over one connection."""
        at = self._at = self._continued(self._at)
        copy = BinlogCopy(at)
        stream = BinlogStream(
            self._config, SourceOffset(at.file, at.dump_start), mariadb=self._mariadb, send_annotations=True
        )
        with contextlib.closing(stream.events()) as pieces:
            for packets in pieces:
                if not self.status.connected:
                    log.info("mirroring %s from %d on into %s", at.file, at.end, self._folder.folder)
                    self.status.connected, self.status.error = True, None
                    self._prune()
                self._write(copy, packets)
                self._at = copy.at
                self._tick(copy, idle=not packets)
                if self._stop.is_set() or self._reached():
                    return

    def _write(self, copy: BinlogCopy, packets: list[bytes]) -> None:
        end = copy.at.end
        for piece in copy.receive(packets):
            if isinstance(piece, NextFile):
                self._folder.finish(closed=piece.closed or not self._mariadb)
                self._folder.begin(piece.name)
                self._prune()
                log.info("the server has begun %s", piece.name)
                end = 0
            elif piece:
                end += sum(map(len, piece))
                self._folder.append(piece, end)
                self.status.copied_bytes += sum(map(len, piece))

    def _continued(self, at: CopyPosition | None) -> CopyPosition:
        """Return the position at which the server continues or begins the mirror.

        Raises:
            MirrorError: the server cannot continue the mirror.
            DatabaseUnreachableError: the connection is lost, or refused.
        """
        with contextlib.closing(connect(self._config)) as client:
            files = self._server_files(client)
            if self._settings.once and self._until is None:
                self._until = file_number(files[-1][0]) or 0, files[-1][1]
        if at is None:
            at = CopyPosition(self._settings.start(files))
            self._folder.begin(at.file)
            return at
        following = continued(at, files)
        if following.file != at.file:
            log.info("%s is complete, and the server has purged it: continuing with %s", at.file, following.file)
            self._folder.finish(closed=True)
            self._folder.begin(following.file)
        return following

    def _server_files(self, client: Client) -> list[tuple[str, int]]:
        """Return the names and sizes of the files of the mirror's server, which must be the right one."""
        server = server_identity(client, mariadb=self._mariadb)
        self._folder.claim(Origin("mariadb" if self._mariadb else "mysql", server))
        try:
            return binlog_files(client)
        except pymysql.MySQLError as error:
            raise StreamRefused(
                f"the server does not list its binlog files: {error.args[-1]}. Grant REPLICATION SLAVE and "
                f"{'BINLOG MONITOR' if self._mariadb else 'REPLICATION CLIENT'} to '{self._config.user}', and check "
                "that the binlog is on (log_bin)"
            ) from None

    def _check_silence(self, at: CopyPosition) -> None:
        """Compare the server's files with the mirror while no events arrive.

        Raises:
            StreamBroken: the server has events that it does not send.
            MirrorError: it cannot continue the mirror.
        """
        with contextlib.closing(connect(self._config)) as client:
            files = self._server_files(client)
        following = continued(at, files)
        if sum(size for name, size in files if _behind(name, following)) > following.end:
            raise StreamBroken(f"the server sends nothing after {at.file}:{at.end}, but it has more")

    def _tick(self, copy: BinlogCopy, *, idle: bool) -> None:
        now, status = time.monotonic(), self.status
        status.file, status.pos, status.event_at = copy.at.file, copy.at.end, copy.timestamp
        if self._settings.sync == "always" or (self._settings.sync == "interval" and now - self._synced_at > _SYNC_S):
            self._folder.sync()
            self._synced_at = now
        if not idle:
            self._heard_at = now
        elif now - self._heard_at > _IDLE_S:
            self._heard_at = now
            self._check_silence(copy.at)
        if now - self._summary_at > _SUMMARY_S:
            self._summary_at = now
            self._prune()
            log.info("mirrored up to %s:%d; %d files, %d bytes", status.file, status.pos, status.files, status.bytes)

    def _prune(self) -> None:
        gone = self._folder.prune(self._settings.retention, time.time())
        if gone:
            log.info("deleted %s from the mirror (--keep-size, --keep-days)", ", ".join(gone))
        self.status.files, self.status.bytes = self._folder.size()

    def _reached(self) -> bool:
        at = self._at
        return self._until is not None and at is not None and (file_number(at.file) or 0, at.end) >= self._until


_NO_EVENT = "error 1236"
"""The server's error if a dump begins where no event does."""


def continued(at: CopyPosition, files: list[tuple[str, int]]) -> CopyPosition:
    """Return the position at which a mirror continues.

    It is after the last event, or in the next file if the server has purged a complete one.

    Args:
        at: the progress of the newest file.
        files: names and sizes of the server's files, oldest first.

    Raises:
        MirrorError: the server cannot continue the mirror.
    """
    sizes = dict(files)
    known = f"it has {files[0][0]} to {files[-1][0]}" if files else "it has none"
    if at.file in sizes:
        if at.end > max(sizes[at.file], FIRST_EVENT):
            raise MirrorError(
                f"the server's {at.file} ends at {sizes[at.file]}, and the mirrored one at {at.end}: its binlog was "
                "reset, or it lost the end of its binlog in a crash (sync_binlog). Begin a mirror in another directory "
                "(--to), and keep this one as an archive"
            )
        return at
    if at.complete:
        following = next((name for name, _ in files if is_next(at.file, name)), None)
        if following is not None:
            return CopyPosition(following)
    raise MirrorError(
        f"the mirror ends at {at.file}:{at.end}, and the server has purged the following events ({known}): changes "
        "between them cannot be mirrored. Begin a mirror in another directory (--to), keep this one as an archive, and "
        "let the server keep its binlog files longer (binlog_expire_logs_seconds)"
    )


def _behind(name: str, at: CopyPosition) -> bool:
    return (file_number(name) or 0) >= (file_number(at.file) or 0)


def start_file(start: str, config: DatabaseConfig, *, mariadb: bool) -> StartFile:
    """Return the choice that ``--start`` describes: ``oldest``, ``newest``, the name of a file, or a GTID set.

    The returned function raises :class:`MirrorError` if the server does not have the file.
    """

    def choose(files: Sequence[tuple[str, int]]) -> str:
        names = [name for name, _ in files]
        known = f"the server has {names[0]} to {names[-1]}"
        if start in ("oldest", "newest"):
            return names[0 if start == "oldest" else -1]
        if start in names:
            return start
        try:
            gtids = parse_gtids(start)
        except ValueError:
            raise MirrorError(
                f"the server has no binlog file {start} ({known}), and it is not a GTID set (--start)"
            ) from None
        found = file_of_gtids(ServerFiles(config, files, mariadb=mariadb), gtids)
        if found is None:
            raise MirrorError(
                f"the server has purged transactions that are not in {start} ({known}): choose --start oldest"
            )
        return found

    return choose
