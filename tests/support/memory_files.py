"""Files in memory, for the progress of table jobs."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field


@dataclass(slots=True)
class MemoryFiles:
    """Files in memory, by path. For tests."""

    texts: dict[str, str] = field(default_factory=dict)

    def names(self, directory: str) -> list[str]:
        """Return the names in a directory."""
        prefix = directory + "/"
        return sorted({path[len(prefix) :].split("/")[0] for path in self.texts if path.startswith(prefix)})

    def read(self, path: str) -> str:
        """Return a file's text."""
        return self.texts[path]

    def create(self, path: str, text: str) -> None:
        """Write a file."""
        self.texts[path] = text

    def create_new(self, path: str, text: str) -> None:
        """Write a file that does not exist."""
        if path in self.texts:
            raise FileExistsError(path)
        self.texts[path] = text

    def delete(self, path: str) -> None:
        """Remove a file or directory."""
        self.texts = {
            name: text for name, text in self.texts.items() if name != path and not name.startswith(path + "/")
        }

    def lock(self, path: str) -> AbstractContextManager[None]:
        """Do nothing: these files belong to one test."""
        return nullcontext()
