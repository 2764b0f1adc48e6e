"""Dead letters in their topic: each once, and its record as it was."""

from dataclasses import replace

import pytest

from rowtide.connector.delivery.stored_dead_letters import Letter, letters_of, whole
from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.dead_letters import (
    PART_HEADER,
    PARTITION_HEADER,
    PARTS_HEADER,
    SIZE_HEADER,
    DeadLetters,
    Reason,
    identified,
    parts,
)
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.topic_reader import StoredRecord

VALUE = bytes(range(250))
PLACE = SourceOffset("b.000001", 4)
REASON = Reason("KAFKA_PRODUCE", "k", "too large")
OTHER = StoredRecord(0, 0, -1, b"k", b"v", (("__connect.errors.topic", b"x"),))


def letter(value: bytes | None, number: int = 0) -> tuple[Message, str]:
    made = DeadLetters("letters", "n", context=True)
    (message,) = made.letter(Batch("shop.a", 2, [], PLACE, 0, 0), (b"k", value, [("h", b"1")]), REASON).messages
    return identified(message, PLACE, number)


LETTER, IDENTITY = letter(VALUE)


def stored(message: Message = LETTER, first: int = 0) -> list[StoredRecord]:
    pieces = [message] if not message[1] else parts(message, 100)
    return [
        StoredRecord(0, first + number, 1000 + number, key, value, tuple(headers))
        for number, (key, value, headers) in enumerate(pieces)
    ]


def note(identity: str) -> StoredRecord:
    return StoredRecord(0, 99, -1, None, None, (("rowtide.dead.letter.replayed", identity.encode()),))


def test_a_letter_that_was_sent_twice_is_shown_once() -> None:
    reason, place = ("KAFKA_PRODUCE", "too large"), "b.000001:4"
    expected = Letter(IDENTITY, "shop.a", 2, *reason, place, 250, b"k", 1000, 3, {0, 1, 2}, 0, 5, 1002)
    assert letters_of([OTHER, *stored(), *stored(first=3)]) == [expected]
    assert whole([*stored(), OTHER, *stored()[:2]], IDENTITY) == (b"k", VALUE, [("h", b"1")])


def test_equal_records_are_two_letters() -> None:
    other, name = letter(VALUE, 1)
    assert [one.id for one in letters_of([*stored(), *stored(other)])] == [IDENTITY, name]


@pytest.mark.parametrize("value", [None, b""])
def test_a_letter_without_a_value_is_whole(value: bytes | None) -> None:
    made, identity = letter(value)
    assert whole(stored(made), identity) == (b"k", value, [("h", b"1")])


@pytest.mark.parametrize(
    ("header", "found"),
    [(PARTS_HEADER, (250, -1)), (SIZE_HEADER, (-1, 3)), (PART_HEADER, (250, 3)), (PARTITION_HEADER, (250, 3))],
)
def test_a_letter_with_a_damaged_header_does_not_hide_the_others(header: str, found: tuple[int, int]) -> None:
    damaged = [
        replace(one, headers=tuple((name, b"x" if name == header else text) for name, text in one.headers))
        for one in stored()
    ]
    other, name = letter(VALUE, 1)
    first, second = letters_of([*damaged, *stored(other)])
    assert (first.size, first.parts) == found
    assert second.id == name
    assert whole([*damaged, *stored(other)], name)[1] == VALUE
    if header != SIZE_HEADER:  # the value does not depend on it
        with pytest.raises(ValueError, match=f"the header {header} of dead letter {IDENTITY} is 'x'"):
            whole(damaged, IDENTITY)


def test_a_missing_or_damaged_part_is_seen() -> None:
    (one,) = letters_of(stored()[:2])
    assert (one.parts, one.present) == (3, {0, 1})
    with pytest.raises(ValueError, match="has 3 parts, and 2 of them"):
        whole(stored()[:2], IDENTITY)
    with pytest.raises(ValueError, match="there is no dead letter x"):
        whole(stored(), "x")
    first, second, third = stored()
    damaged = StoredRecord(0, 1, -1, second.key, b"x" * 100, second.headers)
    with pytest.raises(ValueError, match="SHA-256 differs"):
        whole([first, damaged, third], IDENTITY)


def test_a_replayed_letter_is_marked() -> None:
    other, name = letter(b"w")
    found = letters_of([*stored(), *stored(other), note(IDENTITY), note("unknown")])
    assert {one.id: one.replayed for one in found} == {IDENTITY: True, name: False}
