"""Stores the progress of reading a source table, so that a killed run continues in the middle of the table.

The rows that were read stay in a file. Each was in the source at a position after the start of the first run, so the
proof of all of them holds at that start. Rows that were changed since then differ from the topic, and are read again,
like rows that change during a run.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from rowtide._version import __version__
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.snapshot.chunks.key_ranges import Bound
from rowtide.verify.errors import Undecided
from rowtide.verify.source import SourceTable, without_counter

_VERSION = 2
_MOST_INTERRUPTED = 3


@dataclass(slots=True)
class TableReading:
    """The progress of reading a source table.

    Attributes:
        start: the position at which the first run began.
        begun: the time of its start, in seconds since 1970.
        topics: the topics of the rows so far.
        bound: the last key of the chunks so far; ``None`` before the first one.
        complete: whether all chunks were read.
    """

    start: SourceOffset
    begun: float = field(default_factory=time.time)
    topics: Sequence[str] = ()
    bound: Bound | None = None
    complete: bool = False


@dataclass(frozen=True, slots=True)
class StoredReadings:
    """The store of readings, and the conditions under which a run may use them.

    Attributes:
        folder: the directory of the files, one for each table.
        connector: the name of the connector.
        run: the configuration and the options, on which the rows depend.
        longest_s: the age in seconds after which a reading starts over; ``None`` for any age.
    """

    folder: Path
    connector: str
    run: Mapping[str, Any]
    longest_s: float | None = None

    def path(self, table: SourceTable) -> Path:
        """Return the file of a table."""
        return self.folder / f"{quote(f'{self.connector}.{table.id}', safe=' ')}.verify"

    @contextmanager
    def whole(self, table: SourceTable) -> Iterator[int]:
        """Count a run that reads a table without a key, which no later run can continue, while it lasts.

        Yields:
            How many such runs in succession were interrupted before.

        Raises:
            Undecided: they were too many.
        """
        path = self.path(table).with_suffix(".interrupted")
        try:
            number = int(path.read_text()) if path.exists() else 0
        except ValueError as error:
            raise damaged(path, error) from error
        if number >= _MOST_INTERRUPTED:
            raise Undecided(
                f"{number} runs in succession were interrupted. A table without a key is read in one view, from its "
                f"beginning in each run: give the run more time, and delete {path}"
            )
        path.write_text(str(number + 1))
        try:
            yield number
        except Exception:  # an error, which is reported, does not interrupt the run
            path.unlink()
            raise
        path.unlink()

    def text(self, reading: TableReading, table: SourceTable, server: str) -> str:
        """Return the text of a reading, for :meth:`reading`."""
        return json.dumps(
            {
                "version": _VERSION,
                "connector": self.connector,
                "run": self.run,
                "rowtide": __version__,
                "server": server,
                "table": without_counter(table.created),
                "start": reading.start.to_json(),
                "begun": reading.begun,
                "topics": [*reading.topics],
                "bound": reading.bound,
                "complete": reading.complete,
            }
        )

    def reading(self, text: str, table: SourceTable, server: str) -> TableReading | None:
        """Return the reading of an earlier run; ``None`` if the table must be read again.

        It is read again if its structure, the server or rowtide's version has changed, or if the reading is too old.

        Raises:
            Undecided: it is damaged, or belongs to another connector, configuration or options.
        """
        path = self.path(table)
        try:
            found = json.loads(text)
            bound = found["bound"] and tuple(found["bound"])
            if bound is not None and table.ranges is not None:
                table.ranges.where(bound, None)
            made = TableReading(
                SourceOffset.from_json(found["start"]), float(found["begun"]), found["topics"], bound, found["complete"]
            )
            identity = found["version"], found["connector"]
            run, same = found["run"], (found["rowtide"], found["server"], found["table"])
            changed = sorted({name for name in {*run, *self.run} if run.get(name) != self.run.get(name)})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise damaged(path, error) from error
        if identity != (_VERSION, self.connector):
            raise Undecided(f"{path} belongs to connector {identity[1]}, version {identity[0]}, {_WAY_OUT}")
        if same != (__version__, server, without_counter(table.created)):
            return None
        if self.longest_s is not None and time.time() > made.begun + self.longest_s:
            return None
        if changed:
            raise Undecided(f"{path} belongs to a run with a different value of {', '.join(changed)}, {_WAY_OUT}")
        return made


_WAY_OUT = "so it cannot be continued: delete it, or name another directory with --resume"


def damaged(path: Path, error: Exception) -> Undecided:
    """Return the error of a file that cannot be read."""
    return Undecided(f"{path} is damaged ({error}), {_WAY_OUT}")
