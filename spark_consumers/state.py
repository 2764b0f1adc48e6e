"""What is remembered between runs: how far each topic is in its table.

Before a batch is written its ranges are planned under a number; afterwards the number is marked as done. The table's
own commit carries that number too (:class:`Commit`). So after a crash in between the same ranges are read again under
the same number, and a table that has them already refuses them: no row is lost, none comes twice.

Every step is a new small file, ``00000012.plan.json`` then ``00000012.done.json``: nothing is ever overwritten, so that
object stores and file systems do the same.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from rowtide.spark_consumers.errors import StateError
from rowtide.spark_consumers.kafka.naming import join
from rowtide.spark_consumers.kafka.offsets import Ranges, advanced

_KEPT_BATCHES = 5
STEPS_OF_A_BATCH = 1000


class Files(Protocol):
    """The little that is needed of a file system."""

    def names(self, directory: str) -> list[str]:
        """Names in a directory; none if it does not exist."""

    def read(self, path: str) -> str:
        """A file's text."""

    def create(self, path: str, text: str) -> None:
        """Write a file that is either there in full or not at all."""

    def delete(self, path: str) -> None:
        """Remove a file or a directory with all that is in it; nothing happens if it does not exist."""


@dataclass(slots=True)
class MemoryFiles:
    """Files of a test, by path."""

    texts: dict[str, str] = field(default_factory=dict)

    def names(self, directory: str) -> list[str]:
        """Names in a directory."""
        prefix = directory + "/"
        return sorted({path[len(prefix) :].split("/")[0] for path in self.texts if path.startswith(prefix)})

    def read(self, path: str) -> str:
        """A file's text."""
        return self.texts[path]

    def create(self, path: str, text: str) -> None:
        """Write a file."""
        self.texts[path] = text

    def delete(self, path: str) -> None:
        """Remove a file or directory."""
        self.texts = {
            name: text for name, text in self.texts.items() if name != path and not name.startswith(path + "/")
        }


@dataclass(frozen=True, slots=True)
class Commit:
    """The identity that a table's commit carries: the same step of the same batch is applied once."""

    app_id: str
    version: int


@dataclass(frozen=True, slots=True)
class Truncation:
    """The newest TRUNCATE seen: rows of other partitions that come later but happened before it are void.

    Attributes:
        file: number of the binlog file.
        pos: position in it.
    """

    file: int
    pos: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A planned batch, and what stands before it.

    Attributes:
        app_id: names this state in the tables' commits.
        number: of the batch, from 1; 0 stands for "nothing done yet".
        done: the next offset of each partition once this batch is done.
        ranges: what this batch reads.
        columns: the columns of the newest row schema, ``None`` before the first.
        truncation: the newest truncation.
        seen: identities of the last records without key.
    """

    app_id: str
    number: int = 0
    done: Mapping[int, int] = field(default_factory=dict)
    ranges: Ranges = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    truncation: Truncation | None = None
    seen: tuple[int, ...] = ()

    def next(self, ranges: Ranges) -> "Batch":
        """The batch that follows."""
        return replace(self, number=self.number + 1, ranges=ranges, done=advanced(self.done, ranges))

    def commit(self, step: int) -> Commit:
        """The identity of a step of this batch."""
        if not 0 <= step < STEPS_OF_A_BATCH:
            raise StateError(f"a batch has at most {STEPS_OF_A_BATCH} steps; read it in smaller ones (--max-records)")
        return Commit(self.app_id, self.number * STEPS_OF_A_BATCH + step)

    def to_json(self) -> str:
        """The file's text."""
        content: dict[str, Any] = {
            "version": 1,
            "app_id": self.app_id,
            "batch": self.number,
            "offsets": {str(partition): offset for partition, offset in sorted(self.done.items())},
            "ranges": {str(partition): list(found) for partition, found in sorted(self.ranges.items())},
        }
        if self.columns is not None:
            content["columns"] = list(self.columns)
        if self.truncation is not None:
            content["truncation"] = {"file": self.truncation.file, "pos": self.truncation.pos}
        if self.seen:
            content["seen"] = list(self.seen)
        return json.dumps(content, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Batch":
        """Read :meth:`to_json`.

        Raises:
            ValueError, KeyError, TypeError: the text is something else.
        """
        content = json.loads(text)
        if content["version"] != 1:
            raise ValueError(f"version {content['version']} was written by a newer rowtide")
        truncation = content.get("truncation")
        columns = content.get("columns")
        return cls(
            app_id=content["app_id"],
            number=content["batch"],
            done={int(partition): offset for partition, offset in content["offsets"].items()},
            ranges={int(partition): (first, end) for partition, (first, end) in content["ranges"].items()},
            columns=None if columns is None else tuple(columns),
            truncation=truncation and Truncation(truncation["file"], truncation["pos"]),
            seen=tuple(content.get("seen", ())),
        )


@dataclass(frozen=True, slots=True)
class Remembered:
    """What a run finds: the last batch that is done, and one that was planned but perhaps not written."""

    done: Batch
    planned: Batch | None = None

    @property
    def is_new(self) -> bool:
        """Whether nothing was ever done."""
        return self.done.number == 0


@dataclass(frozen=True, slots=True)
class StateStore:
    """The remembered batches of one topic.

    Attributes:
        files: where.
        directory: of this topic alone.
    """

    files: Files
    directory: str

    def load(self) -> Remembered:
        """What is remembered.

        Raises:
            StateError: a file cannot be read.
        """
        names = self.files.names(self.directory)
        done = max((name for name in names if name.endswith(".done.json")), default=None)
        planned = max((name for name in names if name.endswith(".plan.json")), default=None)
        last = self._read(done) if done else None
        plan = self._read(planned) if planned else None
        if plan is not None and (last is None or plan.number > last.number):
            return Remembered(last or Batch(plan.app_id), plan)
        return Remembered(last or Batch(f"rowtide-{uuid.uuid4()}"))

    def plan(self, batch: Batch) -> None:
        """Remember what is about to be done."""
        self._create(batch, "plan")

    def finish(self, batch: Batch) -> None:
        """Remember that it is done, and forget what is long done."""
        self._create(batch, "done")
        for name in self.files.names(self.directory):
            if name < _file_name(batch.number - _KEPT_BATCHES, ""):
                self.files.delete(join(self.directory, name))

    def forget(self) -> None:
        """Start anew."""
        self.files.delete(self.directory)

    def _create(self, batch: Batch, what: str) -> None:
        self.files.create(join(self.directory, _file_name(batch.number, f".{what}.json")), batch.to_json())

    def _read(self, name: str) -> Batch:
        path = join(self.directory, name)
        try:
            return Batch.from_json(self.files.read(path))
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StateError(
                f"the remembered offsets in {path} cannot be read ({error}); start anew with --restart"
            ) from error


def _file_name(number: int, suffix: str) -> str:
    return f"{max(number, 0):08d}{suffix}"
