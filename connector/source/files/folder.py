"""The binlog files in a folder, in the order in which the server wrote them."""

import re
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from rowtide.connector.errors import OffsetError

_FILE = re.compile(r"(?P<name>(?P<base>.+)\.(?P<number>\d+))(\.gz)?")


@dataclass(frozen=True, slots=True)
class BinlogFile:
    """A binlog file on disk.

    Attributes:
        name: its name on the server.
        path: the file, plain or ``.gz``.
        number: its number; consecutive files have consecutive numbers.
    """

    name: str
    path: Path
    number: int


def binlog_files(folder: Path, *, required: bool = True) -> list[BinlogFile]:
    """Return the binlog files of a folder, oldest first; other files are ignored.

    Args:
        folder: the folder of the files.
        required: whether there must be at least one.

    Raises:
        OffsetError: there is no binlog file, one is missing or exists twice, or the folder has files of two servers.
    """
    found = [(match["base"], path, match) for path in folder.iterdir() if (match := _FILE.fullmatch(path.name))]
    if len({base for base, _, _ in found}) > 1:  # a data directory of MariaDB has aria_log.00000001, too
        found = [one for one in found if _may_be_binlog(one[1])]
    bases = {base for base, _, _ in found}
    files = [BinlogFile(match["name"], path, int(match["number"])) for _, path, match in found]
    if not files and required:
        raise OffsetError(f"no binlog files (such as binlog.000001 or mysql-bin.000042.gz) in {folder}")
    if len(bases) > 1:
        raise OffsetError(
            f"{folder} has binlog files of different names ({', '.join(sorted(bases))}): keep the files of "
            "each server in a separate folder"
        )
    files.sort(key=lambda file: file.number)
    for one, following in pairwise(files):
        if one.number == following.number:
            raise OffsetError(f"{one.path.name} and {following.path.name} in {folder} are the same binlog file")
        if following.number != one.number + 1:
            raise OffsetError(f"in {folder} a binlog file is missing between {one.name} and {following.name}")
    return files


def _may_be_binlog(path: Path) -> bool:
    """Return whether a file begins like a binlog, encrypted or not. An empty or compressed file may be anything."""
    if path.suffix == ".gz":
        return True
    with path.open("rb") as file:
        return file.read(4) in (b"", b"\xfebin", b"\xfdbin")
