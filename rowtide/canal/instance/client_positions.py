"""The positions of a destination's clients, in Canal's form and in rowtide's own.

Canal's form has the place of the last event that a client has acknowledged. The other form has the resume position
after it (GTIDs, the server's identity), and counts only while Canal's has the same place: a Canal that runs in between
changes only its own form. It also has the positions before the last write, which ``meta.dat`` still has after a crash
in between. If Canal has read further, the schema history lacks the statements that it has read, and is abandoned.
"""

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from threading import Lock

from rowtide.canal.instance.positions import CanalPosition, ClientPosition, Master
from rowtide.canal.instance.storage import Storage, StoredClients
from rowtide.canal.server.stored_entry import LogPosition
from rowtide.connector.errors import OffsetError
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.position.binlog_position import file_number

log = logging.getLogger(__name__)

_FIRST_POS = 4
"""The position of the first event of a binlog file."""
_Own = dict[str, str | int | None]
"""The place and the resume position of a client; the latter is ``None`` if the place comes from Canal."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """The position at which an instance resumes.

    Attributes:
        offset: the resume position.
        done: the event at which reading begins and which clients have acknowledged already; ``None`` if reading begins
            after it.
        since_ms: the time of the first entry that is wanted, in milliseconds since the epoch; 0 for all.
    """

    offset: SourceOffset
    done: CanalPosition | None = None
    since_ms: int = 0


class ClientPositions:
    """The positions of the clients of one destination.

    Methods that write raise ``OSError`` if the positions cannot be stored.

    Args:
        storage: of the positions.
        master: the server.

    Raises:
        OffsetError: what is stored is damaged, or cannot be read; the message says what to do.
    """

    def __init__(self, storage: Storage, master: Master) -> None:
        self._storage = storage
        self._master = master
        self._clients: dict[int, ClientPosition] = {}
        self._offsets: dict[int, SourceOffset] = {}
        self._left: tuple[ClientPosition, SourceOffset | None] | None = None
        self._begin: Resumption | None = None
        self._snapshot = False
        self._changed = False
        self._written: Mapping[int, _Own] = {}  # what both files have
        self._lock = Lock()
        self._writing = Lock()
        self._load()

    def begins(self, offset: SourceOffset, since_ms: int = 0) -> None:
        """Write the position at which the instance begins, for clients that have not acknowledged anything yet.

        Args:
            offset: the resume position.
            since_ms: the time of the first entry that is wanted, in milliseconds since the epoch; 0 for all.
        """
        with self._lock:
            self._begin, self._changed = Resumption(offset, since_ms=since_ms), True
        self.flush()

    def snapshot_begins(self) -> bool:
        """Write that an initial snapshot has begun, until something is acknowledged.

        Returns:
            Whether a snapshot had begun before.
        """
        with self._lock:
            before, self._snapshot, self._changed = self._snapshot, True, True
        self.flush()
        return before

    def subscribed(self, client_id: int, filter_: str) -> None:
        """Write the position of a new client, and its filter unless empty.

        A restart must not begin after this position.

        As in Canal, a new client has the position of the others, because all of them share one cursor.
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
        """Forget a client: reading no longer returns to its position.

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
        """Return the position of a client, otherwise the oldest of all clients; ``None`` if there is none."""
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
        assert oldest.position is not None
        return _resumption_after(oldest.position)

    def moved(self, client_id: int) -> bool:
        """Return whether a client has a position that rowtide has not written, because Canal has run in between."""
        with self._lock:
            client = self._clients.get(client_id)
            return client is not None and client.position is not None and client_id not in self._offsets

    def flush(self) -> None:
        """Write what has changed."""
        with self._writing:
            with self._lock:  # not while it is stored: acknowledgements would wait for the disk
                if not self._changed:
                    return
                clients = list(self._clients.values())
                own = _own_positions(clients, self._offsets)
                text = _own_text(own, self._written, self._begin, snapshot=self._snapshot)
                parse = self._parse(clients)
                self._changed = False
            try:
                self._storage.save(StoredClients(clients, text, parse))
                self._written = own
            except BaseException:
                self._changed = True
                raise

    def _parse(self, clients: list[ClientPosition]) -> tuple[Master, CanalPosition] | None:
        """Return the position at which reading would resume: all clients have acknowledged everything before it."""
        placed = [client for client in clients if client.position is not None]
        if self._begin is not None and len(placed) < max(len(clients), 1):
            begin = self._begin.offset
            place = begin.file, begin.pos, begin.server_id, (begin.ts_sec or 0) * 1000, begin.gtids or ""
            return self._master, CanalPosition(*place)
        if not placed:
            return None
        oldest = _oldest(placed)
        assert oldest.position is not None
        return oldest.master or self._master, oldest.position

    def _load(self) -> None:
        stored = self._storage.load()
        read: list[_Own] = []
        self._clients = {client.client_id: client for client in stored.clients}
        if stored.own is not None:
            try:
                self._begin, self._written, read = _read_own(stored.own, self._clients)
                self._offsets = _offsets(self._written)
                self._snapshot = bool(json.loads(stored.own).get("snapshot"))
            except (ValueError, LookupError, TypeError, AttributeError):
                self._begin, self._written, self._offsets = None, {}, {}  # Canal's form alone is enough
        if self._begin is not None:
            begin = self._begin.offset.file, self._begin.offset.pos
            for client in stored.clients:
                position = client.position
                if position is not None and (position.file, position.pos) == begin:  # it has acknowledged nothing
                    self._clients[client.client_id] = ClientPosition(client.client_id, client.filter)
        self._leave_history(read)
        placed = any(client.position is not None for client in stored.clients)
        if self._begin is None and stored.parse is not None and not placed:
            self._begin = _resumption_after(stored.parse[1])

    def _leave_history(self, read: Sequence[_Own]) -> None:
        """Abandon a schema history that lacks statements read by Canal: a client is at none of the written places.

        Args:
            read: the places that were written; a client before one of them was set back.
        """
        placed = [client for client in self._clients.values() if client.client_id not in self._written]
        if not any(client.position and not _reached(client.position, read) for client in placed):
            return
        try:
            self._storage.forget_history()
        except OSError as error:
            raise OffsetError(
                f"the schema history, which lacks what Canal has read, cannot be discarded: {error}"
            ) from error
        self._changed = True  # only once


def _resumption_after(position: CanalPosition) -> Resumption:
    """Return where reading resumes after a position in Canal's form.

    With GTIDs, the server omits the transactions of the set; after a fail-over, their positions are those of another
    server. Canal stores negative positions where MariaDB 11.4 omits them from events; reading then begins with the
    file, and what was acknowledged is sent again.
    """
    if position.pos < _FIRST_POS and not position.gtid:
        log.warning(
            "Canal has stored position %d of %s, which does not exist: reading begins with that file, and its changes "
            "are repeated. With MariaDB 11.4 and later, set binlog_legacy_event_pos=1 while Canal reads",
            position.pos,
            position.file,
        )
        return Resumption(SourceOffset(position.file, _FIRST_POS, ts_sec=position.ts_ms // 1000))
    offset = SourceOffset(position.file, position.pos, position.gtid or None, ts_sec=position.ts_ms // 1000)
    return Resumption(offset, None if position.gtid else position)


def _oldest(clients: list[ClientPosition]) -> ClientPosition:
    """Return the client whose position comes first. Places in files are compared only within one server."""

    def place(client: ClientPosition) -> tuple[int, int]:
        assert client.position is not None
        return file_number(client.position.file) or 0, client.position.pos

    def time(client: ClientPosition) -> int:
        assert client.position is not None
        return client.position.ts_ms

    servers = {client.position.server_id for client in clients if client.position is not None}
    return min(clients, key=place if len(servers) == 1 else time)


def _reached(position: CanalPosition, read: Sequence[_Own]) -> bool:
    """Return whether a position is at or before one of the places that were written."""

    def order(place: Mapping[str, object]) -> tuple[int, int]:
        return file_number(str(place["file"])) or 0, int(str(place["pos"]))

    here = _place(position)
    return any(order(here) <= order(one) and position.ts_ms <= int(str(one["ts_ms"])) for one in read)


def _own_positions(clients: Iterable[ClientPosition], offsets: Mapping[int, SourceOffset]) -> dict[int, _Own]:
    """Return the places and resume positions of clients, by their numbers."""
    return {
        client.client_id: {**_place(client.position), "offset": _json(offsets.get(client.client_id))}
        for client in clients
        if client.position is not None
    }


def _json(offset: SourceOffset | None) -> str | None:
    return None if offset is None else offset.to_json()


def _own_text(own: Mapping[int, _Own], before: Mapping[int, _Own], begin: Resumption | None, *, snapshot: bool) -> str:
    found = {number: {**one, "before": before.get(number)} for number, one in own.items()}
    head = {"begin": None} if begin is None else {"begin": begin.offset.to_json(), "since_ms": begin.since_ms}
    begun = {"snapshot": True} if snapshot else {}
    return json.dumps({**head, **begun, "clients": found}, indent=1) + "\n"


def _read_own(
    text: str, clients: Mapping[int, ClientPosition]
) -> tuple[Resumption | None, dict[int, _Own], list[_Own]]:
    """Return the start position, the records of the clients whose place is unchanged, and those of all clients."""
    stored = json.loads(text)
    begin = None
    if stored["begin"] is not None:
        begin = Resumption(SourceOffset.from_json(stored["begin"]), since_ms=int(stored.get("since_ms", 0)))
    found: dict[int, _Own] = {}
    for number, own in stored["clients"].items():
        client = clients.get(int(number))
        position = None if client is None else client.position
        for one in (own, own.get("before")):
            if position is not None and one is not None and _place(position).items() <= one.items():
                found[int(number)] = {**_place(position), "offset": one["offset"]}
                break
    return begin, found, list(stored["clients"].values())


def _offsets(written: Mapping[int, _Own]) -> dict[int, SourceOffset]:
    return {number: SourceOffset.from_json(str(own["offset"])) for number, own in written.items() if own["offset"]}


def _place(position: CanalPosition) -> dict[str, str | int]:
    return {"file": position.file, "pos": position.pos, "ts_ms": position.ts_ms}
