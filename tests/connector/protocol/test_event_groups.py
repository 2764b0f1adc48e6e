"""Transactions are held until it is known which of their rows are undone."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from rowtide.connector.errors import TransactionNotHeld
from rowtide.connector.protocol import events
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.event_groups import EventGroups
from rowtide.connector.protocol.events.classes import Event
from rowtide.connector.protocol.header import ROWS_TYPES, EventType
from rowtide.connector.source.temporary_file import temporary_file
from tests.support.mysql.recorded_server import FILE, recorded_stream


def settled(groups: EventGroups, packets: Iterable[bytes]) -> list[Event]:
    """The events that a pipeline would process."""
    decoder = EventDecoder(FILE)
    return [decoder.decode(one) for packet in packets for one in groups.add(packet, decoder.format)]


def packets(name: str) -> list[bytes]:
    return [packet for _, packet in recorded_stream(name).events]


@pytest.mark.parametrize("most", [100, 1 << 20])
@pytest.mark.parametrize("name", ["mariadb-rollbacks", "mariadb", "mysql-rollbacks", "mysql", "mysql-gtid-off"])
def test_every_event_keeps_its_place_and_its_checksum(name: str, most: int) -> None:
    decoder = EventDecoder(FILE)
    raw = [decoder.decode(packet) for packet in packets(name)]
    found = settled(EventGroups(tempfile.TemporaryFile, most), packets(name))
    undone = 0
    for before, after in zip(raw, found, strict=True):
        if isinstance(after, events.Ignorable):
            assert isinstance(before, events.Rows)
            assert after.header._replace(type_code=0, flags=0) == before.header._replace(type_code=0, flags=0)
            undone += 1
        else:
            assert after == before
    # MySQL logs what is rolled back only if it is logged as a statement
    assert (undone > 20) == (name == "mariadb-rollbacks")


def test_a_large_transaction_is_in_a_file_until_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    written: list[int] = []
    real = tempfile.TemporaryFile
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **given: written.append(1) or real(**given))
    settled(EventGroups(temporary_file, 1000), packets("mariadb-rollbacks"))
    assert written
    assert not list(tmp_path.iterdir())


def test_without_room_the_error_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with pytest.raises(TransactionNotHeld, match=r"until .*: No such file or directory\. Set TMPDIR"):
        settled(EventGroups(temporary_file, 1000), packets("mariadb-rollbacks"))


def test_what_commits_in_a_list_is_not_held() -> None:
    groups, all_packets = EventGroups(), packets("mariadb")
    settled(groups, all_packets[:1])
    begins = [at for at, packet in enumerate(all_packets) if packet[4] == EventType.MARIADB_GTID]
    ends = [at for at, packet in enumerate(all_packets) if packet[4] == EventType.XID]
    for end in ends:
        begin = max(at for at in begins if at < end)
        kinds = {packet[4] for packet in all_packets[begin + 1 : end]}
        assert groups.commits_within(all_packets, begin) == (EventType.QUERY not in kinds)
        assert not groups.commits_within(all_packets[:end], begin)
        assert not groups.commits_within(all_packets, begin + 1)


def unfinished(name: str) -> tuple[Sequence[bytes], Sequence[bytes]]:
    """The events of a file up to the rows of a transaction without its end, and the others."""
    all_packets = packets(name)
    rows = max(at for at, packet in enumerate(all_packets) if packet[4] in ROWS_TYPES)
    return all_packets[: rows + 1], all_packets[rows + 1 :]


def test_rows_of_a_transaction_without_its_end_are_not_read(caplog: pytest.LogCaptureFixture) -> None:
    """The server crashed while it wrote them: the next file begins with the time of its start."""
    head, _ = unfinished("mariadb-rollbacks")
    last = max(at for at, packet in enumerate(head) if packet[4] == EventType.MARIADB_GTID)
    started = bytearray(head[0])
    started[71:75] = b"\1\0\0\0"
    groups = EventGroups()
    before = settled(groups, head)
    assert len(before) == last
    with caplog.at_level(logging.WARNING):
        assert list(groups.add(bytes(started), None)) == [bytes(started)]
    assert "no end" in caplog.text
    assert not groups.holding


def test_a_damaged_event_is_passed_on() -> None:
    """Its decoding reports it, with its place."""
    head, _ = unfinished("mariadb-rollbacks")
    for damage in (lambda packet: packet[:-1], lambda packet: packet[:3], lambda packet: packet + b"more"):
        groups, decoder = EventGroups(temporary_file, 200), EventDecoder(FILE)
        found = [one for packet in head for one in groups.add(packet, decoder.decode(head[0]))]  # type: ignore[arg-type]
        found += groups.add(damage(head[-1]), None)
        assert found[-1] == damage(head[-1])
        assert len(found) == len(head) + 1
