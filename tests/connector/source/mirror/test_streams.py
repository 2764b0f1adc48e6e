"""The stream from a server and a mirror, and what the log says about change-overs between the two."""

import logging
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.errors import PositionPurged
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.mirror.folder import MirrorFolder, Origin
from rowtide.connector.source.mirror.streams import ChangeOvers, StreamWithMirror, check_with_mirror
from rowtide.connector.source.position.rules import PositionCheck
from tests.support.mysql.dumped_files import golden_binlogs
from tests.support.recordings.golden import Case

PURGED = PositionPurged("the stream cannot resume. Connect to another server, or take a new snapshot")


class Source:
    """A stream of one event, or of an error."""

    def __init__(self, event: bytes | PositionPurged) -> None:
        self._event = event

    def events(self) -> Generator[list[bytes], None, None]:
        yield []
        if isinstance(self._event, PositionPurged):
            raise self._event
        yield [self._event]

    def yield_often(self, *, often: bool) -> None: ...

    def requested_acknowledgement(self) -> Callable[[], None] | None: ...

    def taken_bytes(self) -> int:
        return 0


def test_the_log_names_each_change_over_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    changes = ChangeOvers(Path("/archive"))
    server, mirror = Source(b"server"), Source(b"mirror")
    found = []
    for number, source in enumerate([server, Source(PURGED), Source(PURGED), server, server, Source(PURGED)], 1):
        stream = StreamWithMirror(source, mirror, changes, SourceOffset(f"b.{number}", 4))
        found += [packet for packets in stream.events() for packet in packets]
    assert found == [b"server", b"mirror", b"mirror", b"server", b"server", b"mirror"]
    begins = "the server has purged the binlog at b.{}:4. The following events are read from the mirror /archive"
    assert [message.partition(", until")[0] for message in caplog.messages] == [
        begins.format(2),
        "the server has the binlog at b.4:4. The following events are read from the server again",
        begins.format(6),
    ]


def test_the_error_names_both_if_neither_has_the_position() -> None:
    lacks = PositionPurged("the mirror does not have it either")
    stream = StreamWithMirror(Source(PURGED), Source(lacks), ChangeOvers(Path("/archive")), SourceOffset("b.1", 4))
    with pytest.raises(PositionPurged, match=r"cannot resume.*; the mirror does not have it either"):
        list(stream.events())


def test_a_check_says_that_the_mirror_is_read(tmp_path: Path) -> None:
    with MirrorFolder(tmp_path) as mirror:
        mirror.claim(Origin("mysql", "server"))
    files = golden_binlogs("gtid-off")
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    start = SourceOffset(min(files), 4)
    config = from_properties({**Case("keys").properties(), "rowtide.mirror.directory": str(tmp_path)})
    gone = PositionCheck(available=False, reason="it was purged", purged=True)
    found = check_with_mirror(config, gone, start)
    assert found.available
    assert found.note == f"the binlog is read from the mirror {tmp_path} (it was purged)"
    assert check_with_mirror(config, PositionCheck(available=True), start).note == ""
    elsewhere = check_with_mirror(config, gone, replace(start, file="other.000001"))
    assert (elsewhere.available, elsewhere.note) == (False, "")
