"""The offset file of a client, in the original's TOML form.

::

    mastername = "binlog.000003"
    masterpos = 154
    offset = 17

The event with this key, at this offset of the topic, is done. ``inclusive = true`` follows these lines if the event is
not done yet: after a dump, and at an explicit start. ``dumpend = 20`` follows after a dump: from this offset, the topic
has only events after the dump. The original does not have these lines, and loses the first event.
"""

import tomllib
from dataclasses import dataclass
from json import dumps
from pathlib import Path

from rowtide.databus.errors import OffsetFileError
from rowtide.databus.events import Position
from rowtide.synced_files import replace_file


@dataclass(frozen=True, slots=True)
class ClientProgress:
    """The progress of a client (``ReplicateInfo``).

    Attributes:
        position: the key of an event.
        offset: its offset in the topic; if ``inclusive``, it may be after that.
        inclusive: whether the event is not done yet.
        dump_end: the offset from which the dump has no events; ``None`` if it is not known.
    """

    position: Position
    offset: int
    inclusive: bool = False
    dump_end: int | None = None

    def encoded(self) -> str:
        """Return the text of the file."""
        lines = [
            f"mastername = {_quoted(self.position.file)}",
            f"masterpos = {self.position.pos}",
            f"offset = {self.offset}",
        ]
        lines += ["inclusive = true"] if self.inclusive else []
        lines += [] if self.dump_end is None else [f"dumpend = {self.dump_end}"]
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """Return a basic string of TOML."""
    return dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def load(path: Path) -> ClientProgress | None:
    """Read the file (``LoadRepliInfo``); ``None`` if there is none.

    Raises:
        OffsetFileError: it is damaged, or cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise OffsetFileError(f"the offset file {path} cannot be read: {error}") from error
    try:
        match tomllib.loads(text):
            case {"mastername": str(name), "masterpos": int(pos), "offset": int(offset), **rest} if name:
                end = rest.get("dumpend")
                end = end if isinstance(end, int) else None
                return ClientProgress(Position(name, pos), offset, rest.get("inclusive") is True, end)
    except tomllib.TOMLDecodeError:
        pass
    raise OffsetFileError(
        f"the offset file {path} is damaged: it needs mastername, masterpos and offset, but has {text[:200]!r}. "
        "Restore a copy of it, or remove it and begin with firstload, or with mastername and masterpos"
    )


def save(path: Path, progress: ClientProgress) -> None:
    """Replace the file in one step (``SaveRpl``): it has the old or the new content, even after a crash.

    Raises:
        OffsetFileError: it cannot be written.
    """
    try:
        replace_file(path, progress.encoded().encode())
    except OSError as error:
        raise OffsetFileError(f"the offset file {path} cannot be written: {error}") from error
