"""Files through Hadoop's client in Spark's driver: on a local disk, HDFS or an object store."""

import errno
import fcntl
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from rowtide.spark_consumers.jvm.driver import hadoop_configuration, java_class

_NO_LOCKS = {errno.ENOTSUP, errno.ENOLCK, errno.ENOSYS}


@dataclass(frozen=True, slots=True)
class HadoopFiles:
    """The :class:`rowtide.spark_consumers.state.Files` of every file system that Hadoop supports, and renaming.

    Every method raises :class:`OSError` with the path and the reason if the file system refuses.
    """

    spark: SparkSession

    def absolute(self, path: str) -> str:
        """Return an absolute path: the path itself, or one below the working directory of its file system."""
        with _python_errors(path):
            system, found = self._resolve(path)
            return path if found.isAbsolute() else str(system.makeQualified(found))

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory, none if it does not exist."""
        with _python_errors(directory) as path:
            system, found = self._resolve(path)
            if not system.exists(found):
                return []
            return sorted(str(status.getPath().getName()) for status in system.listStatus(found))

    def exists(self, path: str) -> bool:
        """Return whether a file or directory exists."""
        with _python_errors(path):
            system, found = self._resolve(path)
            return bool(system.exists(found))

    def size(self, path: str) -> int:
        """Return the size in bytes of a directory with its content, 0 if it does not exist."""
        with _python_errors(path):
            system, found = self._resolve(path)
            return int(system.getContentSummary(found).getLength()) if system.exists(found) else 0

    def sizes_and_times(self, directory: str) -> dict[str, tuple[int, int]]:
        """Return the size in bytes and the time of change, in ms since 1970, of the files in a directory by name."""
        with _python_errors(directory):
            system, found = self._resolve(directory)
            return {
                str(one.getPath().getName()): (int(one.getLen()), int(one.getModificationTime()))
                for one in system.listStatus(found)
            }

    def read(self, path: str) -> str:
        """Return a file's text."""
        with _python_errors(path):
            system, found = self._resolve(path)
            stream = system.open(found)
            try:
                return str(java_class(self.spark, "org.apache.commons.io.IOUtils").toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create(self, path: str, text: str) -> None:
        """Write a file under a temporary name, then rename it."""
        temporary = self._write_temporary(path, text)
        self.delete(path)
        self.rename(temporary, path)

    def create_new(self, path: str, text: str) -> None:
        """Write a file like :meth:`create`, but never replace one.

        Raises:
            FileExistsError: the file exists.
        """
        if self.exists(path):
            raise FileExistsError(path)
        temporary = self._write_temporary(path, text)
        local_temporary, local = self._local_path(temporary), self._local_path(path)
        try:
            if local_temporary is not None and local is not None:
                os.link(local_temporary, local)  # Hadoop's rename would replace an existing local file
            else:
                self.rename(temporary, path)
        except OSError as error:
            if self.exists(path):
                raise FileExistsError(path) from error
            raise
        finally:
            self.delete(temporary)

    def rename(self, source: str, target: str) -> None:
        """Rename a file or directory; the target must not exist."""
        with _python_errors(source):
            system, found = self._resolve(source)
            _, new = self._resolve(target)
            system.mkdirs(new.getParent())
            if not system.rename(found, new):
                raise OSError(f"cannot rename {source} to {target}")

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with its content, if it exists."""
        with _python_errors(path):
            system, found = self._resolve(path)
            system.delete(found, True)

    @contextmanager
    def lock(self, path: str) -> Iterator[None]:
        """Hold a lock on a local file system while the context is open; other file systems have none.

        The operating system releases the lock when the process ends, for whatever reason.

        Raises:
            BlockingIOError: another process or thread holds it; the text says which one.
        """
        local = self._local_path(path)
        if local is None:
            yield
            return
        local.parent.mkdir(parents=True, exist_ok=True)
        with local.open("a+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                raise BlockingIOError(file.read().strip() or "another process") from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            file.truncate(0)
            file.write(f"process {os.getpid()} on {socket.gethostname()}\n")
            file.flush()
            yield

    def _write_temporary(self, path: str, text: str) -> str:
        directory, _, name = path.rpartition("/")
        temporary = f"{directory}/.{name}.{uuid.uuid4().hex}.tmp"
        with _python_errors(temporary):
            system, hidden = self._resolve(temporary)
            stream = system.create(hidden, False)
            try:
                stream.write(text.encode())
            finally:
                stream.close()
        return temporary

    def _resolve(self, path: str) -> tuple[Any, Any]:
        """Return Hadoop's file system and path."""
        found = java_class(self.spark, "org.apache.hadoop.fs.Path")(path)
        return found.getFileSystem(hadoop_configuration(self.spark)), found

    def _local_path(self, path: str) -> Path | None:
        """Return the path on the local disk, ``None`` for any other file system."""
        with _python_errors(path):
            system, found = self._resolve(path)
            local = str(system.getUri().getScheme()) == "file"
            return Path(str(system.makeQualified(found).toUri().getPath())) if local else None


@contextmanager
def _python_errors(path: str) -> Iterator[str]:
    """Raise an error of Hadoop as :class:`OSError`, without its stack trace."""
    try:
        yield path
    except Py4JJavaError as error:
        java = error.java_exception
        raise OSError(f"{path}: {java.getMessage() or java.toString()}") from error
