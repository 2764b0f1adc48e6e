"""Chooses the first file of a new mirror."""

from collections.abc import Sequence

from rowtide.connector.config.model.database import DatabaseConfig
from rowtide.connector.errors import MirrorError
from rowtide.connector.source.mirror.mirror import StartFile
from rowtide.connector.source.search.places import ServerFiles
from rowtide.connector.source.search.positions import file_of_gtids
from rowtide.schema_history.position.binlog_position import parse_gtids


def start_file(start: str, config: DatabaseConfig, *, mariadb: bool) -> StartFile:
    """Return the choice that ``--start`` describes: ``oldest``, ``newest``, the name of a file, or a GTID set.

    The returned function raises :class:`MirrorError` if the server does not have the file.
    """

    def choose(files: Sequence[tuple[str, int]]) -> str:
        names = [name for name, _ in files]
        known = f"the server has {names[0]} to {names[-1]}"
        if start in ("oldest", "newest"):
            return names[0 if start == "oldest" else -1]
        if start in names:
            return start
        try:
            gtids = parse_gtids(start)
        except ValueError:
            raise MirrorError(
                f"the server has no binlog file {start} ({known}), and it is not a GTID set (--start)"
            ) from None
        found = file_of_gtids(ServerFiles(config, files, mariadb=mariadb), gtids)
        if found is None:
            raise MirrorError(
                f"the server has purged transactions that are not in {start} ({known}): choose --start oldest"
            )
        return found

    return choose
