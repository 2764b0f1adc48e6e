"""The content of files, which is read again when they change."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from rowtide.connector.config.errors import ConfigurationError

log = logging.getLogger(__name__)

T = TypeVar("T")


class ChangingFiles(Generic[T]):
    """The current content of some files.

    Args:
        paths: the files.
        read: reads them; it raises ``ConfigurationError`` if one is wrong.
        former: the log text about the former content when files have changed and are wrong.

    Raises:
        ConfigurationError: from ``read``.
    """

    def __init__(self, paths: Sequence[str], read: Callable[[], T], former: str) -> None:
        self._paths = [Path(path) for path in paths]
        self._read, self._former = read, former
        self._versions = self._stats()
        self._content = read()

    def __call__(self) -> T:
        """Return the content of the current files, or, with a log line, the last correct content if they are wrong."""
        versions = self._stats()
        if versions != self._versions:
            self._versions = versions
            try:
                self._content = self._read()
                log.info("%s has changed; the web server now uses the new content", self._paths[0])
            except ConfigurationError as error:
                log.error("%s has changed, but is invalid, so %s: %s", self._paths[0], self._former, error)  # noqa: TRY400 - no traceback for users' mistakes
        return self._content

    def _stats(self) -> list[tuple[int, int, int] | None]:
        return [_version(path) for path in self._paths]


def _version(path: Path) -> tuple[int, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
