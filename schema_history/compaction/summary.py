"""The format of a summary: the combined effect of the records of a history up to some record.

A summary is built from records, never from a running connector's tables. Recovery from a summary and the records after
it has exactly the result of recovery from all records. A summary is stored next to the history and is optional: without
a usable one, the history is read from its first record.

A summary may be used for a position only if all its records belong to the state there (``CoveredPositions``)::

    zlib-compressed lines of JSON:  header
                                    history of one table
                                    history of one table
                                    ...
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, astuple, dataclass
from hashlib import sha256
from typing import Any

from rowtide.schema_history.catalog.changes import ChangeKind
from rowtide.schema_history.model import Database, TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition, PositionFilter, parse_gtids
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from rowtide.schema_history.recovery.recover import IDENTITY_BYTES, Recovery
from rowtide.schema_history.recovery.table_history import RecordedStructure, TableHistory, sources_first
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.history_record import RecordedTable
from rowtide.schema_history.store.json_fields import flag, json_object, number, optional_text, text


class CoveredPositions:
    """A set of positions, reduced to its latest ones: those for which no other one is known to be later.

    If all of these belong to the state at some position, then all positions that were ever added do.

    Args:
        positions: the first ones to add.
    """

    def __init__(self, positions: Iterable[BinlogPosition] = ()) -> None:
        self._latest: dict[BinlogPosition, GtidSet | MariadbGtidPosition | None] = {}
        for position in positions:
            self.add(position)

    @property
    def latest(self) -> tuple[BinlogPosition, ...]:
        """The positions that stand for all others."""
        return tuple(self._latest)

    def add(self, position: BinlogPosition) -> None:
        """Add a position.

        Raises:
            ValueError: its GTIDs or file name cannot be parsed.
        """
        if position in self._latest:
            return
        gtids = None if position.gtids is None else parse_gtids(position.gtids)
        if any(_is_implied_by(position, gtids, other, known) for other, known in self._latest.items()):
            return
        for other in [o for o, known in self._latest.items() if _is_implied_by(o, known, position, gtids)]:
            del self._latest[other]
        self._latest[position] = gtids

    def all_within(self, position: BinlogPosition) -> bool:
        """Return whether all positions that were added belong to the state at ``position``."""
        accepted = PositionFilter(position)
        return all(accepted.includes(each) for each in self._latest)


def _is_implied_by(
    position: BinlogPosition,
    gtids: GtidSet | MariadbGtidPosition | None,
    other: BinlogPosition,
    other_gtids: GtidSet | MariadbGtidPosition | None,
) -> bool:
    """Return whether every state that includes the other position also includes this one (``PositionFilter``)."""
    if isinstance(gtids, GtidSet) and isinstance(other_gtids, GtidSet):
        return gtids <= other_gtids and not other_gtids <= gtids
    if isinstance(gtids, MariadbGtidPosition) and isinstance(other_gtids, MariadbGtidPosition):
        return gtids <= other_gtids and not other_gtids <= gtids
    if gtids is not None or other_gtids is not None:
        return False
    return (
        (position.server_id, position.base_name) == (other.server_id, other.base_name)
        and position.ts_sec <= other.ts_sec
        and (position.file_number, position.pos, position.event, position.row)
        <= (other.file_number, other.pos, other.event, other.row)
    )


FORMAT = 3
"""Version of the format. Raise it when fields change, or when records are read differently: others are not used."""


_DAMAGED = (ValueError, KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError)


class UnusableSummary(ValueError):
    """A summary is damaged, has another format, or belongs to another history; the message says which."""


@dataclass(frozen=True, slots=True)
class SummaryHeader:
    """The source of a summary.

    Attributes:
        prefix: ``topic.prefix`` of the records.
        server: the server whose statements were parsed.
        last: location of the last record in the store.
        digest: digest of that record's text, to recognise the history.
        records: number of records.
        covered: positions of the records.
    """

    prefix: str
    server: Server
    last: int
    digest: str
    records: int
    covered: CoveredPositions


def digest(text: str) -> str:
    """Return the digest of a record's text."""
    return sha256(text.encode("utf-8", "surrogateescape")).hexdigest()


def dump_summary(header: SummaryHeader, recovery: Recovery) -> bytes:
    """Serialise a summary; tables and databases refer to each other by number."""
    databases: dict[Database, int] = {}
    histories = sources_first(recovery.histories.values())
    numbers = {id(history): number for number, history in enumerate(histories)}
    lines = [_table_history_fields(history, numbers, databases) for history in histories]
    current = [databases.setdefault(database, len(databases)) for database in recovery.databases.databases()]
    head = {
        "format": FORMAT,
        "prefix": header.prefix,
        "server": _server_fields(header.server),
        "last": header.last,
        "digest": header.digest,
        "records": header.records,
        "covered": [asdict(position) for position in header.covered.latest],
        "databases": [astuple(database) for database in databases],
        "current": current,
        "variables": recovery.databases.variables,
        "temporary": [(thread, *astuple(table)) for thread, table in recovery.databases.temporary],
        "tables": [numbers[id(history)] for history in recovery.histories.values()],
        "processed": b64encode(b"".join(recovery.processed)).decode(),
    }
    pack = zlib.compressobj(1)
    packed = [pack.compress(_line(each)) for each in (head, *lines)]
    return b"".join((*packed, pack.flush()))


def _line(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"


class Summary:
    """A summary whose header is parsed; ``restore`` parses the tables.

    Args:
        packed: the serialised summary.

    Raises:
        UnusableSummary: it is damaged, or has another format.

    Attributes:
        header: the data from which it was built.
    """

    def __init__(self, packed: bytes) -> None:
        try:
            head, *self._lines = zlib.decompress(packed).splitlines()
            self._head = json.loads(head)
            found = self._head.get("format")
            if found == FORMAT:
                self.header = SummaryHeader(
                    text(self._head["prefix"], "prefix"),
                    _server(self._head["server"]),
                    number(self._head["last"], "last"),
                    text(self._head["digest"], "digest"),
                    number(self._head["records"], "records"),
                    CoveredPositions(map(BinlogPosition.from_map, self._head["covered"])),
                )
        except (*_DAMAGED, zlib.error) as error:
            raise UnusableSummary(f"it is damaged: {error!r}") from error
        if found != FORMAT:
            raise UnusableSummary(f"it has format {found}, this version of rowtide writes format {FORMAT}")

    def restore(self, position: BinlogPosition | None) -> Recovery:
        """Return the recovery in the state after the summary's last record, to continue with the next one.

        Raises:
            UnusableSummary: the summary is damaged.
        """
        try:
            return self._restore(position)
        except _DAMAGED as error:
            raise UnusableSummary(f"it is damaged: {error!r}") from error

    def _restore(self, position: BinlogPosition | None) -> Recovery:
        head, recovery = self._head, Recovery(self.header.server, position)
        databases = [_database(*fields) for fields in head["databases"]]
        for place in head["current"]:
            recovery.databases.put_database(databases[place])
        for name, value in head["variables"].items():
            recovery.databases.variables[name] = text(value, "variables")
        hidden = ((number(thread, "thread"), _table_id(*table)) for thread, *table in head["temporary"])
        recovery.databases.temporary = dict.fromkeys(hidden)
        histories: list[TableHistory] = []
        for line in self._lines:
            histories.append(_table_history(json.loads(line), histories, databases))
        for place in head["tables"]:
            recovery.put(histories[place])
        processed = b64decode(head["processed"], validate=True)
        step = IDENTITY_BYTES
        recovery.processed.update(processed[at : at + step] for at in range(0, len(processed), step))
        return recovery


def _table_history_fields(
    history: TableHistory, numbers: Mapping[int, int], databases: dict[Database, int]
) -> list[Any]:
    entries = [list(_entry_fields(entry, numbers, databases)) for entry in history.entries]
    return [astuple(history.id), entries, _recorded_fields(history.recorded)]


def _entry_fields(
    entry: RecordedStructure, numbers: Mapping[int, int], databases: dict[Database, int]
) -> Iterator[Any]:
    """Yield the fields of an entry in their order, without the empty ones at the end."""
    fields: list[Any] = [
        entry.ddl,
        entry.database,
        [databases.setdefault(database, len(databases)) for database in entry.databases],
        [numbers[id(source)] for source in entry.sources],
        _recorded_fields(entry.recorded),
        entry.renamed and [astuple(table_id) for table_id in entry.renamed],
        entry.session,
    ]
    while not fields[-1] and len(fields) > 2:
        fields.pop()
    yield from fields


def _recorded_fields(recorded: RecordedTable | None) -> list[Any] | None:
    if recorded is None:
        return None
    previous = recorded.previous_id and astuple(recorded.previous_id)
    return [recorded.kind.value, astuple(recorded.id), previous, recorded.fields, recorded.comment]


def _table_history(fields: list[Any], histories: list[TableHistory], databases: list[Database]) -> TableHistory:
    table_id, entries, recorded = fields
    parsed = tuple(_entry(entry, histories, databases) for entry in entries)
    return TableHistory(_table_id(*table_id), parsed, _recorded(recorded))


def _entry(fields: list[Any], histories: list[TableHistory], databases: list[Database]) -> RecordedStructure:
    ddl, database, inherited, sources, recorded, renamed, session = fields + [None] * (7 - len(fields))
    return RecordedStructure(
        optional_text(ddl, "ddl"),
        text(database, "database"),
        tuple(databases[number] for number in inherited or ()),
        tuple(histories[number] for number in sources or ()),
        _recorded(recorded),
        (_table_id(*renamed[0]), _table_id(*renamed[1])) if renamed else None,
        None if session is None else json_object(session, "session"),
    )


def _recorded(fields: list[Any] | None) -> RecordedTable | None:
    if fields is None:
        return None
    name, table_id, previous, table, comment = fields
    kind = ChangeKind(name)
    if kind is not ChangeKind.DROP:
        json_object(table, "table")
    previous_id = _table_id(*previous) if previous else None
    return RecordedTable.of(kind, _table_id(*table_id), previous_id, table, comment)


def _table_id(database: Any, table: Any) -> TableId:
    return TableId(text(database, "database"), text(table, "table"))


def _database(name: Any, charset: Any, collation: Any, debezium_charset: Any) -> Database:
    charsets = text(charset, "charset"), text(collation, "collation")
    return Database(text(name, "name"), *charsets, optional_text(debezium_charset, "debezium_charset"))


def _server_fields(server: Server) -> dict[str, Any]:
    return {**asdict(server), "flavor": server.flavor.value}


def _server(fields: dict[str, Any]) -> Server:
    return Server(
        Flavor(fields["flavor"]),
        text(fields["version"], "version"),
        number(fields["lower_case_table_names"], "lower_case_table_names"),
        text(fields["collation"], "collation"),
        flag(fields["explicit_defaults_for_timestamp"], "explicit_defaults_for_timestamp"),
    )
