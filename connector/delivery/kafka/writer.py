"""The process that wrote an offset record. rowtide names it in a header, which Kafka Connect ignores."""

import json
import os
import platform
import secrets
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from datetime import UTC, datetime

HEADER = "rowtide.writer"


@dataclass(frozen=True, slots=True)
class Writer:
    """A process of rowtide that stores offsets.

    Attributes:
        started_ms: when it started, in milliseconds since the epoch.
        id: a random text that is unique to the process.
        host: the name of its machine.
        pid: its process id there.
    """

    started_ms: int
    id: str
    host: str
    pid: int

    @classmethod
    def parse(cls, headers: Iterable[tuple[str, bytes | None]]) -> "Writer | None":
        """Return the writer that the headers of a record name; ``None`` if another program wrote it."""
        text = dict(headers).get(HEADER)
        try:
            fields = json.loads(text or b"")
            found = cls(int(fields["started_ms"]), str(fields["id"]), str(fields["host"]), int(fields["pid"]))
            _started(found)
        except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
            return None
        return found

    def header(self) -> tuple[str, bytes]:
        """Return the header of its records."""
        return HEADER, json.dumps(asdict(self), separators=(",", ":")).encode()

    def newer_than(self, other: "Writer") -> bool:
        """Return whether it started after another one. Of two different writers, exactly one is newer."""
        return (self.started_ms, self.id) > (other.started_ms, other.id)

    @property
    def may_run(self) -> bool:
        """Whether the process may still run; ``False`` if it ran on this machine and has ended."""
        if self.host != platform.node():
            return True
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return False
        except (OSError, OverflowError):
            return True
        return True

    def __str__(self) -> str:
        return f"rowtide on {self.host} (process {self.pid}, started {_started(self)})"


def _started(writer: Writer) -> str:
    return datetime.fromtimestamp(writer.started_ms / 1000, UTC).isoformat(" ", "seconds")


THIS_PROCESS = Writer(time.time_ns() // 1_000_000, secrets.token_hex(8), platform.node(), os.getpid())
