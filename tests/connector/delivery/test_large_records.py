"""Records that are too large are replaced in their place, and nothing is sent before its value is kept."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest

from rowtide.connector.config.choices import LargeRecordsMode as Mode
from rowtide.connector.delivery.claim_check_folder import open_folder
from rowtide.connector.delivery.delivery_loop import CommitPolicy, Delivery
from rowtide.connector.delivery.errors import ClaimCheckUnavailable
from rowtide.connector.delivery.event_store import EventStore
from rowtide.connector.delivery.large_records import LargeRecords
from rowtide.connector.delivery.stored_dead_letters import letters_of, whole
from rowtide.connector.kafka_producer.batches.python_records import estimated_size
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.dead_letters import DeadLetters, Reason
from rowtide.connector.records.offset import SourceOffset
from rowtide.envelope.claim_check import ClaimCheck
from rowtide.schema_history.store.topic_reader import StoredRecord
from tests.support.in_memory_sink import InMemorySink

LIMIT = 2000
TOPIC, LETTERS = "shop.a", "letters"
LARGE = b"v" * (LIMIT + 1)
DEAD_LETTERS = DeadLetters(LETTERS, "shop")


def records(
    mode: Mode, *, folder: str | None = None, limits: dict[str, str] | None = None, largest: int = 10 * LIMIT
) -> LargeRecords:
    found = {TOPIC: str(LIMIT)} if limits is None else limits
    letters = mode in (Mode.DEAD_LETTER, Mode.FAIL)
    made = LargeRecords(
        mode,
        largest,
        lambda _topics: found,
        folder=None if folder is None else open_folder(folder),
        dead_letters=DEAD_LETTERS if letters else None,
    )
    made.look_up([TOPIC, LETTERS] if letters else [TOPIC])
    return made


def batch(*messages: Message, pos: int = 4) -> Batch:
    size = sum(len(key or b"") + len(value or b"") for key, value, _ in messages)
    return Batch(TOPIC, -1, list(messages), SourceOffset("b.000001", pos), size, 0)


def update(before: int, after: int) -> bytes:
    return b'{"before":{"t":"%s"},"after":{"t":"%s"},"op":"u"}' % (b"b" * before, b"a" * after)


@pytest.mark.parametrize("mode", [Mode.CLAIM_CHECK, Mode.WITHOUT_BEFORE, Mode.DEAD_LETTER])
def test_what_fits_stays_the_same(mode: Mode, tmp_path: Path) -> None:
    room = LIMIT - estimated_size((b"k", b"", [])) - 1  # the size of the value takes two bytes
    given = [batch((b"k", b"v" * room, ()), (b"k", None, ()))]
    assert records(mode, folder=str(tmp_path)).fitting(given) == given


@pytest.mark.parametrize(("limits", "largest"), [({TOPIC: str(LIMIT)}, 10 * LIMIT), ({}, LIMIT)])
def test_a_claim_check_takes_the_place_of_its_record(
    tmp_path: Path, limits: dict[str, str], largest: int, caplog: pytest.LogCaptureFixture
) -> None:
    large = records(Mode.CLAIM_CHECK, folder=str(tmp_path), limits=limits, largest=largest)
    (made,) = large.fitting([batch((b"1", b"a", ()), (b"2", LARGE, [("h", b"x")]), (b"3", b"c", ()))])
    first, (key, value, headers), last = made.messages
    assert (first, last) == ((b"1", b"a", ()), (b"3", b"c", ()))
    assert key == b"2"
    assert value is not None
    check = ClaimCheck.parse(value)
    assert list(headers) == [("h", b"x"), *check.headers()]
    assert (tmp_path / TOPIC / hashlib.sha256(LARGE).hexdigest()).read_bytes() == LARGE
    assert ("grant the connector's Kafka user DESCRIBE_CONFIGS" in caplog.text) == (not limits)


def test_a_record_with_a_large_key_is_left_to_fail(tmp_path: Path) -> None:
    given = [batch((LARGE, LARGE, ()), (LARGE, None, ()))]
    assert records(Mode.CLAIM_CHECK, folder=str(tmp_path)).fitting(given) == given
    assert list(tmp_path.iterdir()) == []


def test_an_update_is_sent_without_its_row_before() -> None:
    (made,) = records(Mode.WITHOUT_BEFORE).fitting([batch((b"k", update(LIMIT, 10), ()))])
    expected = b'{"before":null,"after":{"t":"%s"},"op":"u"}' % (b"a" * 10)
    assert made.messages == [(b"k", expected, [("rowtide.large.record", b"without-before")])]


@pytest.mark.parametrize("message", [(None, update(LIMIT, 10), ()), (b"k", update(10, LIMIT), ()), (b"k", LARGE, ())])
def test_what_needs_its_row_before_or_is_too_large_without_it_is_left_to_fail(message: Message) -> None:
    given = [batch(message)]
    assert records(Mode.WITHOUT_BEFORE).fitting(given) == given


@pytest.mark.parametrize("limits", [{TOPIC: str(LIMIT)}, {TOPIC: str(LIMIT), LETTERS: "1000"}])
def test_a_dead_letter_is_the_record_in_as_many_parts_as_needed(
    limits: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    given = [batch((b"1", b"a", ()), (b"2", LARGE, [("h", b"x")]))]
    rest, letters = records(Mode.DEAD_LETTER, limits=limits).fitting(given)
    assert rest.messages == [(b"1", b"a", ())]
    assert (letters.topic, letters.partition) == (LETTERS, 0)
    assert len(letters.messages) > 1 or LETTERS not in limits
    assert all(
        estimated_size((key, value, list(headers))) <= int(limits.get(LETTERS, 10 * LIMIT))
        for key, value, headers in letters.messages
    )
    found = stored(letters)
    (letter,) = letters_of(found)
    assert whole(found, letter.id) == (b"2", LARGE, [("h", b"x")])
    assert f"before b.000001:4 is now dead letter {letter.id}: the record has" in caplog.text


def stored(*batches: Batch) -> list[StoredRecord]:
    messages = [message for one in batches for message in one.messages]
    return [StoredRecord(0, number, -1, *message[:2], tuple(message[2])) for number, message in enumerate(messages)]


def test_equal_rows_of_a_table_without_a_key_are_dead_letters_each() -> None:
    row = (None, LARGE, ())
    given = [batch(row, row), batch(row), batch(row, pos=5)]
    large = records(Mode.DEAD_LETTER)
    found = stored(*large.fitting(given))
    assert len(letters_of(found)) == 4
    assert letters_of(stored(*records(Mode.DEAD_LETTER).fitting(given))) == letters_of(found), "also when sent again"


def test_a_dead_letter_of_another_reason_gets_its_id_and_its_parts() -> None:
    """Also with fail, where a record that is too large for its own topic is left to fail."""
    reason = Reason("TRANSFORMATION", "E", "no")
    given = DEAD_LETTERS.letter(batch(), (b"k", LARGE, ()), reason)
    limits = {TOPIC: str(LIMIT), LETTERS: str(LIMIT)}
    made, rest = records(Mode.FAIL, limits=limits).fitting([given, batch((b"k", LARGE, ()))])
    assert len(made.messages) > 1
    found = stored(made)
    (letter,) = letters_of(found)
    assert (letter.topic, letter.stage, letter.reason) == (TOPIC, "TRANSFORMATION", "no")
    assert whole(found, letter.id) == (b"k", LARGE, [])
    assert rest.messages == [(b"k", LARGE, ())]


def test_only_what_is_too_large_alone_is_replaced() -> None:
    headers = [("h", b"x" * 100)]
    message = b"k", b"v" * (LIMIT - 300), headers
    given = [batch(*[message] * 5)]
    assert records(Mode.DEAD_LETTER).fitting(given) == given


def test_headers_make_a_record_too_large() -> None:
    given = [batch((b"k", b"v", [("h", b"x" * LIMIT)]))]
    (made,) = records(Mode.DEAD_LETTER).fitting(given)
    assert made.topic == LETTERS


class FailingFolder:
    """A folder that is away for some calls, and notes what the sink had then."""

    def __init__(self, sink: InMemorySink, failures: int) -> None:
        self.sink, self.failures = sink, failures
        self.seen: list[tuple[int, int]] = []
        self.values: dict[str, bytes] = {}

    def url(self, name: str) -> str:
        return f"s3://bucket/{name}"

    def put(self, name: str, value: bytes) -> None:
        self.seen.append((len(self.sink.records), len(self.sink.offsets)))
        if self.failures:
            self.failures -= 1
            raise ClaimCheckUnavailable("the bucket is away")
        self.values[name] = value

    def get(self, name: str) -> bytes:
        return self.values[name]


@pytest.mark.parametrize("transactional", [False, True])
def test_delivery_waits_for_the_folder_and_loses_nothing(transactional: bool, caplog: pytest.LogCaptureFixture) -> None:
    sink, store = InMemorySink(transactional), EventStore(max_events=4)  # so that batches come one at a time
    folder = FailingFolder(sink, 2)
    large = LargeRecords(Mode.CLAIM_CHECK, LIMIT, lambda _topics: {}, folder=folder)
    values: Sequence[bytes] = [b"a", LARGE, b"c"]
    store.put([batch((b"k", value, ()), pos=pos) for pos, value in enumerate(values, 4)])
    store.close()
    policy = CommitPolicy(interval_s=3600, by_poll=False)
    delivery = Delivery(store, sink, policy, ensure_topics=large.look_up, fitting=large.fitting)
    delivery.run()
    assert delivery.failure is None
    assert folder.seen[-1] == (1, 1), "what was before it is sent, and its offset is stored"
    sent = [message[1] or b"" for _, _, message in sink.records]
    assert (sent[0], sent[2], len(sent)) == (b"a", b"c", 3)
    check = ClaimCheck.parse(sent[1])
    assert folder.get(check.name) == LARGE
    assert sink.offsets[-1].pos == 6
    assert caplog.text.count("the bucket is away; retrying in") == 2
