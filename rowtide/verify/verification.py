"""Verifies tables, one after the other: reads the source, then the topic, and then the keys that differ again.

::

    binlog:  ──┤ start ├── source is read ──┤ end ├──
    topic:   from its beginning to its end, after the source was read

A key whose row is the same on both sides is proved: the topic has every change of it up to the start, or a later state
that is equal to the source's. The others may have been changed in between. They are read again in a view of the source
whose position is known, together with all later states of their records, until the connector has delivered that
position.
"""

import itertools
import sqlite3
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from rowtide.connector.records.canonical import UNKNOWN, shown_values
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.incremental.keys.deletions import key_row
from rowtide.connector.snapshot.incremental.reading.table_view import TableView
from rowtide.decoder.decoder import Decoder
from rowtide.errors import ConnectorError
from rowtide.schema_history.queries.column_changes import ColumnChange
from rowtide.verify.comparison import (
    RowDifference,
    difference,
    difference_of_copies,
    is_same,
    not_compared,
    possible_states,
    retyped_columns,
)
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import CountedFold, FoldState, KeyedFold, KeyRange, Record, Row
from rowtide.verify.old_forms import OldForms
from rowtide.verify.old_forms import described as form_change
from rowtide.verify.positions import Order, RecordPlace, ServerIdentity, ViewOrder, before, described
from rowtide.verify.progress import ConnectorProgress
from rowtide.verify.repair import RepairError, RepairSignals, exact_key, never_deleted
from rowtide.verify.replication import channels_of
from rowtide.verify.resume import StoredReadings, TableReading, damaged
from rowtide.verify.source import SourceTable, TableSource, keys_condition
from rowtide.verify.texts import Key, Texts
from rowtide.verify.topic import Topic, TopicRecord

_ROUNDS = 3
"""How often a key is read again before its difference counts."""
_REPAIRS = 3
"""How often rows are read again by the connector until they are equal."""
_KEYS = 500
"""Keys that are read again together."""
_RANGES = 20
"""How many ranges of further differences a report has."""
_POLL_S = 0.5
_RECORD_S = 30.0
"""How long to wait for another record of rows that the connector has read again."""
_COMMIT_S = 10.0
"""How long a transaction may be in the binlog before it is committed."""

Outcome = Literal["equal", "different", "undecided"]


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """What to compare.

    Attributes:
        where: a condition for the rows of the source, as SQL; ``""`` for all.
        columns: the columns to compare in addition to the key; none for all.
        sample: the part of the chunks to read.
        most: the number of differences after which a table is not compared further.
        timeout_s: the time to wait for the connector to deliver a position, in seconds.
    """

    where: str = ""
    columns: Collection[str] = ()
    sample: float = 1.0
    most: int = 1_000
    timeout_s: float = 300.0

    @property
    def complete(self) -> bool:
        """Whether all rows of the source are read, so that other rows of the topic are extra."""
        return not self.where and self.sample == 1


@dataclass(slots=True)
class Result:
    """The result for one table.

    Attributes:
        table: its name.
        begun: the time at which its verification began, in seconds since 1970.
        key_names: the columns of the key of its records.
        outcome: equal, different, or not decided.
        reason: the reason why it could not be decided.
        other: the other side of the comparison.
        topics: its topics.
        start: all changes before this position are proved to be in the topic, if the outcome is ``equal``.
        end: the position at which the source had been read.
        source_rows: rows that were read from the source.
        topic_rows: rows that the topic, or the other server, has.
        resumed: rows of the source that an earlier run had read.
        interrupted: earlier runs in succession that were interrupted, of a table that none can continue.
        again: keys that were read again because they had changed.
        differences: the differences.
        more: whether there may be further differences.
        ranges: the ranges of further keys that differ, which were not compared again.
        older: rows of the topic without a value of a column, which was added later, by column.
        old: rows of the topic with a column in the form before a later change of it, by column.
        repaired: the differences that were repaired.
        sent_again: rows that did not differ, but had an old form and were sent again.
        signals: the signals that would repair the differences, with ``--dry-run``.
        not_repaired: the reason why differences were not repaired.
    """

    table: str
    outcome: Outcome = "undecided"
    reason: str = ""
    other: Literal["topic", "other server"] = "topic"
    topics: Sequence[str] = ()
    start: SourceOffset | None = None
    end: SourceOffset | None = None
    source_rows: int = 0
    topic_rows: int = 0
    resumed: int = 0
    interrupted: int = 0
    again: int = 0
    differences: list[RowDifference] = field(default_factory=list)
    more: bool = False
    ranges: Sequence[KeyRange] = ()
    older: dict[str, int] = field(default_factory=dict)
    old: dict[str, tuple[int, ColumnChange]] = field(default_factory=dict)
    repaired: list[RowDifference] = field(default_factory=list)
    sent_again: int = 0
    signals: list[Mapping[str, Any]] = field(default_factory=list)
    not_repaired: str = ""
    begun: float = field(default_factory=time.time)
    key_names: Sequence[str] = ()


class TableVerification:
    """Verifies one table.

    Args:
        source: the server.
        table: the table.
        decoder: decodes the records of the source and of the topic.
        topic: makes the reader of some topics.
        progress: of the connector.
        options: what to compare.
        changes: reads the last change of each column from the schema history.
        exact: whether FLOAT has all digits, and JSON and labels one spelling.
        two_forms: whether other values may have two forms; see :class:`Texts`.
        repair: sends signals that repair differences, if they are to be repaired.
        resume: keeps the rows that were read, for a later run.

    Attributes:
        result: the result so far.
        source: the server, whose connection is re-created after an error.
    """

    def __init__(
        self,
        source: TableSource,
        table: SourceTable,
        decoder: Decoder,
        topic: Callable[[list[str]], Topic],
        progress: ConnectorProgress,
        options: VerifyOptions,
        changes: Callable[[], Mapping[str, ColumnChange]],
        *,
        exact: bool,
        two_forms: bool = False,
        repair: RepairSignals | None = None,
        resume: StoredReadings | None = None,
    ) -> None:
        self._changes, self._repair, self._resume = changes, repair, resume
        self.source, self._table, self._decoder = source, table, decoder
        self._make_topic, self._progress, self._options = topic, progress, options
        self.result = Result(str(table.id))
        self._texts = Texts(table, options.columns, exact=exact, two_forms=two_forms)
        self._topics = dict.fromkeys(table.routing.topics)
        self._omitted: set[str] = set()
        self._noted: dict[Key, list[str]] = {}
        self._silent: set[Key] = set()  # of which the connector has sent no record, although they were requested

    def run(self, folder: Path) -> Result:
        """Verify the table; the file of its rows is in a folder.

        Raises:
            Undecided: the result cannot be decided.
            ConnectorError: the source or the topic cannot be read.
        """
        run = self._keyed if self._table.key else self._whole
        result, server = self.result, self._server
        result.key_names = self._texts.key_names
        self._progress.is_of(server, self.source.position())  # refuses another one
        with TemporaryDirectory(dir=folder) as made:
            run(Path(made) / "rows.sqlite")
        if self._resume is not None:
            self._resume.path(self._table).unlink(missing_ok=True)
        result.end = self.source.position()
        if self.source.server() != server:
            raise Undecided(
                f"a server other than {server.identity} (server_id {server.server_id}) answered during the run: let "
                "database.hostname name one server"
            )
        self._progress.is_of(server, result.end)
        self.source.refuse_changed(self._table)
        if not result.differences and (by := self._table.routing.by or self._other_topics()):
            raise Undecided(
                f"{by} chooses the topic by the row, so topics that no row of the source has now may have rows that it "
                "lacks: only differences in the present topics can be found"
            )
        if not result.differences and self._omitted:
            raise Undecided(
                f"the topic does not have the values of {', '.join(sorted(self._omitted))}, because the binlog omits "
                "them (binlog_row_image). Compare the others with --columns"
            )
        if not result.differences and result.more:
            raise Undecided(
                f"{len(result.repaired):,} rows were repaired, and others differ: run the command again, or raise "
                "--max-differences. If most rows differ, an incremental snapshot of the table is faster"
            )
        if not result.differences and (result.old or result.older):
            names = ", ".join(sorted({*result.old, *result.older}))
            raise Undecided(
                f"the structure changed after the last record of some rows, in which {names} cannot be compared. An "
                "incremental snapshot of the table sends these rows again; --columns compares the others"
            )
        result.outcome = "different" if result.differences else "equal"
        return result

    # --- tables whose keys identify rows ---------------------------------------------------------------------------

    def _keyed(self, path: Path) -> None:
        if self._changes_keys():
            self._table = replace(self._table, hidden_key=True)
        options, result, fold = self._options, self.result, self._fold(path)
        try:
            self._read_source(fold)
            self._refuse_doubled(fold)
            topic = self._topic()
            self._consume(topic, fold)
            result.source_rows, result.topic_rows = fold.counts()
            forms = self._old_forms(fold.completed)
            unlike = self._unlike(fold, forms)
            while batch := list(itertools.islice(unlike, _KEYS)):
                result.again += len(batch)
                found = self._confirmed(fold, topic, batch, forms)
                result.differences += found
                self._refuse_missing(topic)
                if self._repair is not None and found:
                    result.differences[-len(found) :] = self._repaired(fold, topic, forms, found)
                if len(result.differences) + len(result.repaired) >= options.most:
                    result.ranges = fold.ranges(unlike, _RANGES)
                    result.more = bool(result.ranges)
                    if result.more:
                        return
            result.differences += self._replaced(fold, topic, forms)
            if self._repair is not None:
                self._send_again(fold, topic, forms)
        finally:
            fold.close()

    def _changes_keys(self) -> bool:
        """Return whether transforms give records a key other than that of the row, by which it cannot be looked up."""
        table, texts = self._table, self._texts
        if (transforms := table.form.settings.transforms) is None or not transforms.chain.steps:
            return False
        columns = table.structure.columns
        reader = table.form.reader([column.name for column in columns])
        own = {column.name for column in table.key}
        packets = [  # values of the key differ from those of other columns
            b"".join(key_row([column], {}, variant + (column.name in own)) for column in columns) for variant in (1, 2)
        ]
        try:
            changes = list(self.source.changes(table, [[reader.row(one) for one in packets]], self._decoder))
            return any(not texts.has_own_key(change) for _, change in changes)
        except (ConnectorError, ValueError):  # these values are not like those of the table
            return True

    def _fold(self, path: Path) -> KeyedFold:
        """Create the file of rows, with those of an earlier run."""
        if self._resume is None:
            return KeyedFold(path)
        kept = self._resume.path(self._table)
        try:
            return KeyedFold(path, kept)
        except sqlite3.OperationalError as error:
            raise Undecided(f"{kept} is not available ({error}). Only one run at a time can use it") from error
        except sqlite3.DatabaseError as error:
            raise damaged(kept, error) from error

    def _read_source(self, fold: KeyedFold) -> None:
        """Read the rows of the source, after those that an earlier run has read."""
        resume, options, result = self._resume, self._options, self.result
        reading, server = TableReading(self.source.position(), result.begun), self._server.identity
        if resume is not None and (text := fold.reading) is not None:
            found = resume.reading(text, self._table, server)
            if found is None:
                fold.forget()
            else:
                reading, result.resumed = found, fold.counts()[0]
                self._topics.update(dict.fromkeys(found.topics))
        result.start, result.begun = reading.start, reading.begun
        if reading.complete:
            return
        for chunk in self.source.chunks(self._table, options.where, options.sample, reading.bound):
            result.source_rows += fold.add_source(self._rows(chunk.rows))
            if resume is not None:
                reading.bound = chunk.upper or reading.bound
                reading.topics, reading.complete = list(self._topics), chunk.upper is None
                fold.keep(resume.text(reading, self._table, server))

    def _replaced(self, fold: KeyedFold, topic: Topic, forms: OldForms) -> list[RowDifference]:
        """Return differences of some rows that are not as they were read, and that the topic does not have either.

        TRUNCATE, DROP TABLE and RENAME TABLE during the run replace rows without records.
        """
        self.source.refuse_changed(self._table)  # rows of a table that was dropped cannot be read
        read = fold.some_rows(_KEYS)
        if not read or keys_condition(self._table, [*read]) is None:
            return []
        known, rows = {tuple(one.key.values()) for one in self.result.differences}, self._rows_of([*read])
        changed = [key for key, row in read.items() if key not in known and rows.get(key) != row]
        unlike = [key for key in changed if not is_same(rows.get(key), fold.state(key).row)]
        return self._confirmed(fold, topic, unlike, forms) if unlike else []

    def _refuse_doubled(self, fold: KeyedFold) -> None:
        """Raise ``Undecided`` if rows of the source have the same key in their records: a consumer has one of them."""
        rows = ((key, copies) for key, _, copies in fold.doubled())
        if (first := next(rows, None)) is not None:
            number = first[1] + sum(copies for _, copies in rows)
            key = shown_values(self._named(first[0]))
            raise Undecided(
                f"{number:,} rows of the source share the key of their records with another row, such as {key}, so "
                "consumers have only one of them. rowtide check names the settings that give different values the same "
                "form; message.key.columns selects other columns for the key"
            )

    def _unlike(self, fold: KeyedFold, forms: OldForms) -> Iterator[Key]:
        """Yield the keys that may differ. If very many rows have their old form, not all of them are read again."""
        for key, source, topic in fold.unlike(extra=self._options.complete):
            retyped = source and topic and retyped_columns(source, topic)
            wrong = _wrong_types(source, fold.state(key), forms) if retyped else ()
            if is_same(source, topic) and not wrong:
                self._note(key, source, topic)
            elif len(self._noted) < self._options.most or not self._is_old(
                key, difference(self._named(key), source, fold.state(key), wrong), forms
            ):
                yield key

    def _is_old(self, key: Key, one: RowDifference, forms: OldForms) -> bool:
        """Return whether a difference only means that the last record is older than the structure; if so, note it."""
        if is_same(one.source, one.topic) and not one.columns:
            return True
        old = forms.of(one)
        if not old or (one.kind == "stale" and len(old) < len(one.columns)):
            return False
        self._note_old(key, old)
        return True

    def _note_old(self, key: Key, old: Mapping[str, ColumnChange]) -> None:
        for name, change in old.items():
            self.result.old[name] = self.result.old.get(name, (0, change))[0] + 1, change
            self._keep(key, name)

    def _keep(self, key: Key, name: str) -> None:
        """Keep a key with a column that was not compared, for the repair."""
        if key in self._noted or len(self._noted) < self._options.most:
            self._noted.setdefault(key, []).append(name)

    def _forget(self, key: Key) -> None:
        """Forget the notes about a key, which is compared again."""
        older, old = self.result.older, self.result.old
        for name in self._noted.pop(key, ()):
            if name in old:
                rows, change = old.pop(name)
                if rows > 1:
                    old[name] = rows - 1, change
            elif name in older:
                rows = older.pop(name)
                if rows > 1:
                    older[name] = rows - 1

    def _old_forms(self, completed: Collection[str] = ()) -> OldForms:
        names = [column.name for column in self._table.key_columns]

        def same_server() -> bool:
            return self._progress.is_of(self._server, self.source.position())

        return OldForms(self._changes, names, same_server=same_server, completed=completed)

    def _named(self, key: Key) -> Row:
        return dict(zip((column.name for column in self._table.key_columns), key, strict=False))

    def _note(self, key: Key, source: Row | None, topic: Row | None) -> None:
        """Note the values of a row that the topic lacks."""
        if source is None or topic is None:
            return
        for name in not_compared(source, topic):
            if topic.get(name) == UNKNOWN:
                self._omitted.add(name)
            else:
                self.result.older[name] = self.result.older.get(name, 0) + 1
                self._keep(key, name)

    def _confirmed(self, fold: KeyedFold, topic: Topic, keys: Sequence[Key], forms: OldForms) -> list[RowDifference]:
        """Return the differences of keys that persist whenever they are read again."""
        found: dict[Key, RowDifference] = {}
        for _ in range(_ROUNDS):
            made = self._round(fold, topic, keys, forms)
            found = {key: one for key, one in made.items() if not self._is_old(key, one, forms)}
            keys = list(found)
            if not keys:
                break
        return [self._without_old(key, one, forms) for key, one in found.items()]

    def _without_old(self, key: Key, one: RowDifference, forms: OldForms) -> RowDifference:
        """Return a difference without the columns whose old form explains it."""
        if one.kind != "stale" or not (old := forms.of(one)):
            return one
        self._note_old(key, old)
        return replace(one, columns=tuple(name for name in one.columns if name not in old))

    def _round(self, fold: KeyedFold, topic: Topic, keys: Sequence[Key], forms: OldForms) -> dict[Key, RowDifference]:
        self._consume(topic, fold)
        fold.watch(keys)
        rows, view = self._current(fold, keys)
        left, order, end = list(keys), self._order(view), view.end
        delivered = False
        limit = time.monotonic() + self._options.timeout_s
        while True:
            self._consume(topic, fold)
            left = [key for key in left if not self._is_proved(fold, key, rows.get(key), order, forms)]
            if not left or delivered:
                break
            delivered = self._is_delivered(topic, order, end)
            if not delivered:
                self._await(limit, end, len(left))
        if left:
            forms.complete()
        found = {}
        for key in left:
            row, state = rows.get(key), possible_states(fold.states(key), order)[-1]
            found[key] = difference(self._named(key), row, state, _wrong_types(row, state, forms))
        return found

    # --- repair ----------------------------------------------------------------------------------------------------

    def _repaired(
        self, fold: KeyedFold, topic: Topic, forms: OldForms, found: Sequence[RowDifference]
    ) -> list[RowDifference]:
        """Let the connector read the rows of differences again, and return the remaining differences."""
        left = {tuple(one.key.values()): one for one in found}
        repairable = {key for key, one in left.items() if self._is_repairable(key) and self._is_deletable(key, one)}
        for _ in range(_REPAIRS):
            keys = [key for key in left if key in repairable - self._silent]
            if not keys or not self._read_again(fold, topic, keys):
                break
            others = [one for key, one in left.items() if key not in {*keys}]
            try:
                again = self._confirmed(fold, topic, keys, forms)
            except Undecided as error:  # they were different, and nothing says that they are not
                self.result.not_repaired = str(error)
                break
            now = {tuple(one.key.values()): one for one in (*others, *again)}
            self.result.repaired += [one for key, one in left.items() if key not in now]
            left = now
        if silent := self._silent & left.keys():
            self.result.not_repaired = self.result.not_repaired or (
                f"the connector sent no record of {len(silent):,} of these rows. Its log says why"
            )
        return list(left.values())

    def _send_again(self, fold: KeyedFold, topic: Topic, forms: OldForms) -> None:
        """Let the connector read the rows whose last record is older than the structure again."""
        keys = [key for key in self._noted if self._is_repairable(key)]
        for begin in range(0, len(keys), _KEYS):
            batch = keys[begin : begin + _KEYS]
            if not self._read_again(fold, topic, batch):
                continue
            self.result.differences += self._confirmed(fold, topic, batch, forms)
            self.result.sent_again += sum(key not in self._noted for key in batch)

    def _is_repairable(self, key: Key) -> bool:
        if exact_key(self._table, key) is not None:
            return True
        self.result.not_repaired = self.result.not_repaired or (
            "some keys cannot be looked up: they have a type such as FLOAT, are from before a change of the key, are "
            "converted or changed by a transform, or come from message.key.columns. A snapshot to an empty topic "
            "writes the table again"
        )
        return False

    def _is_deletable(self, key: Key, one: RowDifference) -> bool:
        """Return whether a row that only the topic has would be deleted from it."""
        reason = never_deleted(self._table, key) if one.kind == "extra" else None
        if reason is not None:
            self.result.not_repaired = self.result.not_repaired or (
                f"some rows that only the topic has are not deleted from it: {reason}"
            )
        return reason is None

    def _read_again(self, fold: KeyedFold, topic: Topic, keys: Sequence[Key]) -> bool:
        """Send the signals for some keys, wait for their records, and return whether keys must be compared again."""
        repair, result = self._repair, self.result
        assert repair is not None
        signals = list(repair.signals(self._table, keys))
        if repair.dry_run:
            result.signals += signals
        if repair.dry_run or repair.problem:
            result.not_repaired = result.not_repaired or repair.problem
            return False
        self._consume(topic, fold)
        fold.watch(keys)
        try:
            for signal in signals:
                repair.send(signal)
        except RepairError as error:
            repair.problem = result.not_repaired = str(error)
            return False
        self._await_records(fold, topic, keys)
        for key in keys:
            self._forget(key)
        return True

    def _await_records(self, fold: KeyedFold, topic: Topic, keys: Sequence[Key]) -> None:
        """Wait for the records of rows that were read again. Some rows have none: those that are never deleted."""
        missing, last = len(keys), time.monotonic()
        while missing and time.monotonic() < last + min(_RECORD_S, self._options.timeout_s):
            time.sleep(_POLL_S)
            self._consume(topic, fold)
            before, missing = missing, sum(len(fold.states(key)) == 1 for key in keys)
            last = time.monotonic() if missing < before else last
        self._silent.update(key for key in keys if len(fold.states(key)) == 1)

    # --- rows that are read again ----------------------------------------------------------------------------------

    @cached_property
    def _is_replica(self) -> bool:
        return bool(channels_of(self.source.session))

    @cached_property
    def _server(self) -> ServerIdentity:
        """The server that answered first."""
        return self.source.server()

    def _order(self, view: TableView) -> ViewOrder:
        return ViewOrder(view, same_server=self._progress.is_of(self._server, view.end))

    def _before_now(self) -> Callable[[RecordPlace], bool | None]:
        """Return whether a record is before the end of the server's binlog."""
        now = self.source.position()
        return before(now, same_server=self._progress.is_of(self._server, now))

    def _is_delivered(self, topic: Topic, order: ViewOrder, end: SourceOffset) -> bool:
        """Return whether all records before the end of a view are in the topic."""
        if topic.has_passed(order, self._before_now):
            return True
        return self._progress.has_delivered(end, self.source.session, self._server)

    def _is_proved(self, fold: KeyedFold, key: Key, row: Row | None, order: ViewOrder, forms: OldForms) -> bool:
        for state in possible_states(fold.states(key), order):
            if is_same(row, state.row) and not _wrong_types(row, state, forms):
                self._note(key, row, state.row)
                return True
        return False

    def _await(self, limit: float, end: SourceOffset, number: int) -> None:
        """Wait a moment for the connector."""
        if time.monotonic() > limit:
            stored = self._progress.stored
            at = "has stored no position" if stored is None else f"is at {described(stored)}"
            raise Undecided(
                f"{number} keys differ, and the connector has not delivered the source's position {described(end)} in "
                f"{self._options.timeout_s:.0f} s: it {at}. Check that it runs, or raise --timeout"
            )
        time.sleep(_POLL_S)

    def _current(self, fold: KeyedFold, keys: Sequence[Key]) -> tuple[dict[Key, Row], TableView]:
        """Read the rows of watched keys again, when a replica has the changes that were in the topic before.

        Raises:
            Undecided: the replica has not executed them in time.
        """
        places = [place for key in keys for place in fold.states(key)[0].places[-1:]]
        limit = time.monotonic() + self._options.timeout_s
        while True:
            rows, view = self._reread(keys)
            order = self._order(view)
            ahead = [place for place in places if order.order(place) is Order.AFTER]
            if not ahead or not self._is_replica:  # a fail-over may have lost them
                return rows, view
            if time.monotonic() > limit:
                raise self._lag(ahead[0])
            time.sleep(_POLL_S)

    def _lag(self, place: RecordPlace) -> Undecided:
        return Undecided(
            f"server {self._server.identity} is a replica, and has not executed changes that are already in the topic, "
            f"such as {place.gtid}, in {self._options.timeout_s:.0f} s. Compare again when SHOW REPLICA STATUS says "
            "that it has, raise --timeout, or let database.hostname name its source"
        )

    def _reread(self, keys: Sequence[Key]) -> tuple[dict[Key, Row], TableView]:
        """Read the rows of some keys again in a view whose position is known."""
        with self.source.view(self._table) as view:
            found = self._rows_of(keys)
        return found, self.source.after_reading(self._table, view)

    def _rows_of(self, keys: Sequence[Key]) -> dict[Key, Row]:
        """Read the rows of some keys, ignoring --where: a key has one row."""
        condition, wanted = keys_condition(self._table, keys), {*keys}
        rows = self.source.rows(self._table, condition or "TRUE")
        return {key: row for key, row in self._rows(rows) if key in wanted}

    def _consume(self, topic: Topic, fold: KeyedFold) -> None:
        """Add the new records of the topic."""
        for found in topic.new_records():
            record, change = found.record, found.change
            if change is not None:
                self._texts.refuse_others(found, change)
                if change.op == "t":
                    if topic.partitions > 1:
                        raise Undecided(
                            f"topic {found.topic} has a record of TRUNCATE and several partitions, whose records have "
                            "no common order"
                        )
                    fold.truncate(found.place)
                    continue
                fold.add(
                    Record(
                        self._texts.key(change), record.key or b"", self._texts.row(change, change.after), found.place
                    )
                )
            elif record.key is not None:
                fold.add(Record(None, record.key, None, found.place))

    # --- tables without a key --------------------------------------------------------------------------------------

    def _whole(self, path: Path) -> None:
        with nullcontext(0) if self._resume is None else self._resume.whole(self._table) as self.result.interrupted:
            self._counted(path)

    def _counted(self, path: Path) -> None:
        """Compare a table without a key with the copies of each row in the topic, in one view."""
        made = 0
        for number in itertools.count(1):
            names = {*self._topics}
            fold = CountedFold(path.with_suffix(f".{number}"))
            try:
                self._counted_once(fold)
            finally:
                fold.close()
            made += names == {*self._topics}  # else, the ends of some topics were not known before the view
            if not self.result.differences or made == _ROUNDS:
                break
        self.result.more = len(self.result.differences) >= self._options.most
        if self._repair is not None and self.result.differences:
            self.result.not_repaired = (
                "a table without a key cannot be repaired in its topic, which has no record that replaces another: "
                "write it again with a snapshot to an empty topic"
            )

    def _counted_once(self, fold: CountedFold) -> None:
        source, options, result = self.source, self._options, self.result
        if not options.complete:
            raise Undecided("a table without a key can only be compared as a whole: omit --where and --sample")
        result.start, result.source_rows, result.topic_rows = source.position(), 0, 0
        topic = self._topic()
        ends = topic.ends()
        with source.view(self._table) as view:
            for _, row in self._rows(source.rows(self._table, "TRUE")):
                fold.add(row, 1)
                result.source_rows += 1
        view = source.after_reading(self._table, view)
        order, limit = self._order(view), time.monotonic() + options.timeout_s
        within: list[list[tuple[Row, int]]] = []
        first: dict[tuple[str, int], RecordPlace] = {}
        delivered = False
        while True:
            for found in topic.new_records():
                if found.change is not None:
                    first.setdefault((found.topic, found.place.partition), found.place)
                    self._count(fold, topic, found, self._order_of(found, ends, order), within)
            if _is_equal_within(fold, within) or delivered:
                break
            delivered = self._is_delivered(topic, order, view.end)
            if not delivered:
                self._await(limit, view.end, sum(1 for _ in fold.unlike()))
        result.differences = [difference_of_copies(*found) for found in itertools.islice(fold.unlike(), options.most)]
        if result.differences:
            forms = self._old_forms()
            old = {n: c for place in first.values() for n, c in forms.before(place, self._texts.compared).items()}
            if old:
                result.differences.clear()
                name, change = next(iter(old.items()))
                raise Undecided(
                    f"column {name} was changed after the first records of the topic ({form_change(change)}), whose "
                    "rows have its old form. A table without a key cannot be compared then: write it again with a "
                    "snapshot to an empty topic, or compare other columns with --columns"
                )
        self._refuse_missing(topic)

    def _order_of(self, found: TopicRecord, ends: Mapping[tuple[str, int], int], order: ViewOrder) -> Order:
        """Return whether the change of a record is before or after the view.

        Records in the topic from before the view was opened are not after it.
        """
        place = found.place
        if place.snapshot:
            return Order.BEFORE
        at = order.order(place)
        if place.offset < ends.get((found.topic, place.partition), 0) and at is Order.AFTER:
            self._refuse_unknown(found)
        return at

    def _refuse_unknown(self, found: TopicRecord) -> None:
        """Refuse a record whose transaction the server does not have, even after a commit, or a replica's delay."""
        place, begun = found.place, time.monotonic()
        while not self._before_now()(place):
            if self._is_replica:
                if time.monotonic() > begun + self._options.timeout_s:
                    raise self._lag(place)
            elif time.monotonic() > begun + _COMMIT_S:
                raise Undecided(
                    f"topic {found.topic} has a record (partition {place.partition}, offset {place.offset}) of the "
                    f"position {', '.join(filter(None, (f'{place.file}:{place.pos}', place.gtid)))}, which server "
                    f"{self._server.identity} does not have: it comes from another server, or was lost in a fail-over. "
                    "A table without a key cannot be compared then: write it again with a snapshot to an empty topic"
                )
            time.sleep(_POLL_S)

    def _count(
        self,
        fold: CountedFold,
        topic: Topic,
        found: TopicRecord,
        position: Order,
        within: list[list[tuple[Row, int]]],
    ) -> None:
        change = found.change
        assert change is not None
        self._texts.refuse_others(found, change)
        if change.op == "t":
            raise Undecided(f"topic {found.topic} has a record of TRUNCATE: a table without a key cannot be compared")
        if change.op in "ud" and change.before is None:
            raise Undecided(f"the records of topic {found.topic} do not have the row before a change")
        steps = []
        if change.op in "ud":
            steps.append((self._texts.row(change, change.before), 1))
        if change.op != "d":
            steps.append((self._texts.row(change, change.after), -1))
        known = [(row, number) for row, number in steps if row is not None]
        for row, _ in known:
            if {*row} != {*self._texts.compared} or UNKNOWN in row.values():
                raise Undecided(
                    f"topic {found.topic} has rows whose columns differ from those of the table, which has no key: "
                    "compare the columns that all have with --columns"
                )
        self.result.topic_rows -= sum(number for _, number in known)
        if position is Order.BEFORE and not within:
            for row, number in known:
                fold.add(row, number)
        elif position is not Order.AFTER:
            if topic.partitions > 1:
                raise Undecided(f"topic {found.topic} of a table without a key has several partitions: try again")
            within.append(known)

    # --- rows ------------------------------------------------------------------------------------------------------

    def chosen_keys(self) -> Iterator[Key]:
        """Yield the keys of the rows that the options choose, read from the source."""
        for chunk in self.source.chunks(self._table, self._options.where, self._options.sample):
            for key, _ in self._rows(chunk.rows):
                yield key

    @property
    def topics(self) -> list[str]:
        """The topics of the table, as far as they are known."""
        return list(self._topics)

    def _other_topics(self) -> str:
        """Return the cause of topics that :func:`routing` does not know; ``""`` if there are none."""
        return "a Python transform" if {*self._topics} - {*self._table.routing.topics} else ""

    def _topic(self) -> Topic:
        topic = self._make_topic(list(self._topics))
        self.result.topics = topic.names
        return topic

    def _refuse_missing(self, topic: Topic) -> None:
        """Refuse a topic that does not exist although the connector has delivered the rows of the source."""
        if self.result.differences and (missing := topic.missing()):
            self.result.differences.clear()
            raise Undecided(f"topic {missing[0]} does not exist: has the connector ever sent this table?")

    def _rows(self, blocks: Iterable[Sequence[tuple[object, ...]]]) -> Iterator[tuple[Key, Row]]:
        """Yield the keys and rows of the source as in the connector's records."""
        for topic, change in self.source.changes(self._table, blocks, self._decoder):
            self._topics[topic] = None
            row = self._texts.row(change, change.after)
            assert row is not None
            yield self._texts.key(change), row


def _wrong_types(source: Row | None, state: FoldState, forms: OldForms) -> Collection[str]:
    """Return the columns whose values have another type in the record, if no change of the structure explains it."""
    names = () if source is None or state.row is None else retyped_columns(source, state.row)
    known = forms.before(state.places[-1], names) if names else {}
    return [name for name in names if name not in known]


def _is_equal_within(fold: CountedFold, within: list[list[tuple[Row, int]]]) -> bool:
    """Return whether both sides are equal after the records so far, or after some records that the view may contain."""
    if fold.is_equal():
        return True
    while within:
        for row, number in within.pop(0):
            fold.add(row, number)
        if fold.is_equal():
            return True
    return False
