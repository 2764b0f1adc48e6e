"""Positions by time, GTID and GTID set in recorded binlog files, and what a start there repeats or misses."""

import io
from collections.abc import Iterator

import pytest

from rowtide.connector.protocol import events
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.search.comparison import Difference, compared
from rowtide.connector.source.search.positions import (
    FoundPosition,
    PositionNotFound,
    end_of,
    file_of_gtids,
    find_gtid,
    find_gtids,
    find_time,
    utc,
)
from rowtide.schema_history.position.gtid import GtidSet, MariadbGtidPosition
from tests.support.mysql.dumped_files import RecordedFiles, golden_binlogs

MYSQL, MARIADB, WITHOUT = "restart-between-stages", "mariadb-transaction-boundaries", "gtid-off"
UUID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

Gtids = GtidSet | MariadbGtidPosition


def heads(case: str) -> Iterator[FoundPosition]:
    """Every transaction, by a plain walk through all events."""
    gtids: Gtids | None = None
    for file, data in golden_binlogs(case).items():
        decoder, position = EventDecoder(file), 4
        for packet in binlog_packets(io.BytesIO(data), file):
            event = decoder.decode(packet)
            if isinstance(event, events.PreviousGtids):
                gtids = event.gtids.copy()
            elif isinstance(event, events.MariadbGtidList):
                gtids = MariadbGtidPosition.parse(",".join(map(str, event.gtids)))
            elif isinstance(event, events.MariadbGtidEvent):
                yield FoundPosition(file, position, str(gtids), str(event.gtid), event.header.timestamp * 1_000_000)
                assert isinstance(gtids, MariadbGtidPosition)
                gtids.add(event.gtid)
            elif isinstance(event, events.Gtid) and event.anonymous:
                yield FoundPosition(file, position, None, None, event.immediate_commit_timestamp)
            elif isinstance(event, events.Gtid):
                yield FoundPosition(file, position, str(gtids), event.text, event.immediate_commit_timestamp)
                assert isinstance(gtids, GtidSet)
                gtids.add(event.uuid, event.gno, event.tag)
            position += len(packet)


def purged(case: str) -> dict[str, bytes]:
    """The files without the first one."""
    _, *others = golden_binlogs(case).items()
    return dict(others)


def end(case: str) -> tuple[str, int]:
    name, data = list(golden_binlogs(case).items())[-1]
    return name, len(data)


@pytest.mark.parametrize("case", [MYSQL, MARIADB])
def test_each_transaction_is_found_by_its_gtid_and_by_the_set_before_it(case: str) -> None:
    files = RecordedFiles(golden_binlogs(case))
    kind = GtidSet if case == MYSQL else MariadbGtidPosition
    every = list(heads(case))
    assert len(every) > 3
    for one in every:
        assert find_gtid(files, str(one.gtid)) == one
        assert find_gtids(files, kind.parse(one.gtids or "")) == one
    last = end_of(files)
    assert (last.file, last.pos, last.at_end) == (*end(case), True)
    assert last.gtids is not None
    assert find_gtids(files, kind.parse(last.gtids)) == last


@pytest.mark.parametrize("case", [MYSQL, MARIADB, WITHOUT])
def test_a_time_is_the_first_transaction_at_it_or_later(case: str) -> None:
    files = RecordedFiles(golden_binlogs(case))
    every = list(heads(case))
    times = sorted({one.micros for one in every if one.micros is not None})
    for moment in (*times, *(time + 1 for time in times), *(time - 1 for time in times)):
        first = next((one for one in every if one.micros is not None and one.micros >= moment), None)
        if moment < times[0] - 1_000_000:
            continue
        try:
            found = find_time(files, moment)
        except PositionNotFound:
            assert first == every[0]
            continue
        if first is None:
            assert (found.file, found.pos, found.at_end) == (*end(case), True)
        else:
            assert found == first


def test_a_time_before_the_first_file_is_found_only_if_nothing_was_purged() -> None:
    recorded = golden_binlogs(WITHOUT)
    first = next(heads(WITHOUT))
    assert find_time(RecordedFiles(recorded), 0) == first, "the set before the first file is empty"
    with pytest.raises(PositionNotFound, match=r"the events before that are purged: .* was begun at 20\d\d-\S+Z"):
        find_time(RecordedFiles(purged(MYSQL)), 0)


def test_few_files_are_read() -> None:
    recorded = golden_binlogs(WITHOUT)
    name, data = next(iter(recorded.items()))
    base = name.rpartition(".")[0]
    many = {f"{base}.{number:06}": data for number in range(1, 1001)}
    files = RecordedFiles(many)
    find_time(files, 2**60)
    assert len(set(files.read)) < 15


def test_what_is_not_in_the_files_is_said() -> None:
    files = RecordedFiles(purged(MYSQL))
    first = str(next(heads(MYSQL)).gtid)
    with pytest.raises(
        PositionNotFound, match=rf"{first} is purged: the binlog begins with binlog.000002, after \S+:1-"
    ):
        find_gtid(files, first)
    with pytest.raises(PositionNotFound, match=f"no transaction of the binlog has the GTID {UUID}:9"):
        find_gtid(files, f"{UUID}:9")
    with pytest.raises(PositionNotFound, match=r"not in the set are purged: .*\(rowtide position --from\)"):
        find_gtids(files, GtidSet.parse(f"{UUID}:1-9"))
    with pytest.raises(PositionNotFound, match="has no GTIDs of this kind"):
        find_gtids(files, MariadbGtidPosition.parse("0-1-5"))
    for text in ("zz", f"{UUID}:1-2", f"{UUID}:1,{UUID}:5", UUID):
        with pytest.raises(ValueError, match="GTID"):
            find_gtid(files, text)
    assert file_of_gtids(files, GtidSet()) is None


def test_a_last_file_that_was_only_begun_changes_nothing() -> None:
    recorded = golden_binlogs(MYSQL)
    every = list(heads(MYSQL))
    files = RecordedFiles(recorded)
    begun = Begun(recorded)
    assert find_gtid(begun, str(every[-1].gtid)) == find_gtid(files, str(every[-1].gtid))
    assert find_time(begun, every[2].micros or 0) == find_time(files, every[2].micros or 0)


class Begun(RecordedFiles):
    """Files of which the last one has no events yet."""

    @property
    def names(self) -> list[str]:
        return [*super().names, "binlog.000099"]

    def events(self, file: str) -> Iterator[bytes]:
        if file != "binlog.000099":
            yield from super().events(file)


@pytest.mark.parametrize("case", [MYSQL, MARIADB])
def test_the_end_never_cuts_a_transaction(case: str) -> None:
    name, data = list(golden_binlogs(case).items())[-1]
    starts = [one for one in heads(case) if one.file == name]
    packets = list(binlog_packets(io.BytesIO(data), name))
    whole = end_of(RecordedFiles({name: data}))
    size = 4
    for packet in packets:
        size += len(packet)
        found = end_of(RecordedFiles({name: data[:size]}))
        begun = [one.pos for one in starts if one.pos < size]
        assert found.pos == size or found.pos == begun[-1]
        if found.pos == size and begun:
            following = [one for one in starts if one.pos >= size]
            expected = following[0].gtids if following else whole.gtids
            assert found.gtids == expected
        elif begun:
            assert found.gtids == next(one.gtids for one in starts if one.pos == found.pos)
    assert whole.pos == len(data)


def test_what_a_start_repeats_and_misses_by_gtids() -> None:
    def difference(found: str, stored: SourceOffset, connector: str = "mysql") -> Difference:
        return compared(FoundPosition("binlog.000009", 4, found), stored, connector, {}, not_needed)

    five = SourceOffset("other.000001", 4, f"{UUID}:1-5")
    assert difference(f"{UUID}:1-5", five) == Difference()
    assert difference(f"{UUID}:1-3", five) == Difference(repeats=f"{UUID}:4-5")
    assert difference(f"{UUID}:1-9", five) == Difference(misses=f"{UUID}:6-9")
    assert difference(f"{UUID}:1-2:9", five) == Difference(repeats=f"{UUID}:3-5", misses=f"{UUID}:9")
    within = SourceOffset("binlog.000001", 100, f"{UUID}:1-5", event=3, row=2)
    part = "3 events and 2 rows of the transaction at binlog.000001:100"
    assert difference(f"{UUID}:1-5", within) == Difference(repeats=part)
    maria = SourceOffset("b.000001", 4, "0-1-5,1-1-7")
    assert difference("0-1-5,1-1-7", maria, "mariadb") == Difference()
    assert difference("0-1-9", maria, "mariadb") == Difference(repeats="1-1-1 to 1-1-7", misses="0-1-6 to 0-1-9")


def not_needed() -> int:
    """The start does not pass over a transaction that was read in part."""
    raise AssertionError


def test_a_start_after_a_transaction_that_was_read_in_part_misses_its_other_rows() -> None:
    def difference(found: str, unread: int | None, stored: SourceOffset, connector: str = "mysql") -> Difference:
        return compared(FoundPosition("b.000009", 4, found), stored, connector, {}, lambda: unread)

    inside = SourceOffset("b.000001", 100, f"{UUID}:1-5", event=2, row=1, within=f"{UUID}:6")
    part = f"2 events and 1 row of transaction {UUID}:6"
    assert difference(f"{UUID}:1-6", 0, inside) == Difference()
    assert difference(f"{UUID}:1-6", 1, inside) == Difference(misses=f"1 row after {part}")
    assert difference(f"{UUID}:1-6", 7, inside) == Difference(misses=f"7 rows after {part}")
    unknown = f"any rows after {part} (the binlog does not show whether there are any)"
    assert difference(f"{UUID}:1-6", None, inside) == Difference(misses=unknown)
    assert difference(f"{UUID}:1-8", 0, inside) == Difference(misses=f"{UUID}:7-8")
    assert difference(f"{UUID}:1-8", 3, inside) == Difference(misses=f"{UUID}:7-8 and 3 rows after {part}")
    assert difference(f"{UUID}:2-6", 2, inside) == Difference(repeats=f"{UUID}:1", misses=f"2 rows after {part}")
    assert difference(f"{UUID}:1-5", 3, inside) == Difference(repeats=part)
    assert difference(f"{UUID}:1-5:7", 3, inside) == Difference(repeats=part, misses=f"{UUID}:7")
    maria = SourceOffset("b.000001", 100, "0-1-5,1-1-7", event=2, row=1, within="0-1-6")
    part = "2 events and 1 row of transaction 0-1-6"
    assert difference("0-1-6,1-1-7", 0, maria, "mariadb") == Difference()
    assert difference("0-1-6,1-1-7", 4, maria, "mariadb") == Difference(misses=f"4 rows after {part}")
    assert difference("0-1-9,1-1-7", 4, maria, "mariadb") == Difference(
        misses=f"0-1-7 to 0-1-9 and 4 rows after {part}"
    )


@pytest.mark.parametrize(
    ("unread", "rest"), [(None, ""), (0, ", which are all of its rows"), (2, ", after which 2 rows follow")]
)
def test_without_gtids_a_start_after_a_transaction_that_was_read_in_part_says_what_was_read(
    unread: int | None, rest: str
) -> None:
    stored = SourceOffset("b.000001", 100, event=2, row=1)
    found = compared(FoundPosition("b.000001", 200), stored, "mysql", {}, lambda: unread)
    part = "2 events and 1 row of the transaction at b.000001:100"
    assert found == Difference(misses=f"b.000001:100 to b.000001:200 (100 bytes), apart from {part}{rest}")


def test_what_a_start_repeats_and_misses_by_file_and_position() -> None:
    sizes = {"binlog.000001": 500, "binlog.000002": 300, "binlog.000003": 200}

    def difference(pos: int, file: str, stored: SourceOffset) -> Difference:
        return compared(FoundPosition(file, pos), stored, "mysql", sizes, not_needed)

    stored = SourceOffset("binlog.000002", 150)
    assert difference(150, "binlog.000002", stored) == Difference()
    assert difference(100, "binlog.000001", stored) == Difference(
        repeats="binlog.000001:100 to binlog.000002:150 (550 bytes)"
    )
    assert difference(20, "binlog.000003", stored) == Difference(
        misses="binlog.000002:150 to binlog.000003:20 (170 bytes)"
    )
    assert difference(4, "binlog.000009", stored).misses == "binlog.000002:150 to binlog.000009:4"
    assert difference(150, "binlog.000002", SourceOffset("binlog.000002", 150, event=1)).repeats is not None
    other = difference(4, "binlog.000001", SourceOffset("mysql-bin.000001", 4))
    assert other.unknown == "binlog files binlog.000001 and mysql-bin.000001 belong to different servers"


def test_times_are_in_utc() -> None:
    assert utc(0) == "1970-01-01T00:00:00Z"
    assert utc(1_700_000_000_000_120) == "2023-11-14T22:13:20.000120Z"
