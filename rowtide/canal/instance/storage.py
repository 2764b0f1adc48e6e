"""Where an instance stores the positions of its clients and its schema history; by default in a folder.

The folder has Canal's ``meta.dat``, rowtide's own positions next to it, and the schema history. All files are replaced
atomically.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from rowtide.canal.instance.positions import CanalPosition, ClientPosition, Master, PositionsError, meta_text, read_meta
from rowtide.connector.errors import OffsetError
from rowtide.schema_history.store.file import FileSchemaHistory
from rowtide.schema_history.store.history_store import SchemaHistoryStore
from rowtide.synced_files import replace_file

META, OWN, HISTORY = "meta.dat", "rowtide.positions.json", "rowtide.history.dat"


@dataclass(frozen=True, slots=True)
class StoredClients:
    """The stored data of the clients.

    Attributes:
        clients: in Canal's form.
        own: rowtide's own text; ``None`` if there is none.
        parse: where reading resumes without positions of clients, in Canal's form; ``None`` if it is not stored.
    """

    clients: Sequence[ClientPosition]
    own: str | None
    parse: tuple[Master, CanalPosition] | None = None


class Storage(Protocol):
    """Stores the positions of the clients of one destination, and its schema history."""

    def load(self) -> StoredClients:
        """Return the stored data.

        Raises:
            OffsetError: the data is damaged, or cannot be read; the message says what to do.
        """
        ...

    def save(self, stored: StoredClients) -> None:
        """Store the clients, and replace the data stored before.

        Raises:
            OSError: they cannot be stored.
        """
        ...

    def history(self) -> SchemaHistoryStore:
        """Return the schema history, to be closed by the caller."""
        ...

    def forget_history(self) -> None:
        """Delete the schema history, if there is one: a new one begins with the current structures.

        Raises:
            OSError: it cannot be deleted.
        """
        ...


class FolderStorage:
    """Files in a folder.

    Args:
        folder: the folder of the files; created if it is missing.
        destination: its name.
    """

    def __init__(self, folder: Path, destination: str) -> None:
        self._folder = folder
        self._destination = destination

    def load(self) -> StoredClients:
        """Return the clients of ``meta.dat``, and the text of rowtide's own file, which is optional."""
        path = self._folder / META
        try:
            clients = read_meta(path.read_text("utf-8"))
        except FileNotFoundError:
            return StoredClients((), None)
        except OSError as error:
            raise OffsetError(f"{path} cannot be read: {error.strerror}") from error
        except (PositionsError, UnicodeDecodeError) as error:
            raise OffsetError(
                f"{path} is damaged: {error}. Restore it, or delete it: its clients then begin at "
                "canal.instance.master.* of instance.properties"
            ) from None
        try:
            own = (self._folder / OWN).read_text("utf-8")
        except (OSError, ValueError):
            own = None  # meta.dat alone is enough
        return StoredClients(clients, own)

    def save(self, stored: StoredClients) -> None:
        """Replace both files.

        The order matters: after a crash in between, rowtide's position differs from that of ``meta.dat``, and does not
        count.
        """
        self._folder.mkdir(parents=True, exist_ok=True)
        replace_file(self._folder / OWN, (stored.own or "").encode())
        replace_file(self._folder / META, meta_text(self._destination, stored.clients).encode())

    def history(self) -> SchemaHistoryStore:
        """Return the schema history in a file."""
        return FileSchemaHistory(self._folder / HISTORY)

    def forget_history(self) -> None:
        """Delete the file."""
        (self._folder / HISTORY).unlink(missing_ok=True)
