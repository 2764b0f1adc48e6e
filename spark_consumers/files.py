"""Files wherever Hadoop finds them: a local disk, HDFS, an object store."""

from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from rowtide.spark_consumers.driver import driver, hadoop_configuration


@dataclass(frozen=True, slots=True)
class HadoopFiles:
    """:class:`rowtide.spark_consumers.state.Files` through the driver's Hadoop client, and renaming."""

    spark: SparkSession

    def names(self, directory: str) -> list[str]:
        """Names in a directory; none if it does not exist."""
        system, path = self._find(directory)
        if not system.exists(path):
            return []
        return sorted(str(status.getPath().getName()) for status in system.listStatus(path))

    def exists(self, path: str) -> bool:
        """Whether there is such a file or directory."""
        system, found = self._find(path)
        return bool(system.exists(found))

    def size(self, path: str) -> int:
        """Bytes of a directory and all that is in it; 0 if it does not exist."""
        system, found = self._find(path)
        return int(system.getContentSummary(found).getLength()) if system.exists(found) else 0

    def read(self, path: str) -> str:
        """A file's text."""
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
        system, hidden = self._find(temporary)
        stream = system.create(hidden, True)
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        self.delete(path)
        self.rename(temporary, path)

    def rename(self, source: str, target: str) -> None:
        """Give a file or directory another name; the target must not exist.

        Raises:
            OSError: the file system refused.
        """
        system, found = self._find(source)
        _, aim = self._find(target)
        system.mkdirs(aim.getParent())
        if not system.rename(found, aim):
            raise OSError(f"cannot rename {source} to {target}")

    def delete(self, path: str) -> None:
        """Remove a file, or a directory with all that is in it."""
        system, found = self._find(path)
        system.delete(found, True)

    def _find(self, path: str) -> tuple[Any, Any]:
        found = driver(self.spark).org.apache.hadoop.fs.Path(path)
        return found.getFileSystem(hadoop_configuration(self.spark)), found
