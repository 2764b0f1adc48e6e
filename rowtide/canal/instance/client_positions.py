"""Edge: the positions of a destination's clients, in ``meta.dat`` and in a file of rowtide's own beside it.

Canal's form has the place of the last event that a client has acknowledged. The other file has the resume position
behind it (GTIDs, the server's identity), and counts only while ``meta.dat`` has the same place: a Canal that runs in
between changes ``meta.dat`` alone. Both files are replaced atomically, rowtide's own first. It also has the positions
before the last write, which ``meta.dat`` still has after a crash in between.
"""

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock

from rowtide.canal.instance.positions import CanalPosition, ClientPosition, Master, PositionsError, meta_text, read_meta
from rowtide.canal.server.stored_entry import LogPosition
from rowtide.connector.errors import OffsetError
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.position.binlog_position import file_number

META, OWN = "meta.dat", "rowtide.positions.json"
_Own = dict[str, str | int]
"""The place and the resume position of a client."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where an instance resumes.

    Attributes:
        offset: the resume position.
        done: the event at which reading begins and which clients have acknowledged already; ``None`` if reading begins
            behind it.
        since_ms: the time of the first entry that is wanted, in milliseconds since the epoch; 0 for all.
    """

    offset: SourceOffset
    done: CanalPosition | None = None
    since_ms: int = 0


class ClientPositions:
    """The positions of the clients of one destination.

    Args:
        folder: of the files; made if it is missing.
        destination: its name.
        master: the server.

    Raises:
        OffsetError: a file is damaged, or cannot be read; the message says what to do.
    """

    def __init__(self, folder: Path, destination: str, master: Master) -> None:
        self._folder = folder
        self._destination = destination
        self._master = master
        self._clients: dict[int, ClientPosition] = {}
        self._offsets: dict[int, SourceOffset] = {}
        self._left: tuple[ClientPosition, SourceOffset | None] | None = None
        self._begin: Resumption | None = None
        self._snapshot = False
        self._changed = False
        self._written: dict[int, _Own] = {}  # what both files have
        self._lock = Lock()
        self._writing = Lock()
        self._load()

    def begins(self, offset: SourceOffset, since_ms: int = 0) -> None:
        """Write where the instance begins, for clients that have acknowledged nothing yet.

        Args:
            offset: the resume position.
            since_ms: the time of the first entry that is wanted, in milliseconds since the epoch; 0 for all.

        Raises:
            OSError: a file cannot be written.
        """
        with self._lock:
            self._begin, self._changed = Resumption(offset, since_ms=since_ms), True
        self.flush()

    def snapshot_begins(self) -> bool:
        """Write that an initial snapshot has begun, until something is acknowledged.

        Returns:
            Whether one had begun before.

        Raises:
            OSError: a file cannot be written.
        """
        with self._lock:
            before, self._snapshot, self._changed = self._snapshot, True, True
        self.flush()
        return before

    def subscribed(self, client_id: int, filter_: str) -> None:
        """Write that there is a client, and its filter unless that is empty: a restart must not begin behind it.

        As in Canal, a new client has the position of the others, because all of them share one cursor.

        Raises:
            OSError: a file cannot be written.
        """
        with self._lock:
            known = self._clients.get(client_id)
            found = replace(known or self._new(client_id), filter=filter_ or (known.filter if known else ""))
            if filter_:
                self._clients.pop(client_id, None)  # it is now the last one that has set the filter
            self._clients[client_id] = found
            self._changed = self._changed or found != known
        if found != known:
            self.flush()

    def _new(self, client_id: int) -> ClientPosition:
        clients = list(self._clients.values())
        if any(client.position is None for client in clients):
            return ClientPosition(client_id, "")
        if not clients:
            return self._heir(client_id, *self._left) if self._left is not None else ClientPosition(client_id, "")
        oldest = _oldest(clients)
        return self._heir(client_id, oldest, self._offsets.get(oldest.client_id))

    def _heir(
        self, client_id: int, client: ClientPosition, offset: SourceOffset | None, filter_: str = ""
    ) -> ClientPosition:
        if offset is not None:
            self._offsets[client_id] = offset
        return replace(client, client_id=client_id, filter=filter_)

    def unsubscribed(self, client_id: int) -> None:
        """Forget a client: reading does not go back to its position any more.

        If no other client has a position, this one becomes that of the others, and of the next one that subscribes.
        """
        with self._lock:
            client, offset = self._clients.pop(client_id, None), self._offsets.pop(client_id, None)
            if client is None:
                return
            self._changed = True
            if client.position is not None and all(other.position is None for other in self._clients.values()):
                self._left = client, offset
                for other in list(self._clients.values()):
                    self._clients[other.client_id] = self._heir(other.client_id, client, offset, other.filter)

    def acknowledged(self, client_id: int, position: LogPosition) -> None:
        """Set the position of a client; it is written by the next :meth:`flush`."""
        made = CanalPosition(position.file, position.pos, position.server_id, position.ts_ms, position.gtid)
        with self._lock:
            known = self._clients.get(client_id) or ClientPosition(client_id, "")
            self._clients[client_id] = replace(known, master=self._master, position=made)
            self._offsets[client_id] = position.offset
            self._snapshot, self._changed = False, True

    @property
    def filter(self) -> str:
        """The filter of the last subscription that had one."""
        with self._lock:
            return next((client.filter for client in reversed(self._clients.values()) if client.filter), "")

    def resumption(self, client_id: int | None = None) -> Resumption | None:
        """The position of a client, or else the oldest of all clients; ``None`` if there is none."""
        with self._lock:
            clients = list(self._clients.values())
        own_position = [client for client in clients if client.client_id == client_id and client.position is not None]
        clients = own_position or clients
        found = [client for client in clients if client.position is not None]
        if self._begin is not None and len(found) < len(clients):
            return self._begin
        if not found:
            return None
        oldest = _oldest(found)
        own = self._offsets.get(oldest.client_id)
        if own is not None:
            return Resumption(own)
        position = oldest.position
        assert position is not None
        offset = SourceOffset(position.file, position.pos, position.gtid or None, ts_sec=position.ts_ms // 1000)
        # The server leaves out the transactions of the set; after a fail-over, their positions are of another server.
        return Resumption(offset, None if position.gtid else position)

    def moved(self, client_id: int) -> bool:
        """Whether a client has a position that rowtide has not written: Canal has run in between."""
        with self._lock:
            client = self._clients.get(client_id)
            return client is not None and client.position is not None and client_id not in self._offsets

    def flush(self) -> None:
        """Write what has changed.

        Raises:
            OSError: a file cannot be written.
        """
        with self._writing:
            with self._lock:  # not while files are written: acknowledgements would wait for the disk
                if not self._changed:
                    return
                clients = list(self._clients.values())
                own = _own_positions(clients, self._offsets)
                text = _own_text(own, self._written, self._begin, snapshot=self._snapshot)
                self._changed = False
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
                _replace(self._folder / OWN, text)
                _replace(self._folder / META, meta_text(self._destination, clients))
                self._written = own
            except BaseException:
                self._changed = True
                raise

    def _load(self) -> None:
        path = self._folder / META
        try:
            self._clients = {client.client_id: client for client in read_meta(path.read_text("utf-8"))}
        except FileNotFoundError:
            return
        except OSError as error:
            raise OffsetError(f"{path} cannot be read: {error.strerror}") from error
        except (PositionsError, UnicodeDecodeError) as error:
            raise OffsetError(
                f"{path} is damaged: {error}. Restore it, or delete it: its clients then begin at "
                "canal.instance.master.* of instance.properties"
            ) from None
        own = self._folder / OWN
        try:
            text = own.read_text("utf-8")
            self._begin, self._offsets = _read_own(text, self._clients)
            self._written = _own_positions(self._clients.values(), self._offsets)
            self._snapshot = bool(json.loads(text).get("snapshot"))
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return  # meta.dat alone is enough


def _oldest(clients: list[ClientPosition]) -> ClientPosition:
    """The client whose position comes first; places in files are compared only if they are of one server."""

    def place(client: ClientPosition) -> tuple[int, int]:
        assert client.position is not None
        return file_number(client.position.file) or 0, client.position.pos

    def time(client: ClientPosition) -> int:
        assert client.position is not None
        return client.position.ts_ms

    servers = {client.position.server_id for client in clients if client.position is not None}
    return min(clients, key=place if len(servers) == 1 else time)


def _own_positions(clients: Iterable[ClientPosition], offsets: Mapping[int, SourceOffset]) -> dict[int, _Own]:
    """By the numbers of clients, their places and resume positions."""
    return {
        client.client_id: {**_place(client.position), "offset": offsets[client.client_id].to_json()}
        for client in clients
        if client.position is not None and client.client_id in offsets
    }


def _own_text(own: Mapping[int, _Own], before: Mapping[int, _Own], begin: Resumption | None, *, snapshot: bool) -> str:
    found = {number: {**one, "before": before.get(number)} for number, one in own.items()}
    head = {"begin": None} if begin is None else {"begin": begin.offset.to_json(), "since_ms": begin.since_ms}
    begun = {"snapshot": True} if snapshot else {}
    return json.dumps({**head, **begun, "clients": found}, indent=1) + "\n"


def _read_own(text: str, clients: dict[int, ClientPosition]) -> tuple[Resumption | None, dict[int, SourceOffset]]:
    stored = json.loads(text)
    begin = None
    if stored["begin"] is not None:
        begin = Resumption(SourceOffset.from_json(stored["begin"]), since_ms=int(stored.get("since_ms", 0)))
    offsets = {}
    for number, own in stored["clients"].items():
        client = clients.get(int(number))
        position = None if client is None else client.position
        for one in (own, own.get("before")):
            if position is not None and one is not None and _place(position).items() <= one.items():
                offsets[int(number)] = SourceOffset.from_json(one["offset"])
                break
    return begin, offsets


def _place(position: CanalPosition) -> dict[str, str | int]:
    return {"file": position.file, "pos": position.pos, "ts_ms": position.ts_ms}


def _replace(path: Path, text: str) -> None:
    new = path.with_suffix(path.suffix + ".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
