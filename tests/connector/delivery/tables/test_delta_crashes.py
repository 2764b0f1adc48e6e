"""Crashes at every step of random transactions of Delta tables, each followed by a replay from the stored position."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pytest

from rowtide.connector.delivery.tables import delta
from rowtide.connector.delivery.tables.delta import DeltaOffsets, DeltaStore
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.table_events import TableEvent
from rowtide.schema_history.model import TableId
from tests.support.table_sinks import Source

NAMES = ("a", "b", "c", "d")
Rows = dict[str, list[tuple[Any, ...]]]
"""The rows of each table."""


class Crash(BaseException):
    """The process ends."""


class Crashes:
    """Ends the n-th of the calls that change files, before it begins, after a part of it, or at its end."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left = 0
        self.partly = False
        for owner, name in (
            (DeltaOffsets, "replace"),
            (DeltaStore, "_written"),
            (deltalake, "write_deltalake"),
            (deltalake.DeltaTable, "create"),
            (deltalake.DeltaTable, "delete"),
            (deltalake.DeltaTable, "restore"),
            (deltalake.DeltaTable, "vacuum"),
            (deltalake.DeltaTable, "create_checkpoint"),
            (deltalake.DeltaTable, "cleanup_metadata"),
            (Path, "rename"),
            (Path, "replace"),
            (delta, "sync_folder"),
        ):
            patch.setattr(owner, name, self._ending(getattr(owner, name)))
        patch.setattr(shutil, "rmtree", self._ending(shutil.rmtree, remove_half))

    def _ending(self, call: Callable[..., Any], half: Callable[..., None] | None = None) -> Callable[..., Any]:
        def ending(*args: Any, **kwargs: Any) -> Any:
            if half is not None and self.left == 1:
                half(*args)
            self._count()
            done = call(*args, **kwargs)
            self._count()
            return done

        return ending

    def _count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise Crash


def remove_half(folder: Path) -> None:
    """Delete some of the files of a directory."""
    for file in [file for file in sorted(folder.rglob("*")) if file.is_file()][::2]:
        file.unlink()


class Fuzz:
    """A source with random changes, what it has sent, and the rows of its tables after each position."""

    def __init__(self, source: Source, seed: int) -> None:
        self.source = source
        self.random = random.Random(seed)
        self.batches: list[Batch] = []
        self.rows: Rows = {}
        self.keyed: dict[str, bool] = {}
        self.after: dict[int, Rows] = {0: {}}
        self._unsent = 0
        self._value = 0
        self._catch()

    def _catch(self) -> None:
        self.source.sink.send = self.batches.extend  # type: ignore[method-assign,assignment]

    def change(self) -> None:
        """Make a random change."""
        before, names = len(self.batches), list(self.rows)
        free = [name for name in NAMES if name not in names]
        kind = self.random.choice(["insert"] * 6 + ["update", "delete"] * 3 + STATEMENTS)
        name = self.random.choice(names) if names else ""
        if kind == "create" and free:
            self._create(free[0])
        elif kind == "snapshot":
            self._snapshot()
        elif kind == "swap" and len(names) > 1 and free:
            first, second = self.random.sample(names, 2)
            self.source.run(f"RENAME TABLE {first} TO {free[0]}, {second} TO {first}, {free[0]} TO {second}")
            for kept in (self.rows, self.keyed):
                kept[first], kept[second] = kept[second], kept[first]  # type: ignore[index]
        elif kind == "drop two" and len(names) > 1:
            first, second = self.random.sample(names, 2)
            self.source.run(f"DROP TABLE {first}, {second}")
            del self.rows[first], self.rows[second]
        elif name and kind in ("insert", "update", "delete"):
            self._row(kind, name)
        elif name:
            self._statement(kind, name, free)
        for batch in self.batches[before:]:
            self.after[batch.offset.pos] = {one: list(rows) for one, rows in self.rows.items()}

    def _create(self, name: str) -> None:
        self.keyed[name] = self.random.random() < 0.6
        self.source.run(f"CREATE TABLE {name} (id INT {'PRIMARY KEY' if self.keyed[name] else ''}, v INT)")
        self.rows[name] = []

    def _row(self, kind: str, name: str) -> None:
        rows, source = self.rows[name], self.source
        self._value += 1
        width = len(source.tables.table("shop", name).columns)  # type: ignore[union-attr]
        number = self.random.randrange(6)
        if kind == "insert" and not (self.keyed[name] and any(row[0] == number for row in rows)):
            rows.append((number, *[self._value % 3 if not self.keyed[name] else self._value] * (width - 1)))
            source.insert(name, rows[-1])
        elif rows and kind == "delete":
            source.change("d", name, rows.pop(self.random.randrange(len(rows))), None)
        elif rows:
            place = self.random.randrange(len(rows))
            old = rows[place]
            taken = self.keyed[name] and any(row[0] == number for row in rows)
            rows[place] = (old[0] if taken else number, *[self._value] * (width - 1))
            source.change("u", name, old, rows[place])

    def _statement(self, kind: str, name: str, free: list[str]) -> None:
        source, rows = self.source, self.rows
        if kind == "drop":
            source.run(f"DROP TABLE {name}")
            del rows[name]
        elif kind == "truncate":
            source.change("t", name, None, None)
            rows[name] = []
        elif kind == "widen":
            self._value += 1
            source.run(f"ALTER TABLE {name} ADD c{self._value} INT NOT NULL DEFAULT 7")
            rows[name] = [(*row, 7) for row in rows[name]]
        elif kind == "narrow" and len(source.tables.table("shop", name).columns) > 2:  # type: ignore[union-attr]
            last = source.tables.table("shop", name).columns[-1].name  # type: ignore[union-attr]
            source.run(f"ALTER TABLE {name} DROP COLUMN {last}")
            rows[name] = [row[:-1] for row in rows[name]]
        elif kind == "rename" and free:
            source.run(f"RENAME TABLE {name} TO {free[0]}")
            rows[free[0]], self.keyed[free[0]] = rows.pop(name), self.keyed.pop(name)

    def _snapshot(self) -> None:
        """Read all tables again; a crash in it begins it again."""
        source = self.source
        tables = {name: source.tables.table("shop", name) for name in self.rows}
        read = [TableEvent("read", one.id, after=one.columns) for one in tables.values() if one is not None]
        source.table_event(
            TableEvent("only", TableId("", ""), listed=[one.id for one in read]), *read, snapshot="first"
        )
        for name, rows in self.rows.items():
            for row in rows:
                source.change("r", name, None, row, snapshot="more")
        self.batches.append(Batch("", -1, (), source.offset(), 0, 0))

    def deliver(self) -> None:
        """Send and commit everything after the stored position, in several commits, and compare the tables."""
        source = self.source
        stored = source.offsets.load()
        place = next((n for n, one in enumerate(self.batches) if stored and one.offset.pos == stored.pos), -1) + 1
        if stored is not None and stored.snapshot is not None:
            place = max(n for n, one in enumerate(self.batches[:place]) if one.offset.snapshot == "first")
        elif stored is not None:
            source.sink.commit(stored)
            self._compare(stored)
        while place < len(self.batches):
            size = self.random.randrange(1, 8)
            sent = self.batches[place : place + size]
            type(source.sink).send(source.sink, sent)
            place += len(sent)
            source.sink.commit(sent[-1].offset)
            if sent[-1].offset.snapshot is None:
                self._compare(sent[-1].offset)

    def restart(self) -> None:
        """Begin again, as another process."""
        self.source.restart()
        self._catch()

    def _compare(self, offset: SourceOffset) -> None:
        expected = self.after[offset.pos]
        assert self.source.names() == sorted(expected)
        for name, rows in expected.items():
            assert self.source.rows(name) == sorted(rows, key=str), (name, offset.pos)


STATEMENTS = ["create"] * 3 + ["drop", "truncate", "widen", "narrow", "rename", "swap", "drop two", "snapshot"]


def check(folder: Path, seed: int, rounds: int) -> None:
    source = Source(folder, "delta")
    with pytest.MonkeyPatch.context() as patch:
        crashes, fuzz = Crashes(patch), Fuzz(source, seed)
        for _ in range(rounds):
            for _ in range(fuzz.random.randrange(1, 12)):
                fuzz.change()
            crashes.left = fuzz.random.randrange(1, 80)
            while True:
                try:
                    fuzz.deliver()
                    break
                except Crash:
                    crashes.left = fuzz.random.randrange(1, 200)
                    fuzz.restart()
            crashes.left = 0
    source.sink.close()


@pytest.mark.parametrize("seed", range(3))
def test_tables_are_those_of_the_stored_position_after_each_crash(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed, 4)


@pytest.mark.nightly
@pytest.mark.parametrize("seed", range(100, 200))
def test_tables_are_those_of_the_stored_position_after_many_crashes(tmp_path: Path, seed: int) -> None:
    check(tmp_path, seed, 20)
