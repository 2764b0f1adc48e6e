"""Files wherever Hadoop finds them: a local disk, HDFS, an object store."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from rowtide.spark_consumers.jvm.driver import driver, hadoop_configuration


@dataclass(frozen=True, slots=True)
class HadoopFiles:
    """:class:`rowtide.spark_consumers.state.Files` through the driver's Hadoop client, and renaming.

    Every method raises :class:`OSError` with the path and the reason if the file system refuses.
    """

    spark: SparkSession

    def absolute(self, path: str) -> str:
        """A path from the root of its file system; one that is absolute already stays as it is."""
        with _at(path):
            system, found = self._find(path)
            return path if found.isAbsolute() else str(system.makeQualified(found))

    def names(self, directory: str) -> list[str]:
        """Names in a directory; none if it does not exist."""
        with _at(directory) as path:
            system, found = self._find(path)
            if not system.exists(found):
                return []
            return sorted(str(status.getPath().getName()) for status in system.listStatus(found))

    def exists(self, path: str) -> bool:
        """Whether there is such a file or directory."""
        with _at(path):
            system, found = self._find(path)
            return bool(system.exists(found))

    def size(self, path: str) -> int:
        """Bytes of a directory and all that is in it; 0 if it does not exist."""
        with _at(path):
            system, found = self._find(path)
            return int(system.getContentSummary(found).getLength()) if system.exists(found) else 0

    def read(self, path: str) -> str:
        """A file's text."""
        with _at(path):
            system, found = self._find(path)
            stream = system.open(found)
            try:
                return str(driver(self.spark).org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def create(self, path: str, text: str) -> None:
        """Write a file under a temporary name and give it its own when it is complete."""
        directory, _, name = path.rpartition("/")
        temporary = f"{directory}/.{name}.tmp"
        with _at(temporary):
            system, hidden = self._find(temporary)
            stream = system.create(hidden, True)
            try:
                stream.write(text.encode())
            finally:
                stream.close()
        self.delete(path)
        self.rename(temporary, path)

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name; the target must not exist."""
        with _at(source):
            system, found = self._find(source)
            _, aim = self._find(target)
            system.mkdirs(aim.getParent())
            if not system.rename(found, aim):
                raise OSError(f"cannot rename {source} to {target}")

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        with _at(path):
            system, found = self._find(path)
            system.delete(found, True)

    def _find(self, path: str) -> tuple[Any, Any]:
        found = driver(self.spark).org.apache.hadoop.fs.Path(path)
        return found.getFileSystem(hadoop_configuration(self.spark)), found


@contextmanager
def _at(path: str) -> Iterator[str]:
    """Tell an error of Hadoop as one of Python, without its stack."""
    try:
        yield path
    except Py4JJavaError as error:
        java = error.java_exception
        raise OSError(f"{path}: {java.getMessage() or java.toString()}") from error
