"""The folder of dumps: who may read it."""

import os
import stat
from pathlib import Path

from rowtide.databus.server.dumps.folder import DumpFolder
from rowtide.databus.server.dumps.source import DumpPart


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_other_users_cannot_read_the_rows(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        folder = DumpFolder(tmp_path / "new" / "dumps")
        name = folder.new_name()
        with folder.writer(name) as writer:
            (part,) = folder.path.iterdir()
            assert mode(part) == 0o640, "while it is written, too"
            writer.add(DumpPart(b"{}", 1))
            writer.complete(17)
    finally:
        os.umask(before)
    assert (mode(folder.path), mode(folder.path / name)) == (0o750, 0o640)


def test_a_folder_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    assert mode(DumpFolder(tmp_path).path) == 0o700
