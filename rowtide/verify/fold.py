"""The rows of a source table and the last record of each key in its topic, in a file of SQLite.

Memory is bounded: it holds only the records since the last write, and the states of watched keys.
"""

import itertools
import json
import sqlite3
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from rowtide.connector.records.canonical import UNKNOWN, value_text
from rowtide.verify.errors import Undecided
from rowtide.verify.positions import RecordPlace

Row = Mapping[str, str]
"""The canonical texts of a row, by column."""

_BATCH = 2_000
_KEPT_PLACES = 3
_LAST = 1 << 62
"""After all numbers of rows."""
_TABLES = """
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
CREATE TABLE chosen (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE topic (key TEXT PRIMARY KEY, raw BLOB, layout INTEGER, row TEXT, places TEXT) WITHOUT ROWID;
CREATE INDEX topic_raw ON topic (raw);
"""
_SOURCE = """
CREATE TABLE IF NOT EXISTS {}source (
    key TEXT PRIMARY KEY, layout INTEGER, row TEXT, copies INTEGER, number INTEGER
) WITHOUT ROWID;
"""
_KEPT = """
PRAGMA kept.locking_mode = EXCLUSIVE;
PRAGMA kept.journal_mode = WAL;
PRAGMA kept.synchronous = NORMAL;
CREATE TABLE IF NOT EXISTS kept.layouts (number INTEGER PRIMARY KEY, names TEXT);
CREATE TABLE IF NOT EXISTS kept.reading (number INTEGER PRIMARY KEY CHECK (number = 1), text TEXT);
"""


class FoldState(NamedTuple):
    """The state of a key in a topic after a record.

    Attributes:
        row: the row; ``None`` after a deletion, and before the first record.
        places: the places of the last records of the key, the newest last.
    """

    row: Row | None
    places: tuple[RecordPlace, ...]


class Record(NamedTuple):
    """A record of the topic.

    Attributes:
        key: the canonical texts of its key; ``None`` for a tombstone, only the bytes of whose key are known.
        raw: the bytes of its key.
        row: the row after the change; ``None`` if it is deleted.
        place: the place of the record.
    """

    key: tuple[str, ...] | None
    raw: bytes
    row: Row | None
    place: RecordPlace


class KeyRange(NamedTuple):
    """Keys that differ, one after the other in the order in which the source was read, with few equal ones in between.

    Attributes:
        first: the first key; ``None`` for keys that only the topic has, which have no such order.
        last: the last one.
        kinds: how many keys there are of each kind of difference.
    """

    first: tuple[str, ...] | None
    last: tuple[str, ...] | None
    kinds: Mapping[str, int]


class _Entry(NamedTuple):
    raw: bytes
    layout: int | None
    row: str | None
    places: str


class KeyedFold:
    """The rows of a table whose keys identify them.

    Args:
        path: the file, which does not exist yet.
        kept: another file, which keeps the rows of the source when they are stored with :meth:`keep`.

    Attributes:
        completed: the columns whose values were taken from an earlier record, because the binlog omits them.
    """

    def __init__(self, path: Path, kept: Path | None = None) -> None:
        self.completed: set[str] = set()
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(_TABLES)
        self._layouts: dict[tuple[str, ...], int] = {}
        self._names: list[tuple[str, ...]] = []
        self._kept = kept
        try:
            if kept is not None:
                self._open_kept(kept)
            self._database.executescript(_SOURCE.format("" if kept is None else "kept.") + "BEGIN")
        except BaseException:
            self.close()
            raise
        self._pending: dict[str, _Entry] = {}
        self._raw: dict[bytes, str] = {}
        self._watched: dict[str, list[FoldState]] = {}
        self._number: int | None = None  # of the last row of the source

    def _open_kept(self, path: Path) -> None:
        self._database.execute("ATTACH ? AS kept", [str(path)])
        self._database.executescript(_KEPT)
        ((found,),) = self._database.execute("PRAGMA kept.quick_check(1)")
        if found != "ok":
            raise sqlite3.DatabaseError(found)
        for number, names in self._database.execute("SELECT number, names FROM kept.layouts ORDER BY number"):
            self._layouts[tuple(json.loads(names))] = number
        self._names = list(self._layouts)

    def close(self) -> None:
        """Close the file. It keeps the stored rows, without later ones."""
        self._database.close()

    @property
    def reading(self) -> str | None:
        """The text stored with the rows of the source."""
        return next((text for (text,) in self._database.execute("SELECT text FROM kept.reading")), None)

    def keep(self, text: str) -> None:
        """Store the rows of the source so far, with a text."""
        layouts = ((number, _text(names)) for number, names in enumerate(self._names))
        self._database.executemany("INSERT OR IGNORE INTO kept.layouts VALUES (?, ?)", layouts)
        self._database.execute("INSERT OR REPLACE INTO kept.reading VALUES (1, ?)", [text])
        self._database.execute("COMMIT")
        self._database.execute("BEGIN")

    def forget(self) -> None:
        """Delete the stored rows of the source, and the text."""
        self._database.execute("DELETE FROM source")
        self._database.execute("DELETE FROM kept.reading")
        self._number = None

    def add_source(self, rows: Iterable[tuple[tuple[str, ...], Row]]) -> int:
        """Add rows of the source, and return their number. A later row of the same key replaces an earlier one."""
        if self._number is None:
            ((self._number,),) = self._database.execute("SELECT coalesce(max(number), 0) FROM source")
        made = [(_text(key), *self._packed(row), number) for number, (key, row) in enumerate(rows, self._number + 1)]
        self._number += len(made)
        self._database.executemany(
            "INSERT INTO source VALUES (?, ?, ?, 1, ?) ON CONFLICT (key) DO UPDATE SET layout = excluded.layout, "
            "row = excluded.row, copies = copies + 1",
            made,
        )
        return len(made)

    def some_rows(self, number: int) -> dict[tuple[str, ...], Row | None]:
        """Return up to that many rows of the source by key, the first and the last ones in the order of their texts."""
        part = "SELECT * FROM (SELECT key, layout, row FROM source ORDER BY key{} LIMIT ?)"
        found = self._database.execute(f"{part.format('')} UNION {part.format(' DESC')}", [number // 2] * 2)
        return {tuple(json.loads(key)): self._unpacked(layout, row) for key, layout, row in found}

    def doubled(self, *, chosen: bool = False) -> Iterator[tuple[tuple[str, ...], Row, int]]:
        """Yield the keys that were added to the source more than once, with a row and the count.

        Args:
            chosen: whether to consider only the chosen keys.
        """
        only = " AND key IN (SELECT key FROM chosen)" if chosen else ""
        found = self._database.cursor().execute(f"SELECT key, layout, row, copies FROM source WHERE copies > 1{only}")
        for key, layout, row, copies in found:
            yield tuple(json.loads(key)), self._unpacked(layout, row) or {}, copies

    def choose(self, keys: Iterable[tuple[str, ...]]) -> None:
        """Choose keys. :meth:`unlike` then yields those of them that differ."""
        self._database.executemany("INSERT OR IGNORE INTO chosen VALUES (?)", ([_text(key)] for key in keys))

    def state(self, key: tuple[str, ...]) -> FoldState:
        """Return the current state of a key in the topic."""
        entry = self._entry(_text(key))
        return FoldState(None, ()) if entry is None else self._state(entry)

    def add(self, record: Record) -> None:
        """Add a record of the topic. The records of a key must be added in their order.

        Raises:
            Undecided: the key has records in several topics or partitions, which have no common order.
        """
        raw = blake2b(record.raw, digest_size=16).digest()
        key = self._raw_key(raw) if record.key is None else _text(record.key)
        if key is None:
            return  # a tombstone of a key without a record before it
        before = self._entry(key)
        places = [] if before is None else orjson.loads(before.places)
        other = RecordPlace(*places[-1]) if places else record.place
        if other.topic != record.place.topic:
            raise Undecided(
                "records of the same key are in several topics, because a transform chooses the topic by the row: "
                "these have no common order, and each topic may keep a row that moved to another one"
            )
        if other.partition != record.place.partition:
            raise Undecided(
                f"records of the same key are in several partitions of its topic, as after their number was raised: in "
                f"partition {other.partition} at offset {other.offset}, and in partition {record.place.partition} at "
                f"offset {record.place.offset}. These have no common order: write the table with a snapshot to an "
                "empty topic, which keeps its number of partitions"
            )
        row = record.row
        if row is not None and before is not None and UNKNOWN in row.values():
            self.completed.update(name for name, text in row.items() if text == UNKNOWN)
            row = _completed(row, self._unpacked(before.layout, before.row))
        if record.key is not None or before is None or before.row is not None:
            places = [*places, record.place.as_list()][-_KEPT_PLACES:]
        layout, text = (None, None) if row is None else self._packed(row)
        self._pending[key] = _Entry(raw, layout, text, _text(places))
        self._raw[raw] = key
        if key in self._watched:
            self._watched[key].append(self._state(self._pending[key]))
        if len(self._pending) >= _BATCH:
            self._write()

    def is_live(self, raw: bytes, mark: str) -> bool:
        """Return whether the key with these bytes has a row that its column ``mark`` does not mark as deleted."""
        key = self._raw_key(blake2b(raw, digest_size=16).digest())
        row = None if key is None else self.state(tuple(json.loads(key))).row
        return row is not None and row[mark] != value_text(True)

    def truncate(self, place: RecordPlace) -> None:
        """Delete all rows, as a TRUNCATE record requires."""
        self._write()
        more = json.dumps([place.as_list()])
        self._database.execute("UPDATE topic SET row = NULL, layout = NULL, places = ?", [more])
        for states in self._watched.values():
            states.append(FoldState(None, (place,)))

    def watch(self, keys: Collection[tuple[str, ...]]) -> None:
        """Keep all states of these keys from now on, and stop watching earlier ones."""
        self._write()
        self._watched = {}
        for key in map(_text, keys):
            entry = self._entry(key)
            self._watched[key] = [FoldState(None, ()) if entry is None else self._state(entry)]

    def states(self, key: tuple[str, ...]) -> Sequence[FoldState]:
        """Return the states of a watched key, from its state when the watch began."""
        return self._watched[_text(key)]

    def counts(self) -> tuple[int, int]:
        """Return the rows of the source, and those of the topic."""
        self._write()
        ((source,),) = self._database.execute("SELECT count(*) FROM source")
        ((topic,),) = self._database.execute("SELECT count(*) FROM topic WHERE row IS NOT NULL")
        return source, topic

    def unlike(
        self, *, extra: bool = True, chosen: bool = False
    ) -> Iterator[tuple[tuple[str, ...], Row | None, Row | None]]:
        """Yield each key whose texts currently differ once, with the rows of the source and of the topic.

        Records may be added while the keys are yielded.

        Args:
            extra: whether to include rows that only the topic has.
            chosen: whether to consider only the chosen keys.
        """
        self._write()
        only = " AND {}.key IN (SELECT key FROM chosen)" if chosen else ""
        self._database.execute("CREATE TABLE unlike (key TEXT, layout INTEGER, row TEXT, there INTEGER, other TEXT)")
        self._database.execute(
            "INSERT INTO unlike SELECT s.key, s.layout, s.row, t.layout, t.row FROM source s LEFT JOIN topic t "
            f"ON s.key = t.key WHERE (t.row IS NOT s.row OR t.layout IS NOT s.layout){only.format('s')}"
        )
        if extra:
            self._database.execute(
                "INSERT INTO unlike SELECT t.key, NULL, NULL, t.layout, t.row FROM topic t LEFT JOIN source s "
                f"ON s.key = t.key WHERE s.key IS NULL AND t.row IS NOT NULL{only.format('t')}"
            )
        found = self._database.cursor().execute("SELECT key, layout, row, there, other FROM unlike ORDER BY rowid")
        for key, layout, row, there, other in found:
            yield tuple(json.loads(key)), self._unpacked(layout, row), self._unpacked(there, other)

    def ranges(self, keys: Iterable[tuple[str, ...]], most: int) -> list[KeyRange]:
        """Return the ranges of keys that differ, in the order in which the source was read.

        Args:
            keys: the keys, of which few are in memory at a time.
            most: how many ranges there may be, besides the one of keys that the source does not have.
        """
        database = self._database
        self._write()
        database.execute("CREATE TABLE rest (number INTEGER, kind TEXT, key TEXT)")
        database.executemany(
            "INSERT INTO rest SELECT s.number, CASE WHEN s.key IS NULL THEN 'extra' WHEN t.row IS NULL THEN 'lost' "
            "ELSE 'stale' END, k.key FROM (SELECT ? AS key) k "
            "LEFT JOIN source s ON s.key = k.key LEFT JOIN topic t ON t.key = k.key",
            ([_text(key)] for key in keys),
        )
        gaps = database.execute(
            "SELECT number FROM (SELECT number, number - lag(number) OVER (ORDER BY number) AS gap FROM rest "
            "WHERE number IS NOT NULL) WHERE gap > 1 ORDER BY gap DESC LIMIT ?",
            [most - 1],
        )
        bounds = [0, *sorted(number for (number,) in gaps), _LAST]
        found = []
        for first, end in itertools.pairwise(bounds):
            within = "number >= ? AND number < ?"
            kinds = self._kinds(within, [first, end])
            if kinds:
                ends = "SELECT key FROM rest WHERE number = (SELECT {}(number) FROM rest WHERE " + within + ")"
                ((low,),), ((high,),) = (database.execute(ends.format(one), [first, end]) for one in ("min", "max"))
                found.append(KeyRange(tuple(json.loads(low)), tuple(json.loads(high)), kinds))
        if only := self._kinds("number IS NULL", []):
            found.append(KeyRange(None, None, only))
        return found

    def _kinds(self, where: str, values: Sequence[int]) -> dict[str, int]:
        query = f"SELECT kind, count(*) FROM rest WHERE {where} GROUP BY kind ORDER BY kind"
        return dict(self._database.execute(query, values).fetchall())

    def _entry(self, key: str) -> _Entry | None:
        known = self._pending.get(key)
        if known is None:
            found = self._database.execute("SELECT raw, layout, row, places FROM topic WHERE key = ?", [key])
            known = next((_Entry(*values) for values in found), None)
        return known

    def _raw_key(self, raw: bytes) -> str | None:
        known = self._raw.get(raw)
        if known is None:
            found = self._database.execute("SELECT key FROM topic WHERE raw = ?", [raw])
            known = next((str(key) for (key,) in found), None)
        return known

    def _write(self) -> None:
        made = ((key, *entry) for key, entry in self._pending.items())
        self._database.executemany("INSERT OR REPLACE INTO topic VALUES (?, ?, ?, ?, ?)", made)
        self._pending.clear()
        self._raw.clear()

    def _packed(self, row: Row) -> tuple[int, str]:
        names = tuple(row)
        layout = self._layouts.get(names)
        if layout is None:
            layout = self._layouts[names] = len(self._names)
            self._names.append(names)
        return layout, _text(tuple(row.values()))

    def _unpacked(self, layout: int | None, row: str | None) -> Row | None:
        if layout is None or row is None:
            return None
        return dict(zip(self._names[layout], json.loads(row), strict=True))

    def _state(self, entry: _Entry) -> FoldState:
        places = tuple(RecordPlace(*values) for values in json.loads(entry.places))
        return FoldState(self._unpacked(entry.layout, entry.row), places)


class CountedFold:
    """The rows of a table without a key, each with its count in the source minus that in the topic.

    Args:
        path: the file, which does not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self._database = sqlite3.connect(path, isolation_level=None)
        self._database.executescript(
            "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;"
            "CREATE TABLE rows (row TEXT PRIMARY KEY, n INTEGER) WITHOUT ROWID; BEGIN"
        )
        self._pending: dict[str, int] = {}

    def close(self) -> None:
        """Close the file."""
        self._database.close()

    def add(self, row: Row, number: int) -> None:
        """Add copies of a row of the source; a negative number for those of the topic."""
        text = _text(dict(row))
        self._pending[text] = self._pending.get(text, 0) + number
        if len(self._pending) >= _BATCH:
            self._write()

    def clear(self) -> None:
        """Forget all rows."""
        self._pending.clear()
        self._database.execute("DELETE FROM rows")

    def is_equal(self) -> bool:
        """Return whether both sides have the same rows."""
        self._write()
        return next(self._database.execute("SELECT 1 FROM rows LIMIT 1"), None) is None

    def unlike(self) -> Iterator[tuple[Row, int]]:
        """Yield the rows whose counts differ between the sides, and the additional copies in the source."""
        self._write()
        for text, number in self._database.execute("SELECT row, n FROM rows ORDER BY n DESC, row"):
            yield json.loads(text), number

    def _write(self) -> None:
        self._database.executemany(
            "INSERT INTO rows VALUES (?, ?) ON CONFLICT (row) DO UPDATE SET n = n + excluded.n", self._pending.items()
        )
        self._database.executemany("DELETE FROM rows WHERE row = ? AND n = 0", [[row] for row in self._pending])
        self._pending.clear()


def _completed(row: Row, before: Row | None) -> Row:
    """Return a row with the values of the row before it, where the binlog omits them."""
    before = before or {}
    return {name: before.get(name, UNKNOWN) if text == UNKNOWN else text for name, text in row.items()}


def _text(texts: Sequence[Any] | Mapping[str, str]) -> str:
    try:
        return orjson.dumps(texts).decode()
    except TypeError:  # half of a surrogate pair, which is not UTF-8
        return json.dumps(texts)
