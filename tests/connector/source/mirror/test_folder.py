"""The folder of a mirror: kills, full disks, locks, other servers, and files that are deleted."""

import errno
import os
import resource
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.errors import MirrorError
from rowtide.connector.source.mirror.binlog_copy import BinlogCopy, CopyPosition, NextFile
from rowtide.connector.source.mirror.folder import MirrorFolder, MirrorRetention, Origin, began_at, origin_of
from rowtide.connector.source.mirror.mirror import continued
from tests.support.mysql.dumped_files import dumped, golden_binlogs

FILES = golden_binlogs("gtid-off")
NAMES = list(FILES)
HERE = Origin("mysql", "3e11fa47-71ca-11e1-9e33-c80aa9429562")


def follow(folder: MirrorFolder, packets_at_once: int = 3, most: int = 10**9) -> None:
    """Mirror the recorded files, at most some pieces of them."""
    at = folder.resume()
    if at is None:
        at = CopyPosition(NAMES[0])
        folder.begin(at.file)
    copy, packets = BinlogCopy(at), list(dumped(FILES, at.file, at.dump_start))
    for first in range(0, min(len(packets), most), packets_at_once):
        end = copy.at.end
        for piece in copy.receive(packets[first : first + packets_at_once]):
            if isinstance(piece, NextFile):
                folder.finish(closed=piece.closed)
                folder.begin(piece.name)
                end = 0
            elif piece:
                end += sum(map(len, piece))
                folder.append(piece, end)


def mirrored(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in sorted(path.glob("*.0*"))}


def in_use(data: bytes) -> bytes:
    return data[:21] + b"\x01" + data[22:]


WHOLE = {**FILES, NAMES[-1]: in_use(FILES[NAMES[-1]])}


def test_the_files_are_those_of_the_server_and_the_newest_is_in_use(tmp_path: Path) -> None:
    with MirrorFolder(tmp_path / "new" / "mirror") as folder:
        follow(folder)
    found = mirrored(tmp_path / "new" / "mirror")
    assert found == WHOLE
    assert (tmp_path / "new/mirror/binlog.index").read_text() == "".join(f"./{name}\n" for name in NAMES)


def test_a_file_that_the_server_did_not_close_keeps_its_flag(tmp_path: Path) -> None:
    with MirrorFolder(tmp_path) as folder:
        folder.begin("binlog.000001")
        data = in_use(FILES[NAMES[0]])
        folder.append([data], len(data))
        folder.finish(closed=False)
    assert (tmp_path / "binlog.000001").read_bytes() == data


@given(cuts=st.lists(st.tuples(st.integers(1, 40), st.integers(0, 200), st.integers(0, 30)), min_size=1, max_size=4))
@settings(max_examples=40)
def test_a_mirror_that_is_killed_again_and_again_becomes_whole(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[tuple[int, int, int]]
) -> None:
    path = tmp_path_factory.mktemp("mirror")
    for pieces, lost, garbage in cuts:
        with MirrorFolder(path) as folder:
            follow(folder, most=pieces)
        newest = max(path.glob("*.0*"))
        size = max(0, newest.stat().st_size - lost)
        os.truncate(newest, size)  # what was written last has not reached the disk,
        with newest.open("ab") as stream:
            stream.write(bytes(garbage))  # or only its length has
    with MirrorFolder(path) as folder:
        follow(folder)
    assert mirrored(path) == WHOLE


@pytest.mark.parametrize("size", [0, 1, 4, 30])
def test_a_newest_file_without_events_is_begun_again(tmp_path: Path, size: int) -> None:
    with MirrorFolder(tmp_path) as folder:
        follow(folder)
    os.truncate(tmp_path / NAMES[-1], size)
    with MirrorFolder(tmp_path) as folder:
        assert folder.resume() == CopyPosition(NAMES[-1])
        follow(folder)
    assert mirrored(tmp_path) == WHOLE


def test_a_full_disk_damages_nothing_and_the_mirror_continues_later(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))  # a write beyond is cut, as on a full disk
    try:
        with (
            MirrorFolder(tmp_path) as folder,
            pytest.raises(MirrorError, match=r"be written: File too large\. R"),
        ):
            follow(folder, packets_at_once=50)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with MirrorFolder(tmp_path) as folder:
        follow(folder)
    assert mirrored(tmp_path) == WHOLE


def test_an_event_that_does_not_fit_is_removed_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with MirrorFolder(tmp_path) as folder:
        follow(folder, most=9)
        at = folder.resume()
        assert at is not None
        write = os.pwrite

        def full(number: int, data: bytes, offset: int) -> int:
            if offset > at.end:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return write(number, data[:10], offset)

        monkeypatch.setattr(os, "pwrite", full)
        with pytest.raises(MirrorError, match=r"No space left on device\. Free space, or limit the mirror with --keep"):
            folder.append([bytes(100)], at.end + 100)
    assert (tmp_path / at.file).stat().st_size == at.end


def test_a_directory_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MirrorError, match=r"mirror .*file/mirror cannot be written: Not a directory"):
        MirrorFolder(tmp_path / "file" / "mirror")


def test_two_mirrors_in_one_directory_are_refused(tmp_path: Path) -> None:
    message = r"another process writes the mirror .*choose another directory \(--to\)"
    with MirrorFolder(tmp_path), pytest.raises(MirrorError, match=message):
        MirrorFolder(tmp_path)
    with MirrorFolder(tmp_path):
        pass


def test_another_server_is_refused(tmp_path: Path) -> None:
    with MirrorFolder(tmp_path) as folder:
        folder.claim(HERE)
        folder.claim(HERE)
        with pytest.raises(MirrorError, match=r"mirror of mysql server 3e11.*and this is mariadb server 2: choose"):
            folder.claim(Origin("mariadb", "2"))
    assert origin_of(tmp_path) == HERE


def test_files_of_an_unknown_server_are_not_continued(tmp_path: Path) -> None:
    (tmp_path / "binlog.000001").touch()
    with MirrorFolder(tmp_path) as folder, pytest.raises(MirrorError, match=r"has binlog files, but no mirror\.json"):
        folder.claim(HERE)
    for text in ("{", "[]", '{"flavor": "mysql"}'):
        (tmp_path / "mirror.json").write_text(text)
        with pytest.raises(MirrorError, match=r"mirror\.json cannot be read: .* write \{"):
            origin_of(tmp_path)


def test_the_oldest_files_are_deleted_beyond_a_size(tmp_path: Path) -> None:
    with MirrorFolder(tmp_path) as folder:
        follow(folder)
        sizes = [len(data) for data in FILES.values()]
        assert folder.size() == (len(sizes), sum(sizes))
        assert folder.prune(MirrorRetention(sum(sizes)), 0) == []
        assert folder.prune(MirrorRetention(sum(sizes) - 1), 0) == NAMES[:1]
        assert folder.prune(MirrorRetention(sum(sizes[2:])), 0) == NAMES[1:2]
        assert (tmp_path / "binlog.index").read_text() == "".join(f"./{name}\n" for name in NAMES[2:])
        assert folder.prune(MirrorRetention(0), 0) == NAMES[2:-1]
    assert list(mirrored(tmp_path)) == NAMES[-1:]


def test_files_are_deleted_when_their_last_event_is_too_old(tmp_path: Path) -> None:
    with MirrorFolder(tmp_path) as folder:
        follow(folder)
        began = [began_at(tmp_path / name) for name in NAMES]
        ends = [one for one in began[1:] if one is not None]
        assert folder.prune(MirrorRetention(age_s=100), ends[0] + 100) == []
        old = [name for name, end in zip(NAMES, ends, strict=False) if end < ends[1] + 1]
        assert folder.prune(MirrorRetention(age_s=100), ends[1] + 101) == old
        assert folder.prune(MirrorRetention(age_s=0), 2**40) == NAMES[len(old) : -1]


def test_a_compressed_newest_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "binlog.000001.gz").touch()
    with MirrorFolder(tmp_path) as folder, pytest.raises(MirrorError, match="is compressed"):
        folder.resume()


def test_where_a_mirror_continues() -> None:
    last = FILES[NAMES[0]][-44:]
    at = CopyPosition(NAMES[0], len(FILES[NAMES[0]]), last)
    assert at.complete
    assert continued(at, [(NAMES[0], at.end), (NAMES[1], 200)]) == at
    assert continued(at, [(NAMES[1], 200), (NAMES[2], 200)]) == CopyPosition(NAMES[1])
    with pytest.raises(MirrorError, match=rf"purged the following events \(it has {NAMES[2]} to {NAMES[2]}\)"):
        continued(at, [(NAMES[2], 200)])
    with pytest.raises(MirrorError, match="the server has purged the following events"):
        continued(CopyPosition(NAMES[0], 300, FILES[NAMES[0]][4:127]), [(NAMES[1], 200)])
    with pytest.raises(MirrorError, match=rf"{NAMES[0]} ends at 150, and the mirrored one at {at.end}: its"):
        continued(at, [(NAMES[0], 150)])
    with pytest.raises(MirrorError, match="it has none"):
        continued(at, [])
