"""Dead letters keep the bytes of their records, whole or in parts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.records.batch import Batch, Message
from rowtide.connector.records.dead_letters import Reason, dead_letter, part_number, parts, whole
from rowtide.connector.records.offset import SourceOffset

REASON = Reason("KAFKA_PRODUCE", "org.apache.kafka.common.errors.RecordTooLargeException", "too large")


def letter(value: bytes | None, *, context: bool = False, pos: int = 4) -> tuple[Message, str]:
    batch = Batch("shop.a", -1, [], SourceOffset("b.000001", pos), 0, 0)
    return dead_letter(batch, (b"k", value, [("h", b"1")]), REASON, connector="shop", context=context)


@given(st.binary(min_size=1, max_size=40), st.integers(1, 50))
def test_parts_are_put_together_again(value: bytes, most: int) -> None:
    made, _ = letter(value)
    found = list(parts(made, most))
    assert all(len(part or b"") <= most for _, part, _ in found)
    assert [part_number(headers) for _, _, headers in found] == list(range(len(found)))
    assert whole(found) == made


@pytest.mark.parametrize("value", [None, b"", b"v"])
def test_an_undivided_letter_is_whole(value: bytes | None) -> None:
    made, _ = letter(value)
    assert whole([made])[:2] == (b"k", value)


def test_a_missing_or_damaged_part_is_an_error() -> None:
    found = list(parts(letter(b"abcdef")[0], 2))
    with pytest.raises(ValueError, match="has 3 parts, and 2 of them"):
        whole(found[:2])
    with pytest.raises(ValueError, match="SHA-256 differs"):
        whole([found[1], found[0], found[2]])


def test_the_reason_stands_in_the_headers_of_kafka_connect() -> None:
    (_, _, headers), identity = letter(b"v", context=True)
    found = dict(headers)
    assert found["h"] == b"1"
    assert found["rowtide.dead.letter.id"] == identity.encode()
    assert found["rowtide.dead.letter.topic"] == b"shop.a"
    assert found["rowtide.dead.letter.reason"] == b"too large"
    assert found["rowtide.dead.letter.position"] == b"b.000001:4"
    assert {name: text for name, text in found.items() if name.startswith("__connect.errors.")} == {
        "__connect.errors.topic": b"shop.a",
        "__connect.errors.connector.name": b"shop",
        "__connect.errors.task.id": b"0",
        "__connect.errors.stage": b"KAFKA_PRODUCE",
        "__connect.errors.exception.class.name": REASON.kind.encode(),
        "__connect.errors.exception.message": b"too large",
    }


def test_the_id_is_that_of_the_same_record_only() -> None:
    assert letter(b"v")[1] == letter(b"v", context=True)[1]
    assert len({letter(b"v")[1], letter(b"w")[1], letter(b"v", pos=5)[1]}) == 3
