"""A change of a row as Python values, as ``rowtide.Engine`` yields it."""

import datetime as dt
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

from rowtide.connector.records.typed_rows import typed_row
from rowtide.schema_history.model import Table

T = TypeVar("T")

Op = Literal["r", "c", "u", "d", "t"]
"""Read by a snapshot, created, updated, deleted; table truncated."""


class SourcePosition(NamedTuple):
    """The position of an event in the binlog; for rows of a snapshot, the position of the snapshot.

    Attributes:
        file: binlog file.
        pos: start of the event in it, in bytes.
        gtid: of the transaction; ``None`` without GTIDs, and in a snapshot.
        server_id: of the server that executed the change first; 0 in a snapshot.
        thread: the session's id, if the binlog has it.
        query: the statement, with ``include.query``.
        ts_us: when the source changed or read the rows, µs since the epoch.
        read_ns: when the connector processed the event, ns since the epoch.
        snapshot: the snapshot's marker (``first``, ``true``, ``last`` …); ``None`` for changes of the binlog.
        ordinal: for an event without its own position, such as one in a compressed transaction, its number among
            the events that share ``pos``; otherwise 0.
        derived: the cause of a change that the binlog does not have (``rowtide.cascaded.changes=derive``), such as
            ``ON DELETE CASCADE of shop.orders``; ``None`` for all others.
    """

    file: str
    pos: int
    gtid: str | None = None
    server_id: int = 0
    thread: int | None = None
    query: str | None = None
    ts_us: int = 0
    read_ns: int = 0
    snapshot: str | None = None
    ordinal: int = 0
    derived: str | None = None


class TransactionOrder(NamedTuple):
    """A change's place in its transaction (``provide.transaction.metadata=true``).

    Attributes:
        id: the transaction's id: its GTID, or ``file=…,pos=…``.
        total_order: the change's number among all changes of the transaction, from 1.
        data_collection_order: its number among those of its table, from 1.
    """

    id: str
    total_order: int
    data_collection_order: int


class Geometry(NamedTuple):
    """A spatial value.

    Attributes:
        wkb: well-known binary.
        srid: spatial reference system, 0 if there is none.
    """

    wkb: bytes
    srid: int


_CHANGE_BYTES, _VALUE_BYTES = 200, 48
"""Python's overhead of a change, and of each value: small rows take fifty times their size in the binlog."""


class JsonText(str):
    """The text of a JSON document; :class:`Row` parses it when the column is read."""

    __slots__ = ()

    def document(self) -> Any:
        """Return the document; the text itself if it is not JSON, as MariaDB allows without its CHECK."""
        try:
            return json.loads(self)
        except ValueError:
            return str(self)


class Layout:
    """The names of a table's columns in rows and keys, shared by all changes of one structure.

    Args:
        table: the structure.
        topic: the Kafka topic of the table.
        names: of the columns in ``before`` and ``after``.
        key_names: of the columns of the key; none for a table without one.
        masked: the columns in which a setting gives different values the same form.

    Attributes:
        image_bytes: the approximate memory of a change with one row image, without the bytes of its values.
    """

    __slots__ = ("image_bytes", "key_names", "key_places", "masked", "names", "places", "table", "topic")

    def __init__(
        self, table: Table, topic: str, names: Sequence[str], key_names: Sequence[str], masked: Sequence[str] = ()
    ) -> None:
        self.table = table
        self.masked = tuple(masked)
        self.topic = topic
        self.names = tuple(names)
        self.places = {name: place for place, name in enumerate(names)}
        self.key_names = tuple(key_names)
        self.key_places = {name: place for place, name in enumerate(key_names)}
        self.image_bytes = _CHANGE_BYTES + _VALUE_BYTES * len(self.names)


class Row(Mapping[str, Any]):
    """The columns of a row or of a key by name, in the table's order; read-only.

    Values have these types: ``int``, ``float``, ``decimal.Decimal``, ``str``, ``bytes``, ``bool`` (``BIT(1)``),
    ``datetime.date``, ``datetime.datetime`` (naive for DATETIME, in UTC for TIMESTAMP), ``datetime.timedelta`` (TIME),
    the parsed document (MySQL's JSON; MariaDB's is a ``str``), :class:`Geometry`, ``list[float]`` (VECTOR), ``None``
    for NULL. A date that Python's calendar lacks (``0000-00-00``, ``2024-02-00``) is MySQL's text (``str``). A
    column that the binlog omits is :data:`~rowtide.UNAVAILABLE`. The JSON document ``null`` is ``None``, too:
    :meth:`json_text` distinguishes it (``"null"``) from NULL (``None``).
    """

    __slots__ = ("_places", "_values")

    def __init__(self, places: Mapping[str, int], values: tuple[Any, ...]) -> None:
        self._places = places
        self._values = values

    def __getitem__(self, name: str) -> Any:
        value = self._values[self._places[name]]
        return value.document() if value.__class__ is JsonText else value

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __repr__(self) -> str:
        return repr(dict(self))

    def json_text(self, name: str) -> str | None:
        """Return the text of a JSON column, in which numbers have all their digits; ``None`` for NULL.

        Raises:
            KeyError: the column does not exist.
            TypeError: it is not a JSON column.
        """
        value = self._values[self._places[name]]
        if value is None:
            return None
        if value.__class__ is not JsonText:
            raise TypeError(f"column {name} is not JSON")
        return str(value)


class Change:
    """A change of one row, or the truncation of a table.

    Attributes:
        op: ``r`` (read by a snapshot), ``c`` (created), ``u`` (updated), ``d`` (deleted), or ``t`` (the table was
            truncated; only with ``skipped.operations=none``). An update that changes the key is a ``d`` of the old key
            and a ``c`` of the new one, as in Debezium.
        position: its position in the binlog, with GTID and times.
        row: its row number within the event, from 0.
    """

    __slots__ = ("_after", "_before", "_debezium", "_key", "_layout", "_transaction", "op", "position", "row")

    def __init__(
        self,
        op: Op,
        layout: Layout,
        key: tuple[Any, ...],
        before: tuple[Any, ...] | None,
        after: tuple[Any, ...] | None,
        position: SourcePosition,
        row: int,
        debezium: "DebeziumMessage",
        transaction: str | None = None,
    ) -> None:
        self.op = op
        self.position = position
        self.row = row
        self._transaction = transaction
        self._layout = layout
        self._key = key
        self._before = before
        self._after = after
        self._debezium = debezium

    @property
    def database(self) -> str:
        """The table's database."""
        return self._layout.table.id.database

    @property
    def table(self) -> str:
        """The table's name, without its database."""
        return self._layout.table.id.table

    @property
    def topic(self) -> str:
        """The Kafka topic of Debezium's record of this change."""
        return self._layout.topic

    @property
    def schema(self) -> Table:
        """The structure of the table at this change: its columns with their MySQL types, keys and more."""
        return self._layout.table

    @property
    def key(self) -> Row | None:
        """The key: the primary key, a unique key, or ``message.key.columns``; ``None`` if the table has none."""
        return Row(self._layout.key_places, self._key) if self._key else None

    @property
    def before(self) -> Row | None:
        """The row before the change; ``None`` for ``c``, ``r`` and ``t``."""
        return None if self._before is None else Row(self._layout.places, self._before)

    @property
    def after(self) -> Row | None:
        """The row after the change; ``None`` for ``d`` and ``t``."""
        return None if self._after is None else Row(self._layout.places, self._after)

    def before_as(self, cls: type[T]) -> T | None:
        """Return the row before the change as an object of a class; see :meth:`after_as`."""
        before = self.before
        return None if before is None else typed_row(cls, before, str(self.schema.id))

    def after_as(self, cls: type[T]) -> T | None:
        """Return the row after the change as an object of a class; ``None`` for ``d`` and ``t``.

        Args:
            cls: a dataclass or a pydantic model with a field for each column that is needed, such as those that
                :func:`rowtide.models` writes. A field whose column has another name gives it in its metadata
                (``field(metadata={"column": "class"})``) or as its alias. Columns without a field are ignored.

        Raises:
            EngineTypeError: the class is neither.
            RowTypeError: the row lacks the column of a field without a default, or has a value that the field does not
                accept, such as NULL for ``int``. A date that Python lacks becomes ``None`` if the field accepts
                ``None`` but not ``str``.
        """
        after = self.after
        return None if after is None else typed_row(cls, after, str(self.schema.id))

    @property
    def transaction(self) -> TransactionOrder | None:
        """Its place in its transaction, with ``provide.transaction.metadata=true``; otherwise ``None``."""
        if self._transaction is None:
            return None
        return TransactionOrder(**json.loads(f"{{{self._transaction}}}")["transaction"])

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns in ``before`` and ``after``, in order."""
        return self._layout.names

    @property
    def masked_columns(self) -> tuple[str, ...]:
        """The names of the columns that a mask, a truncation or a short hash gives equal values in different rows."""
        return self._layout.masked

    @property
    def image(self) -> tuple[Any, ...] | None:
        """The values of the row after the change, or before a deletion, in the order of ``columns``."""
        return self._before if self._after is None else self._after

    @property
    def images(self) -> tuple[tuple[Any, ...] | None, tuple[Any, ...] | None]:
        """The values of the row before and after the change, in the order of ``columns``."""
        return self._before, self._after

    @property
    def gtid(self) -> str | None:
        """The transaction's GTID; ``None`` without GTIDs, and in a snapshot."""
        return self.position.gtid

    @property
    def timestamp(self) -> dt.datetime:
        """When the source changed the row, or a snapshot read it; in UTC."""
        return _EPOCH + dt.timedelta(microseconds=self.position.ts_us)

    @property
    def snapshot(self) -> bool:
        """Whether a snapshot read the row."""
        return self.position.snapshot is not None

    @property
    def transaction_text(self) -> str | None:
        """The ``transaction`` field of Debezium's envelope as JSON text, with its name."""
        return self._transaction

    def to_debezium(self) -> str:
        """Return the value of Debezium's record: the text of the envelope, as the configured converter writes it."""
        return self._debezium(self)[1].decode()

    def debezium_key(self) -> str | None:
        """Return the key of Debezium's record as JSON text; ``None`` if the table has none."""
        key = self._debezium(self)[0]
        return None if key is None else key.decode()

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle a change together with Debezium's record, because the maker of the record stays in this process."""
        try:
            made = _MadeMessage(self._debezium(self))
        except Exception as error:  # noqa: BLE001 - raised again when the record is asked for
            made = _MadeMessage(error)
        key, before, after = self._key, self._before, self._after
        return Change, (self.op, self._layout, key, before, after, self.position, self.row, made, self._transaction)

    def __repr__(self) -> str:
        parts = [f"{name}={row!r}" for name, row in (("before", self.before), ("after", self.after)) if row is not None]
        place = f"{self.position.file}:{self.position.pos}"
        return f"<Change {self.op} {self._layout.table.id} {' '.join(parts)} at {place}>"


DebeziumMessage = Callable[[Change], tuple[bytes | None, bytes]]
"""Makes the key and the value of Debezium's record of a change."""


class _MadeMessage(NamedTuple):
    """The key and the value of Debezium's record of a pickled change, or the reason why there is none."""

    made: tuple[bytes | None, bytes] | Exception

    def __call__(self, _change: Change) -> tuple[bytes | None, bytes]:
        if isinstance(self.made, Exception):
            raise self.made
        return self.made


_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
