"""The events of a mirror, which are those that its server would send, also while the mirror grows."""

import gzip
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from rowtide.connector.errors import OffsetError, PositionPurged, RemoteProtocolError, TruncatedEvent
from rowtide.connector.protocol import events
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ARTIFICIAL, HEADER, EventType
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.files.heads import read_head
from rowtide.connector.source.mirror import reader
from rowtide.connector.source.mirror.folder import MirrorFolder, Origin
from rowtide.connector.source.mirror.reader import MirrorStream, mirror_check
from rowtide.connector.source.search.places import FolderFiles
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from tests.support.mysql.dumped_files import dumped, golden_binlogs

CASES = ["restart-between-stages", "mariadb-transaction-boundaries", "gtid-off"]


def connector_of(case: str) -> str:
    return "mariadb" if case.startswith("mariadb") else "mysql"


def mirror_of(case: str, folder: Path) -> dict[str, bytes]:
    """Write the files of a case into a folder."""
    with MirrorFolder(folder) as mirror:
        mirror.claim(Origin(connector_of(case), "server"))
    files = golden_binlogs(case)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    return files


def all_of(folder: Path, start: SourceOffset, connector: str) -> list[bytes]:
    """The events from a position to the end, over a stream for each file."""
    found: list[bytes] = []
    while True:
        decoder = EventDecoder()  # as every new stream has one
        stream = MirrorStream(folder, start, connector, follow=False)
        part = [packet for packets in stream.events() for packet in packets]
        for packet in part:
            decoder.decode(packet)
        found += part
        if decoder.position != 4 or not list(folder.glob(f"{decoder.file}*")):
            return found
        start = SourceOffset(decoder.file, 4)


def sent(packets: Iterator[bytes] | list[bytes]) -> list[bytes]:
    """What a server sends, without what it makes up: ROTATE and heartbeats."""
    return [packet for packet in packets if packet[4] != EventType.HEARTBEAT and not packet[17] & ARTIFICIAL]


@pytest.mark.parametrize("case", CASES)
def test_the_events_from_any_position_are_those_of_the_server(case: str, tmp_path: Path) -> None:
    files = mirror_of(case, tmp_path)
    name, data = next(iter(files.items()))
    position = 4
    with (tmp_path / name).open("rb") as stream:
        packets = list(binlog_packets(stream, name))
    for packet in packets:
        found = all_of(tmp_path, SourceOffset(name, position), connector_of(case))
        assert sent(found) == sent(dumped(files, name, position))
        position += len(packet)
    assert position == len(data)


@pytest.mark.parametrize("case", CASES[:2])
def test_with_gtids_the_transactions_are_those_that_are_not_in_the_set(case: str, tmp_path: Path) -> None:
    files = mirror_of(case, tmp_path)
    connector = connector_of(case)
    gtids: GtidSet | MariadbGtidPosition = GtidSet() if connector == "mysql" else MariadbGtidPosition()
    every = sorted_gtids(dumped(files, next(iter(files)), 4))
    for number, gtid in enumerate(every):
        found: list[str] = []
        start = SourceOffset("", 4, str(gtids))
        while len(found) < len(every) - number:
            stream = MirrorStream(tmp_path, start, connector, follow=False)
            taken = sorted_gtids(packet for packets in stream.events() for packet in packets)
            found += taken
            for one in taken:
                start = SourceOffset("", 4, f"{start.gtids},{one}" if connector == "mysql" or not start.gtids else one)
        assert found == every[number:]
        gtids = type(gtids).parse(f"{gtids},{gtid}" if connector == "mysql" else gtid)
    with pytest.raises(PositionPurged, match="ends there, too: nothing after it is mirrored"):
        list(MirrorStream(tmp_path, SourceOffset("", 4, str(gtids)), connector, follow=False).events())


def all_events(stream: MirrorStream) -> list[bytes]:
    return [packet for packets in stream.events() for packet in packets]


@pytest.mark.parametrize("case", CASES[:2])
def test_with_gtids_a_newest_file_without_them_is_left_for_later(case: str, tmp_path: Path) -> None:
    """A mirror that is killed may leave a file that ends after its FORMAT_DESCRIPTION."""
    files = mirror_of(case, tmp_path)
    one, two = files
    head = read_head(two, FolderFiles(tmp_path).events(two))
    assert head is not None
    start = SourceOffset("", 4, str(head.gtids))
    complete = all_events(MirrorStream(tmp_path, start, connector_of(case), follow=False))
    (tmp_path / f"{two[:-1]}3").write_bytes(files[one][: 4 + HEADER.unpack_from(files[one], 4)[3]])
    assert all_events(MirrorStream(tmp_path, start, connector_of(case), follow=False))[:-1] == complete
    (tmp_path / f"{two[:-1]}3").write_bytes(b"")
    assert all_events(MirrorStream(tmp_path, start, connector_of(case), follow=False))[:-1] == complete


def sorted_gtids(packets: Iterator[bytes]) -> list[str]:
    """The GTIDs of events, in order."""
    decoder, found = EventDecoder(), []
    for packet in packets:
        event = decoder.decode(packet)
        if isinstance(event, events.Gtid):
            found.append(event.text)
        elif isinstance(event, events.MariadbGtidEvent):
            found.append(str(event.gtid))
    return found


def test_a_mirror_that_grows_byte_by_byte_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "_SHORT_TICK_S", 0.0005)
    files = golden_binlogs(CASES[0])
    (one, first), (two, second) = files.items()
    (tmp_path / one).touch()
    stream = MirrorStream(tmp_path, SourceOffset(one, 4), "mysql", follow=True)
    stream.yield_often(often=True)
    found: list[bytes] = []
    reading = stream.events()
    for name, data in ((one, first), (two, second)):
        with (tmp_path / name).open("ab", buffering=0) as file:
            for position in range(0, len(data), 7):
                file.write(data[position : position + 7])
                found += next(reading)
    while sent(found) != sent(dumped(files, one, 4)):
        found += next(reading)
    assert stream.taken_bytes() == len(first) + len(second)
    stream.close()
    assert list(reading) == []


def test_compressed_files_are_read_and_damaged_ones_are_an_error(tmp_path: Path) -> None:
    files = mirror_of(CASES[0], tmp_path)
    one = next(iter(files))
    (tmp_path / one).unlink()
    packed = gzip.compress(files[one])
    (tmp_path / f"{one}.gz").write_bytes(packed)
    found = all_of(tmp_path, SourceOffset(one, 4), "mysql")
    assert sent(found) == sent(dumped(files, one, 4))
    (tmp_path / f"{one}.gz").write_bytes(packed[:-100])
    with pytest.raises(RemoteProtocolError, match="the gzip stream is damaged or incomplete"):
        all_of(tmp_path, SourceOffset(one, 4), "mysql")


def test_what_is_not_there_is_an_error(tmp_path: Path) -> None:
    files = mirror_of(CASES[0], tmp_path)
    one, two = files

    def read(start: SourceOffset) -> None:
        list(MirrorStream(tmp_path, start, "mysql", follow=False).events())

    with pytest.raises(PositionPurged, match=rf"does not have the position either: it has {one} to {two}"):
        read(SourceOffset("binlog.000009", 4))
    with pytest.raises(OffsetError, match=rf"the start {one}:130 is inside an event, which begins at 127"):
        read(SourceOffset(one, 130))
    with pytest.raises(OffsetError, match=rf"{one}:999999 is after the end of the mirrored file"):
        read(SourceOffset(one, 999999))
    with pytest.raises(PositionPurged, match="nothing after it is mirrored"):
        read(SourceOffset(two, len(files[two])))
    (tmp_path / one).write_bytes(files[one][:-3])
    with pytest.raises(TruncatedEvent, match="the file ends inside an event"):
        read(SourceOffset(one, 4))
    (tmp_path / one).write_bytes(b"text" + files[one][4:])
    with pytest.raises(RemoteProtocolError, match="not a binlog file"):
        read(SourceOffset(one, 4))


def test_a_file_that_is_deleted_while_it_is_read_is_an_error(tmp_path: Path) -> None:
    one, _ = mirror_of(CASES[0], tmp_path)
    reading = MirrorStream(tmp_path, SourceOffset(one, 4), "mysql", follow=True).events()
    assert len(list(islice(reading, 2))) == 2
    (tmp_path / one).unlink()
    with pytest.raises(PositionPurged, match=rf"{one} was deleted from the mirror .*keep its files longer"):
        list(islice(reading, 5))


def test_whether_a_mirror_has_a_position(tmp_path: Path) -> None:
    files = mirror_of(CASES[0], tmp_path / "m")
    folder, (one, _) = tmp_path / "m", files
    assert mirror_check(folder, SourceOffset(one, 4), "mysql").available
    assert mirror_check(folder, SourceOffset(one, 4, server="server"), "mysql").available
    assert mirror_check(folder, SourceOffset("", 4, "", server="other"), "mysql").available
    for start, connector, reason in [
        (SourceOffset(one, 4, server="other"), "mysql", "is one of server server, and the position of server other"),
        (SourceOffset("binlog.000077", 4), "mysql", "does not have it either"),
        (SourceOffset(one, 4), "mariadb", "is one of mysql"),
    ]:
        found = mirror_check(folder, start, connector)
        assert not found.available
        assert reason in found.reason
    assert "it has no mirror.json" in mirror_check(tmp_path, SourceOffset(one, 4), "mysql").reason
