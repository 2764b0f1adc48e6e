"""The file of signals: each line is a signal once, also if lines are appended while it is read, and after a crash."""

import errno
import json
import threading
from collections.abc import Iterable
from pathlib import Path

import pytest

from rowtide.connector.errors import SignalError
from rowtide.connector.signals.channel import ChannelFailed
from rowtide.connector.signals.file_channel import FileChannel
from rowtide.connector.signals.inbox import ReceivedSignal


def channel(path: Path, start: object = None) -> FileChannel:
    return FileChannel(path, start, lambda: "new-id")


def line(number: int) -> str:
    return json.dumps({"id": str(number), "type": "log", "data": {"message": "x"}}) + "\n"


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def ids(received: Iterable[ReceivedSignal]) -> list[str]:
    return [str(one.signal) if isinstance(one.signal, SignalError) else one.signal.id for one in received]


def taken(path: Path) -> list[Path]:
    return sorted(path.parent.glob("*.taken"))


def test_lines_are_signals_and_are_removed(tmp_path: Path) -> None:
    path = tmp_path / "signals.txt"
    file = channel(path)
    assert list(file.poll()) == [], "there need not be a file"
    append(path, f"{line(1)}\n{line(2)}no json\n")
    path.chmod(0o664)
    received = list(file.poll())
    assert ids(received)[:2] == ["1", "2"]
    assert ids(received)[2].startswith("a signal is not JSON")
    assert path.read_text() == ""
    assert path.stat().st_mode & 0o777 == 0o664
    assert len(taken(path)) == 1, "kept until the effects are stored"
    file.stored(received[1].position)
    file.stored(received[1].position)
    assert len(taken(path)) == 1, "the third one is not stored"
    file.stored(received[2].position)
    assert taken(path) == []
    assert list(file.poll()) == []


@pytest.mark.parametrize("done", [0, 1, 3])
def test_a_crash_repeats_what_was_not_stored_and_nothing_else(tmp_path: Path, done: int) -> None:
    path = tmp_path / "signals.txt"
    append(path, line(1) + line(2) + line(3))
    received = list(channel(path).poll())
    append(path, line(4))
    position = received[done - 1].position if done else None
    again = channel(path, position)
    found = []
    for _ in range(3):
        found += ids(again.poll())
        again.stored(position)
    assert found == ["1", "2", "3", "4"][done:]


def test_a_line_that_comes_late_into_a_taken_file_counts(tmp_path: Path) -> None:
    """A writer may have opened the file before it was taken."""
    path = tmp_path / "signals.txt"
    append(path, line(1))
    with path.open("a") as writer:
        file = channel(path)
        received = list(file.poll())
        assert ids(received) == ["1"]
        writer.write(line(2))
        writer.flush()
        file.stored(received[-1].position)
        received = list(file.poll())
        assert ids(received) == ["2"]
    file.stored(received[-1].position)
    file.stored(received[-1].position)
    assert taken(path) == []


def test_a_line_without_an_end_counts_when_no_writer_has_the_file_open(tmp_path: Path) -> None:
    path = tmp_path / "signals.txt"
    file = channel(path)
    with path.open("a") as writer:
        writer.write(line(1) + line(2)[:20])
        writer.flush()
        received = list(file.poll())
        assert ids(received) == ["1"]
        file.stored(received[0].position)
        writer.write(line(2)[20:-1])
    received = list(file.poll())
    assert ids(received) == ["2"]
    file.stored(received[0].position)
    assert taken(path) == []


def test_a_file_of_unknown_writers_is_kept_for_some_seconds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_lease(*_arguments: object) -> None:
        raise PermissionError

    monkeypatch.setattr("fcntl.fcntl", no_lease)
    path = tmp_path / "signals.txt"
    append(path, line(1))
    written = path.stat().st_mtime_ns
    now = written
    file = FileChannel(path, None, lambda: "new-id", lambda: now)
    (received,) = file.poll()
    file.stored(received.position)
    assert len(taken(path)) == 1
    now = written + 6 * 10**9
    file.stored(received.position)
    assert taken(path) == []


def test_no_line_is_lost_while_others_append(tmp_path: Path) -> None:
    path = tmp_path / "signals.txt"
    path.touch()
    total, writers = 400, 2

    def write(first: int) -> None:
        for number in range(first, total, writers):
            append(path, line(number))

    threads = [threading.Thread(target=write, args=(first,)) for first in range(writers)]
    for thread in threads:
        thread.start()
    file, found = channel(path), list[str]()
    position: object = None
    while True:
        written = not any(thread.is_alive() for thread in threads)
        received = list(file.poll())
        found += ids(received)
        position = received[-1].position if received else position
        file.stored(position)
        if written and not received and path.stat().st_size == 0 and not taken(path):
            break
    assert sorted(map(int, found)) == list(range(total))


def test_a_file_that_cannot_be_renamed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_self: Path, _target: Path) -> Path:
        raise OSError(errno.EBUSY, "Device or resource busy")  # a file that is mounted into a container

    monkeypatch.setattr(Path, "rename", refuse)
    path = tmp_path / "signals.txt"
    append(path, line(1))
    with pytest.raises(ChannelFailed, match=r"signals\.txt \(signal\.file\).*mount the folder"):
        list(channel(path).poll())
    assert path.read_text() == line(1)
