"""The compact form of a schema history: what its records up to one place come to, so that they need not be read again.

A summary is made of records, never of a running connector's structures: recovery from it, and from the records behind
it, does exactly what recovery from all records does. It stands beside the history and is no part of it; whoever does
not know it, or cannot use it, reads the history.

It may be used for a position only if every record in it belongs to the state there (`CoveredPositions`). It is lines of
JSON, compressed: what it is made of first, then the history of each table.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from hashlib import sha256
from typing import Any

from rowtide.schema_history.catalog.changes import ChangeKind
from rowtide.schema_history.compaction.covered_positions import CoveredPositions
from rowtide.schema_history.model import Database, TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.recovery.recover import IDENTITY, Recovery
from rowtide.schema_history.recovery.table_history import HistoryEntry, TableHistory
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.record import RecordedTable

FORM = 1
"""Of what is written here. Another one means another reading of records, or other fields: it is then not used."""


class UnusableSummary(ValueError):
    """A summary is damaged, of another form, or of another history; the message says which."""


@dataclass(frozen=True, slots=True)
class SummaryHeader:
    """What a summary was made of.

    Attributes:
        source: ``topic.prefix`` of the records.
        server: by which the statements were read.
        last: the place of the last record in it.
        digest: of that record's text, by which the history is known again.
        records: how many records are in it.
        frontier: their positions.
    """

    source: str
    server: Server
    last: int
    digest: str
    records: int
    frontier: CoveredPositions


def digest(text: str) -> str:
    """By which a record is known again."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def dump(origin: SummaryHeader, recovery: Recovery) -> bytes:
    """Write a summary."""
    databases: dict[Database, int] = {}
    journals = _ordered(recovery.journals.values())
    numbers = {id(journal): number for number, journal in enumerate(journals)}
    lines = [_journal_fields(journal, numbers, databases) for journal in journals]
    known = [databases.setdefault(database, len(databases)) for database in recovery.catalog.databases()]
    head = {
        "form": FORM,
        "source": origin.source,
        "server": _server_fields(origin.server),
        "last": origin.last,
        "digest": origin.digest,
        "records": origin.records,
        "frontier": [asdict(place) for place in origin.frontier.places],
        "databases": [astuple(database) for database in databases],
        "known": known,
        "variables": recovery.catalog.variables,
        "tables": [numbers[id(journal)] for journal in recovery.journals.values()],
        "done": b64encode(b"".join(recovery.done)).decode(),
    }
    pack = zlib.compressobj(1)
    packed = [pack.compress(_line(each)) for each in (head, *lines)]
    return b"".join((*packed, pack.flush()))


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


class Summary:
    """A summary that was read; its tables are read when they are asked for.

    Args:
        packed: as it was written.

    Raises:
        UnusableSummary: it is damaged, or of another form.

    Attributes:
        origin: what it was made of.
    """

    def __init__(self, packed: bytes) -> None:
        try:
            head, *self._lines = zlib.decompress(packed).splitlines()
            self._head = json.loads(head)
            self._form = self._head["form"]
            self.origin = SummaryHeader(
                self._head["source"],
                _server(self._head["server"]),
                self._head["last"],
                self._head["digest"],
                self._head["records"],
                CoveredPositions(BinlogPosition(**place) for place in self._head["frontier"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError, zlib.error) as error:
            raise UnusableSummary(f"it is damaged: {error!r}") from error
        if self._form != FORM:
            raise UnusableSummary(f"it has form {self._form}, and this is {FORM}")

    def recovery(self, position: BinlogPosition | None) -> Recovery:
        """What its records come to, to go on with.

        Raises:
            UnusableSummary: it is damaged.
        """
        try:
            return self._recovery(position)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise UnusableSummary(f"it is damaged: {error!r}") from error

    def _recovery(self, position: BinlogPosition | None) -> Recovery:
        head, recovery = self._head, Recovery(self.origin.server, position)
        databases = [Database(*fields) for fields in head["databases"]]
        for number in head["known"]:
            recovery.catalog.put_database(databases[number])
        recovery.catalog.variables.update(head["variables"])
        journals: list[TableHistory] = []
        for line in self._lines:
            journals.append(_journal(json.loads(line), journals, databases))
        for number in head["tables"]:
            recovery.put(journals[number])
        done = b64decode(head["done"], validate=True)
        recovery.done.update(done[at : at + IDENTITY] for at in range(0, len(done), IDENTITY))
        return recovery


def _ordered(journals: Iterable[TableHistory]) -> list[TableHistory]:
    """All journals, each behind those that it needs."""
    ordered: dict[int, TableHistory] = {}
    for journal in journals:
        waiting = [journal]
        while waiting:
            needs = [need for entry in waiting[-1].entries for need in entry.needs if id(need) not in ordered]
            if needs:
                waiting += needs
            else:
                done = waiting.pop()
                ordered.setdefault(id(done), done)
    return list(ordered.values())


def _journal_fields(journal: TableHistory, numbers: Mapping[int, int], databases: dict[Database, int]) -> list[Any]:
    entries = [list(_entry_fields(entry, numbers, databases)) for entry in journal.entries]
    return [astuple(journal.id), entries, _told_fields(journal.told)]


def _entry_fields(entry: HistoryEntry, numbers: Mapping[int, int], databases: dict[Database, int]) -> Iterator[Any]:
    """Its fields in their order; those at the end that are empty are left out."""
    fields: list[Any] = [
        entry.ddl,
        entry.database,
        [databases.setdefault(database, len(databases)) for database in entry.databases],
        [numbers[id(need)] for need in entry.needs],
        _told_fields(entry.told),
        entry.moved and [astuple(table_id) for table_id in entry.moved],
        entry.session,
    ]
    while not fields[-1] and len(fields) > 2:
        fields.pop()
    yield from fields


def _told_fields(told: RecordedTable | None) -> list[Any] | None:
    if told is None:
        return None
    previous = told.previous_id and astuple(told.previous_id)
    return [told.kind.value, astuple(told.id), previous, told.fields, told.comment]


def _journal(fields: list[Any], journals: list[TableHistory], databases: list[Database]) -> TableHistory:
    table_id, entries, told = fields
    made = tuple(_entry(entry, journals, databases) for entry in entries)
    return TableHistory(TableId(*table_id), made, _told(told))


def _entry(fields: list[Any], journals: list[TableHistory], databases: list[Database]) -> HistoryEntry:
    ddl, database, used, needs, told, moved, session = fields + [None] * (7 - len(fields))
    return HistoryEntry(
        ddl,
        database,
        tuple(databases[number] for number in used or ()),
        tuple(journals[number] for number in needs or ()),
        _told(told),
        (TableId(*moved[0]), TableId(*moved[1])) if moved else None,
        session,
    )


def _told(fields: list[Any] | None) -> RecordedTable | None:
    if fields is None:
        return None
    kind, table_id, previous, form, comment = fields
    return RecordedTable(ChangeKind(kind), TableId(*table_id), TableId(*previous) if previous else None, form, comment)


def _server_fields(server: Server) -> dict[str, Any]:
    return {**asdict(server), "flavor": server.flavor.value}


def _server(fields: dict[str, Any]) -> Server:
    return Server(**{**fields, "flavor": Flavor(fields["flavor"])})
