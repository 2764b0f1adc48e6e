"""Records of a dead letter are compared with the newest records of their keys."""

from __future__ import annotations

import pytest

from rowtide.connector.delivery.stored_dead_letters import Letter
from rowtide.connector.engine.newer_records import Seen
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import Extent, StoredRecord

TIME = 1000
LETTER = Letter("1", "t", -1, "TASK_POLL", "", "b:4", 1, None, TIME, 1, {0}, 0, 0, TIME + 5)
COMPACT = {"cleanup.policy": "compact", "delete.retention.ms": "100"}
OLDER, NEWER, UNKNOWN = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def compared(
    *records: tuple[bytes | None, int],
    key: bytes | None = b"k",
    low: int = 0,
    read_from: int = 0,
    settings: dict[str, str] | None = None,
    now: int = TIME + 50,
    own_time: bool = False,
) -> tuple[int, int, int]:
    found = [StoredRecord(0, 7 + at, time_ms, given, b"") for at, (given, time_ms) in enumerate(records)]
    extents, read = {0: Extent(low, 9)}, {0: Extent(max(low, read_from), 9)}
    seen = Seen.of(found, TIME, extents, read, settings or {}, own_time=own_time)
    batch = Batch("t", -1, [(key, b"v", ())], SourceOffset("b", 4), 0, 0)
    older, newer, unknown = seen.compared(batch, LETTER, now)
    assert list(older.messages) == ([(key, b"v", ())] if older.messages else [])
    return len(older.messages), newer, unknown


@pytest.mark.parametrize(
    ("records", "result"),
    [
        ([], OLDER),
        ([(b"other", TIME + 9)], OLDER),
        ([(b"k", TIME - 1)], OLDER),
        ([(b"k", TIME)], UNKNOWN),
        ([(b"k", TIME + 5)], UNKNOWN),  # the dead letter was sent again then, and maybe this record before it
        ([(b"k", TIME + 6)], NEWER),
        ([(b"k", TIME + 6), (b"k", TIME - 1)], NEWER),  # the last one is one that was replayed
        ([(None, TIME - 1)], OLDER),
        ([(None, TIME)], UNKNOWN),  # TRUNCATE
        ([(None, TIME + 6), (b"k", TIME + 9)], NEWER),
    ],
)
def test_the_newest_record_of_the_key_counts(records: list[tuple[bytes | None, int]], result: object) -> None:
    assert compared(*records) == result


@pytest.mark.parametrize(
    ("own", "same", "other"),
    [
        (b"\0\0\0\0\1\2", b"\0\0\0\0\1\3", b"\0\0\0\0\2\2"),
        (
            b'{"schema":{"type":"int32"},"payload":1}',
            b'{"schema":{"type":"int32"},"payload":2}',
            b'{"schema":{"type":"int64"},"payload":1}',
        ),
        (b'{"id":1}', b'{"id":2}', b'{"id":1,"part":7}'),
        (b'{"schema":"a","table":1}', b'{"schema":"b","table":1}', b'{"schema":"a"}'),
    ],
)
def test_the_same_row_has_another_key_if_its_schema_has_changed(own: bytes, same: bytes, other: bytes) -> None:
    assert compared((other, TIME - 1), key=own) == OLDER
    assert compared((other, TIME), key=own) == UNKNOWN
    assert compared((same, TIME + 6), key=own) == OLDER, "another key with the same schema"


def test_the_id_of_a_keys_schema_can_be_in_a_header() -> None:
    ids = [(("__key_schema_id", bytes([1, number])),) for number in (1, 2)]
    for headers, result in ((ids[0], OLDER), (ids[1], UNKNOWN)):
        found = StoredRecord(0, 7, TIME + 6, b"other", b"", headers)
        seen = Seen.of([found], TIME, {0: Extent(0, 9)}, {0: Extent(0, 9)}, {}, own_time=False)
        made = seen.compared(Batch("t", -1, [(b"k", b"v", ids[0])], SourceOffset("b", 4), 0, 0), LETTER, TIME + 50)
        assert (len(made.older.messages), made.newer, made.unknown) == result


def test_a_record_without_a_key_is_sent() -> None:
    assert compared((None, TIME + 9), (b"k", TIME + 9), key=None, low=5) == OLDER


def test_records_that_kafka_may_have_removed_count() -> None:
    assert compared((b"other", TIME + 1), low=5) == UNKNOWN
    assert compared((b"other", TIME), low=5) == OLDER
    assert compared(low=5) == UNKNOWN
    assert compared(low=5, read_from=9) == OLDER
    assert compared(settings=COMPACT, now=TIME + 99) == OLDER
    assert compared(settings=COMPACT, now=TIME + 100) == UNKNOWN


def test_times_that_do_not_tell_what_is_newer() -> None:
    assert compared((b"k", TIME + 9), settings={"message.timestamp.type": "LogAppendTime"}) == UNKNOWN
    assert compared((b"k", 5), own_time=True) == UNKNOWN
    assert compared((None, 5), own_time=True) == UNKNOWN
    assert compared((b"other", TIME), own_time=True) == OLDER
    assert compared((b"other", 5), own_time=True, low=5) == UNKNOWN
