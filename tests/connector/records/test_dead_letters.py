"""Dead letters keep the bytes of their records, whole or in parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.dead_letters import DeadLetters, Reason, identified, parts
from rowtide.connector.records.offset import SourceOffset

REASON = Reason("KAFKA_PRODUCE", "org.apache.kafka.common.errors.RecordTooLargeException", "too large")
PLACE = SourceOffset("b.000001", 4)


def letter(value: bytes | None, *, context: bool = False, partition: int = -1) -> Message:
    batch = Batch("shop.a", partition, [], PLACE, 0, 7, timestamp=99)
    made = DeadLetters("letters", "shop", context).letter(batch, (b"k", value, [("h", b"1")]), REASON)
    assert (made.topic, made.partition, made.offset, made.ts_ms, made.timestamp) == ("letters", 0, PLACE, 7, 0)
    (message,) = made.messages
    return message


@given(st.binary(min_size=1, max_size=40), st.integers(1, 50))
def test_parts_have_all_of_the_value_in_order(value: bytes, most: int) -> None:
    made = letter(value)
    found = list(parts(made, most))
    assert all(len(part or b"") <= most for _, part, _ in found)
    assert b"".join(part or b"" for _, part, _ in found) == value
    numbers = [dict(headers)["rowtide.dead.letter.part"] for _, _, headers in found]
    assert numbers == [str(number).encode() for number in range(len(found))]
    assert {dict(headers)["rowtide.dead.letter.parts"] for _, _, headers in found} == {str(len(found)).encode()}


def test_the_reason_stands_in_the_headers_of_kafka_connect() -> None:
    key, value, headers = letter(b"v", context=True, partition=3)
    assert (key, value) == (b"k", b"v")
    found = dict(headers)
    assert found["h"] == b"1"
    assert found["rowtide.dead.letter.topic"] == b"shop.a"
    assert found["rowtide.dead.letter.partition"] == b"3"
    assert found["rowtide.dead.letter.stage"] == b"KAFKA_PRODUCE"
    assert found["rowtide.dead.letter.reason"] == b"too large"
    assert found["rowtide.dead.letter.position"] == b"b.000001:4"
    assert found["rowtide.dead.letter.timestamp"] == b"99"
    assert {name: text for name, text in found.items() if name.startswith("__connect.errors.")} == {
        "__connect.errors.topic": b"shop.a",
        "__connect.errors.connector.name": b"shop",
        "__connect.errors.task.id": b"0",
        "__connect.errors.stage": b"KAFKA_PRODUCE",
        "__connect.errors.exception.class.name": REASON.kind.encode(),
        "__connect.errors.exception.message": b"too large",
    }
    assert not any(name.startswith("__connect") for name, _ in letter(b"v")[2])


def test_the_id_is_that_of_the_same_record_only() -> None:
    one = letter(b"v")
    (_, _, headers), identity = identified(one, PLACE, 0)
    assert headers[-1] == ("rowtide.dead.letter.id", identity.encode())
    assert identified(letter(b"v", context=True), PLACE, 0)[1] == identity
    others = [
        identified(letter(b"w"), PLACE, 0),
        identified(one, SourceOffset("b.000001", 5), 0),
        identified(one, SourceOffset("b.000001", 4, event=1, row=1), 0),
        identified(one, PLACE, 1),
    ]
    assert len({identity, *(other for _, other in others)}) == 5


def test_a_reason_with_any_text_can_be_written() -> None:
    odd = Reason("TRANSFORMATION", "E", "\ud800")
    made = DeadLetters("letters", "shop", context=True).letter(Batch("t", -1, [], PLACE, 0, 0), (None, None, ()), odd)
    assert dict(made.messages[0][2])["rowtide.dead.letter.reason"] == b"\\ud800"
    long = Reason("TRANSFORMATION", "E", "x" * 100_000)
    made = DeadLetters("letters", "shop", context=True).letter(Batch("t", -1, [], PLACE, 0, 0), (None, None, ()), long)
    assert made.size + sum(len(text or b"") for _, text in made.messages[0][2]) < 5000


@pytest.mark.parametrize("value", [None, b""])
def test_a_record_without_a_value_keeps_that(value: bytes | None) -> None:
    assert letter(value)[1] == value
