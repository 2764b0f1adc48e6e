"""Folders for the values of claim checks: local, or in an object store through fsspec."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote, urlsplit

from rowtide.connector.delivery.errors import ClaimCheckUnavailable, DeliveryError
from rowtide.synced_files import sync_folder, write_synced


class ClaimCheckFolder(Protocol):
    """Keeps values by name."""

    def url(self, name: str) -> str:
        """Return the URL of a file."""
        ...

    def put(self, name: str, value: bytes) -> None:
        """Store a value durably; a value with the same name is replaced.

        Raises:
            ClaimCheckUnavailable: it cannot currently be stored.
        """
        ...

    def get(self, name: str) -> bytes:
        """Return a value.

        Raises:
            ClaimCheckUnavailable: it cannot currently be read, or does not exist.
        """
        ...


def open_folder(url: str) -> ClaimCheckFolder:
    """Open a folder.

    Args:
        url: a path or a ``file:`` URL of an existing local folder, or a URL that fsspec supports, such as
            ``s3://bucket/folder``.

    Raises:
        DeliveryError: the folder does not exist, or fsspec or its package for such URLs is not installed.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("", "file"):
        return _RemoteFolder(url)
    path = Path(unquote(parts.path) if parts.scheme else url).absolute()
    if not os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises for some paths
        raise DeliveryError(f"the folder of claim checks {path} does not exist: create it, or mount it")
    return _LocalFolder(path)


class _LocalFolder:
    """A local folder, or one on a mounted file system."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def url(self, name: str) -> str:
        return (self._path / name).as_uri()

    def put(self, name: str, value: bytes) -> None:
        path = self._path / name
        partial = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            path.parent.mkdir(exist_ok=True)  # not the folder itself, which may be an unmounted file system
            write_synced(partial, value)
            partial.replace(path)
            sync_folder(path.parent)
            sync_folder(self._path)
        except OSError as error:
            raise ClaimCheckUnavailable(f"a value cannot be stored in {path.parent}: {error}") from error

    def get(self, name: str) -> bytes:
        try:
            return (self._path / name).read_bytes()
        except OSError as error:
            raise ClaimCheckUnavailable(f"the value of a claim check cannot be read: {error}") from error


class _RemoteFolder:
    """A folder that fsspec opens."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - an extra

            self._files, path = url_to_fs(self._url)
        except (ImportError, ValueError) as error:
            raise DeliveryError(
                f"the folder of claim checks {url} cannot be opened: {error}. Install rowtide[claim-check], and "
                "fsspec's package for such URLs, such as s3fs for s3:"
            ) from error
        self._path = path.rstrip("/")

    def url(self, name: str) -> str:
        return f"{self._url}/{name}"

    def put(self, name: str, value: bytes) -> None:
        try:
            self._write(f"{self._path}/{name}", value)
        except Exception as error:  # each file system has its own
            raise ClaimCheckUnavailable(f"a value cannot be stored as {self.url(name)}: {_shown(error)}") from error

    def _write(self, path: str, value: bytes) -> None:
        try:
            self._files.pipe_file(path, value)
        except FileNotFoundError:  # a file system that has folders
            with suppress(FileExistsError):
                self._files.mkdir(path.rpartition("/")[0], create_parents=False)  # which would create a bucket
            self._files.pipe_file(path, value)

    def get(self, name: str) -> bytes:
        try:
            value: Any = self._files.cat_file(f"{self._path}/{name}")
        except Exception as error:
            raise ClaimCheckUnavailable(
                f"the value of a claim check cannot be read from {self.url(name)}: {_shown(error)}"
            ) from error
        return bytes(value)


def _shown(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
