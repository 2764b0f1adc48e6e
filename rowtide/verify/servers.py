"""Compares a table on two servers, such as a source and its replica, while both are in use.

::

    source:  ─── rows ───── view ┤ end ├──────────────────────── view ───
    other:   ─────── rows ─────────────── has executed `end`, view ──────

A key with the same row on both servers is proved. The others may have been changed in between. They are read again:
from the source, then from the other server once it has executed all changes of the source, and once more from the
source. If the source has the same row both times, and the other server another one, they differ.
"""

import contextlib
import itertools
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from rowtide.connector.config import Configuration
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.rows.text_protocol_rows import Rows
from rowtide.connector.source.server_queries import TableGone
from rowtide.decoder.decoder import Decoder
from rowtide.schema_history.model import TableId
from rowtide.verify.comparison import RowDifference, difference, difference_of_copies, is_same
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import CountedFold, FoldState, KeyedFold, Record, Row
from rowtide.verify.pace import Pace
from rowtide.verify.parallel import in_parallel
from rowtide.verify.positions import RecordPlace
from rowtide.verify.replication import Replication
from rowtide.verify.run import ERRORS, listed_tables, missing_tables, reason_of
from rowtide.verify.source import SourceTable, TableSource, keys_condition
from rowtide.verify.texts import Key, Texts
from rowtide.verify.verification import Result, VerifyOptions

FORM: Mapping[str, str] = {
    **{f"{side}.converter": "org.apache.kafka.connect.json.JsonConverter" for side in ("key", "value")},
    **{f"{side}.converter.schemas.enable": "true" for side in ("key", "value")},
    **{f"{side}.converter.decimal.format": "BASE64" for side in ("key", "value")},
    **{f"{side}.converter.replace.null.with.default": "false" for side in ("key", "value")},
    "rowtide.values": "exact",
    "rowtide.bool.handling.mode": "int16",
    "zero.date.handling.mode": "null",
    "enable.time.adjuster": "false",
    "event.converting.failure.handling.mode": "fail",
    "bigint.unsigned.handling.mode": "precise",
    "decimal.handling.mode": "precise",
    "time.precision.mode": "adaptive_time_microseconds",
    "binary.handling.mode": "bytes",
    "transforms": "",
}
"""The properties of both configurations that rows are compared with: every value is exact, whatever they set."""

_ROUNDS = 5
"""How often rows are read again before a difference counts: a row that goes back and forth could look so by chance."""
_COPIES = 3
"""How often a table without a key is read before a difference counts."""
_KEYS = 500
"""Keys that are read again together."""
_PAUSE_S = 1.0
"""The time between two rounds if it is not known how far the other server has replicated."""
_NOWHERE = RecordPlace(0, 0, "r")
_PLACES = ("the source", "the other server")


class ServerTable:
    """A table on one of the servers.

    Args:
        source: the server.
        table: the table.
        texts: creates the texts of its rows.
        decoder: decodes the records that a connector would send.
    """

    def __init__(self, source: TableSource, table: SourceTable, texts: Texts, decoder: Decoder) -> None:
        self.source, self.table, self.texts = source, table, texts
        self._decoder = decoder

    def chunks(self, options: VerifyOptions) -> Iterator[list[tuple[Key, Row]]]:
        """Read the rows that the options choose, chunk by chunk."""
        for chunk in self.source.chunks(self.table, options.where, options.sample):
            yield list(self._of(chunk.rows))

    def all(self) -> Iterator[Row]:
        """Read all rows in one view, with columns sorted by name: the servers may have them in different orders."""
        return (dict(sorted(row.items())) for _, row in self._of(self.source.rows(self.table, "TRUE")))

    def of_keys(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """Read the rows of some keys in one view."""
        wanted, condition = {*keys}, keys_condition(self.table, keys)
        rows = self._of(self.source.rows(self.table, condition or "TRUE"))
        return {key: row for key, row in rows if key in wanted}

    def _of(self, blocks: Iterable[Rows]) -> Iterator[tuple[Key, Row]]:
        for _, change in self.source.changes(self.table, blocks, self._decoder):
            if (row := self.texts.row(change, change.after)) is not None:
                yield self.texts.key(change), row


class ServerComparison:
    """Compares a table on two servers.

    Args:
        source: the table on the source.
        other: the table on the other server.
        replication: the replication of the source by the other server.
        options: what to compare.
        result: receives the result.
    """

    def __init__(
        self, source: ServerTable, other: ServerTable, replication: Replication, options: VerifyOptions, result: Result
    ) -> None:
        self._source, self._other, self._replication, self._options = source, other, replication, options
        self.result = result

    def run(self, folder: Path) -> None:
        """Compare the tables; files of their rows are in a folder.

        Raises:
            Undecided: the result cannot be decided.
            ConnectorError: a server cannot be reached.
        """
        source, other, result = self._source, self._other, self.result
        _refuse_unlike(source, other)
        result.start = source.source.position()
        with TemporaryDirectory(dir=folder) as made:
            (self._keyed if source.table.key else self._counted)(Path(made) / "rows.sqlite")
        result.end = source.source.position()
        for side in (source, other):
            side.source.refuse_changed(side.table)
        result.outcome = "different" if result.differences else "equal"

    def _keyed(self, path: Path) -> None:
        options, result = self._options, self.result
        with closing(KeyedFold(path)) as fold:
            for chunk in self._source.chunks(options):
                fold.add_source(chunk)
                if not options.complete:
                    self._add(fold, self._rows_of(key for key, _ in chunk))
            if options.complete:
                for chunk in self._other.chunks(options):
                    self._add(fold, chunk)
            result.source_rows, result.topic_rows = fold.counts()
            unlike = (key for key, row, other in fold.unlike() if not is_same(row, other))
            while batch := list(itertools.islice(unlike, _KEYS)):
                result.again += len(batch)
                result.differences += self._confirmed(batch)
                if len(result.differences) >= options.most:
                    result.more = next(unlike, None) is not None
                    return

    def _rows_of(self, keys: Iterable[Key]) -> Iterator[tuple[Key, Row]]:
        """Yield the rows of some keys on the other server."""
        left = iter(keys)
        while batch := list(itertools.islice(left, _KEYS)):
            yield from self._other.of_keys(batch).items()

    def _add(self, fold: KeyedFold, rows: Iterable[tuple[Key, Row]]) -> None:
        for key, row in rows:
            fold.add(Record(key, json.dumps(key).encode(), row, _NOWHERE))

    def _confirmed(self, keys: Sequence[Key]) -> list[RowDifference]:
        """Return the differences of keys that stay the same whenever they are read again."""
        found, last, times = dict[Key, RowDifference](), dict[Key, RowDifference](), dict[Key, int]()
        limit = time.monotonic() + self._options.timeout_s
        while keys:
            different, changing = self._round(keys)
            moved = {key for key, one in different.items() if key in last and _values(one) != _values(last[key])}
            times = {key: 1 if key in moved else times.get(key, 0) + 1 for key in different}
            last = different
            found |= {key: one for key, one in different.items() if times[key] == _ROUNDS}
            keys = [key for key in (*different, *changing) if key not in found]
            if (count := len(moved) + len(changing)) and time.monotonic() > limit:
                raise Undecided(
                    f"{count} rows change faster than they can be read on both servers: run the command again, or "
                    "raise --timeout"
                )
        return list(found.values())

    def _round(self, keys: Sequence[Key]) -> tuple[dict[Key, RowDifference], list[Key]]:
        """Read keys again, and return the differences and the keys that the source changed in between."""
        with self._view() as end:
            before = self._source.of_keys(keys)
        self._await(end)
        others, after = self._other.of_keys(keys), self._source.of_keys(keys)
        different, changing = dict[Key, RowDifference](), list[Key]()
        for key in keys:
            row, other, later = before.get(key), others.get(key), after.get(key)
            if is_same(row, other) or is_same(later, other):
                continue
            if is_same(row, later):
                named = dict(zip(self._source.texts.key_names, key, strict=True))
                different[key] = difference(named, row, FoldState(other, ()))
            else:
                changing.append(key)
        return different, changing

    def _counted(self, path: Path) -> None:
        """Compare tables without a key by the copies of each row."""
        if not self._options.complete:
            raise Undecided("a table without a key can only be compared as a whole: omit --where and --sample")
        rounds = list[str]()
        for number in range(_COPIES):
            with closing(CountedFold(path.with_suffix(f".{number}"))) as fold:
                rounds.append(self._count(fold))
                if rounds[-1] == "equal":
                    self.result.differences = []
                    return
                unlike = itertools.islice(fold.unlike(), self._options.most)
                found = [difference_of_copies(*one) for one in unlike]
                if number and found != self.result.differences:
                    rounds.append("changing")
                self.result.differences = found
        if "changing" in rounds:
            self.result.differences = []
            raise Undecided("the table has no key, and changes while it is read: compare it when nothing is written")
        self.result.more = len(self.result.differences) >= self._options.most

    def _count(self, fold: CountedFold) -> Literal["equal", "different", "changing"]:
        """Read both tables and, if they differ, the source once more, to see whether it has changed."""
        result = self.result
        result.source_rows = result.topic_rows = before = 0
        with self._view() as end:
            for row in self._source.all():
                fold.add(row, 1)
                before += _number(row)
                result.source_rows += 1
        self._await(end)
        for row in self._other.all():
            fold.add(row, -1)
            result.topic_rows += 1
        if fold.is_equal():
            return "equal"
        return "different" if before == sum(map(_number, self._source.all())) else "changing"

    @contextmanager
    def _view(self) -> Iterator[SourceOffset]:
        """Open a view of the table on the source; yield a position after all changes in the view."""
        with self._source.source.view(self._source.table) as view:
            yield view.end

    def _await(self, position: SourceOffset) -> None:
        """Wait until the other server has executed a position of the source."""
        if self._replication.replicates:
            self._replication.await_executed(position, self._options.timeout_s)
        else:
            time.sleep(_PAUSE_S)


def _values(one: RowDifference) -> tuple[Any, ...]:
    """Return the values that identify a difference."""
    source, other = one.source or {}, one.topic or {}
    return one.kind, *((name, source[name], other[name]) for name in one.columns)


def _number(row: Row) -> int:
    """Return a number for a row. Two tables with the same rows, in any order, have the same sum."""
    return int.from_bytes(blake2b(json.dumps(dict(row)).encode(), digest_size=16).digest())


def _refuse_unlike(first: ServerTable, second: ServerTable) -> None:
    """Raise ``Undecided`` if two tables have different columns or keys."""
    source, other = first.texts, second.texts
    if source.key_names != other.key_names or bool(first.table.key) != bool(second.table.key):
        one, two = (", ".join(side.texts.key_names if side.table.key else ()) or "none" for side in (first, second))
        raise Undecided(f"the tables have different keys: {one} on the source, {two} on the other server")
    if unlike := {*source.compared} ^ {*other.compared}:
        raise Undecided(
            f"only one of the servers has the columns {', '.join(sorted(unlike))}. Name the columns to compare with "
            "--columns"
        )
    for name in source.compared:  # MariaDB's JSON is a text
        if "json" in (source.kinds[name], other.kinds[name]):
            source.kinds[name] = other.kinds[name] = "json"


def compared(
    config: Configuration,
    other: Configuration,
    decoder: Callable[[], Decoder],
    options: VerifyOptions,
    tables: Sequence[str] = (),
    folder: Path | None = None,
    *,
    load: float = 1.0,
    parallel: int = 1,
) -> Iterator[Result]:
    """Compare the captured tables of a server with those of another one; yield the result of each.

    Args:
        config: the configuration of a connector, with :data:`FORM`. Its server is the source.
        other: the same for the other server.
        decoder: makes decoders of records, one for each table that is compared at the same time.
        options: what to compare.
        tables: the names of the tables, ``database.table``; none for all that are captured.
        folder: the folder for files of rows; by default a temporary folder.
        load: the part of the time in which chunks are read from each server.
        parallel: how many tables are compared at the same time, each with its own connections.

    Raises:
        Undecided: nothing can be compared.
        ConnectorError: a server cannot be reached.
    """
    plain = [replace(one, column_converters=(), post_processors=()) for one in (config, other)]
    sides = [partial(TableSource, one, pipeline_settings(one, run_id()), Pace(load)) for one in plain]
    with contextlib.ExitStack() as stack:
        source, second = [stack.enter_context(closing(side())) for side in sides]
        if source.server() == second.server() and _place(source) == _place(second):
            raise Undecided(f"both configurations name the server {source.server().identity} at {_place(source)}")
        captured, others = source.captured(), second.captured()
    chosen = [one for one in captured if not tables or str(one) in tables]
    for name in missing_tables(captured, tables or listed_tables(config)):
        yield Result(name, reason="the source shows no such captured table, or the user lacks SELECT on it")
    known = {*captured}
    for one in others:
        if one not in known and (not tables or str(one) in tables):
            yield Result(str(one), reason="only the other server has the table", other="other server")
    if not chosen:
        return
    with TemporaryDirectory(prefix="rowtide-verify-", dir=folder, ignore_cleanup_errors=True) as made:
        pairs = [
            _Servers(
                sides, decoder(), options, Path(made), config.flavor.value if config.flavor is other.flavor else ""
            )
            for _ in range(min(parallel, len(chosen)))
        ]
        yield from in_parallel(chosen, pairs, _Servers.compare, _Servers.close)


def _place(source: TableSource) -> str:
    """Return the address of a server: servers that do not replicate each other may have the same id."""
    host, port, folder = source.session.query("SELECT @@GLOBAL.hostname, @@GLOBAL.port, @@GLOBAL.datadir")[0]
    return f"{host}:{port} ({folder})"


class _Servers:
    """Compares tables one after the other, with its own connections.

    Args:
        sides: connect to the source, and to the other server.
        decoder: decodes the records of both.
        options: what to compare.
        folder: the folder for files of rows.
        flavor: the flavor of both servers; see :class:`Replication`.
    """

    def __init__(
        self,
        sides: Sequence[Callable[[], TableSource]],
        decoder: Decoder,
        options: VerifyOptions,
        folder: Path,
        flavor: str,
    ) -> None:
        self._sides, self._decoder, self._options = sides, decoder, options
        self._folder, self._flavor = folder, flavor
        self._open: list[TableSource] = []

    def close(self) -> None:
        """Close the connections. A query that runs in another thread fails."""
        for source in self._open:
            source.close()

    def compare(self, name: TableId) -> Result:
        """Compare a table."""
        result, options = Result(str(name), other="other server"), self._options
        try:
            if not self._open:
                self._open = [connect() for connect in self._sides]
            sides = [self._table(source, name, place) for source, place in zip(self._open, _PLACES, strict=True)]
            source, other = sides
            number = source.source.server().server_id
            replication = Replication(other.source.session, number, self._flavor)
            ServerComparison(source, other, replication, options, result).run(self._folder)
        except ERRORS as error:
            result.outcome, result.reason = "undecided", reason_of(error)
            self.close()  # a result may not have been read to its end
            self._open = []
        return result

    def _table(self, source: TableSource, name: TableId, place: str) -> ServerTable:
        try:
            table = source.table(name)
        except TableGone as error:
            raise Undecided(f"{place} does not have the table, or the user lacks SELECT on it") from error
        if unknown := {*self._options.columns} - {one.name for one in table.form.columns}:
            raise Undecided(f"it has no captured column {', '.join(sorted(unknown))} on {place}")
        return ServerTable(source, table, Texts(table, self._options.columns, exact=True), self._decoder)
