"""Replay: binlog files on disk through the same pipeline as a server's stream (``rowtide replay``).

Events before the start offset only build structure; from there on records are made. Structures at the start are given
the form that a snapshot would have found there, because a stream that begins at an offset begins behind a snapshot.
"""

import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rowtide.connector.batch import Output
from rowtide.connector.errors import OffsetError, UnparsedDdl
from rowtide.connector.offset import SourceOffset
from rowtide.connector.pipeline import Clock, Pipeline
from rowtide.connector.protocol import events
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.settings import PipelineSettings
from rowtide.connector.statements import is_begin, is_end, is_xa, query_event
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.gtid import GtidSet, MariadbGtidPosition
from rowtide.schema_history.query import Flavor, Server
from rowtide.schema_history.snapshot_form import as_snapshot
from rowtide.schema_history.tables import Tables

_FILE = re.compile(r"(?P<name>.+\.(?P<number>\d+))(\.gz)?")


def binlog_files(folder: Path) -> list[tuple[str, Path]]:
    """The binlog files of a folder in their order: name on the server, and path (plain or ``.gz``).

    Raises:
        OffsetError: there is none.
    """
    found = [(match, path) for path in folder.iterdir() if (match := _FILE.fullmatch(path.name))]
    found.sort(key=lambda item: (int(item[0]["number"]), item[0]["name"]))
    if not found:
        raise OffsetError(f"no binlog files (such as binlog.000001 or mysql-bin.000042.gz) in {folder}")
    return [(match["name"], path) for match, path in found]


def replay(
    folder: Path, settings: PipelineSettings, start: SourceOffset | None, clock: Clock = time.time_ns
) -> Iterator[Output]:
    """The records of the binlog files in a folder.

    Args:
        folder: where they are; in the order of their numbers.
        settings: how records are made.
        start: from where on records are wanted; ``None`` for all.
        clock: for the processing times.

    Raises:
        ConnectorError: an event cannot be handled.
        OffsetError: the start is not in the files.
    """
    files = binlog_files(folder)
    return _Replay(files, settings, start or SourceOffset(files[0][0], 4), clock).run()


class _Replay:
    def __init__(
        self, files: list[tuple[str, Path]], settings: PipelineSettings, start: SourceOffset, clock: Clock
    ) -> None:
        names = [name for name, _ in files]
        if start.file not in names:
            raise OffsetError(f"the start is in {start.file}, and the files are {names[0]} to {names[-1]}")
        self._files = files
        self._settings = settings
        self._start = start
        self._clock = clock
        self._start_file = names.index(start.file)
        self._decoder = EventDecoder()
        self._tables: Tables | None = None
        self._gtids: GtidSet | MariadbGtidPosition | None = None

    def run(self) -> Iterator[Output]:
        pipeline: Pipeline | None = None
        for index, (name, path) in enumerate(self._files):
            with path.open("rb") as stream:
                if pipeline is not None:
                    pipeline.enter_file(name)
                for packet in binlog_packets(stream, name, active=index == len(self._files) - 1):
                    if pipeline is None and self._reached(index, packet):
                        pipeline = self._pipeline(name)
                    if pipeline is not None:
                        yield from pipeline.receive(packet)
                    else:
                        self._prepare(name, packet)

    def _reached(self, index: int, packet: bytes) -> bool:
        """Whether the event is the first one behind the start."""
        if index < self._start_file:
            return False
        position = int.from_bytes(packet[13:17], "little") - len(packet)
        return index > self._start_file or position >= max(self._start.pos, 4 + 1) or self._start.pos <= 4

    def _pipeline(self, name: str) -> Pipeline:
        tables = self._tables or Tables(self._server())
        for database in list(tables.databases()):
            tables.put_database(replace(database, form_charset=database.charset))
        for table in list(tables):
            tables.put(as_snapshot(table, tables.server))
        start = self._start
        if start.gtids is None and self._gtids:
            start = replace(start, gtids=str(self._gtids))
        pipeline = Pipeline(self._settings, tables, start, self._clock)
        pipeline.enter_file(name, self._decoder)
        return pipeline

    def _server(self) -> Server:
        version = self._decoder.format.server_version if self._decoder.format else ""
        return Server(Flavor(self._settings.connector), version)

    def _prepare(self, name: str, packet: bytes) -> None:
        """An event before the start: only statements count."""
        self._decoder.file = name
        event = self._decoder.decode(packet)
        if isinstance(event, events.TransactionPayload):
            for inner in self._decoder.unpack(event):
                self._structure(name, inner)
        else:
            self._structure(name, event)

    def _structure(self, name: str, event: events.Event) -> None:
        if isinstance(event, events.FormatDescription) and self._tables is None:
            self._tables = Tables(self._server())
        elif isinstance(event, events.PreviousGtids):
            self._gtids = event.gtids.copy()
        elif isinstance(event, events.Gtid) and not event.anonymous and isinstance(self._gtids, GtidSet):
            self._gtids.add(event.uuid, event.gno, event.tag)
        elif isinstance(event, events.MariadbGtidEvent):
            self._gtids = self._gtids or MariadbGtidPosition()
            if isinstance(self._gtids, MariadbGtidPosition):
                self._gtids.add(event.gtid)
        elif isinstance(event, events.Query) and self._tables is not None:
            word = event.statement[:24].lstrip().upper()
            if is_begin(word) or is_end(word) or is_xa(word):
                return
            try:
                self._tables.apply(query_event(event, f"{name}:{event.header.start}"))
            except SchemaHistoryError as error:
                if not self._settings.skip_unparseable_ddl:
                    raise UnparsedDdl(str(error)) from error
