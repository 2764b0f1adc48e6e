"""Records: the same bytes, limits and errors in C and in Python."""

from __future__ import annotations

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rowtide.connector.kafka_producer.batches.native.implementation import native
from rowtide.connector.kafka_producer.batches.python_records import (
    PythonRecords,
    estimated_size,
    varint,
)
from rowtide.connector.kafka_producer.records import Record
from tests.support.kafka.record_batches import IMPLEMENTATIONS, messages

MESSAGE: Record = (b"key", b"value", (("a", b"1"),))
LARGE = 2**31 - 100
New = Callable[[int, int, int], PythonRecords]


@pytest.fixture(params=IMPLEMENTATIONS.values(), ids=IMPLEMENTATIONS)
def new(request: pytest.FixtureRequest) -> New:
    found: New = request.param.Records
    return found


def state(records: PythonRecords) -> tuple[bytes, int, int, int, int]:
    with records.view() as view:
        data = bytes(view)
    return data, records.size, records.count, records.first_timestamp, records.max_timestamp


def refused(call: Callable[[], object]) -> tuple[type[Exception], str] | None:
    try:
        call()
    except (TypeError, ValueError, OverflowError) as failure:
        text = "" if isinstance(failure, OverflowError) else str(failure)
        return type(failure), text
    return None


@pytest.mark.parametrize(
    ("number", "data"),
    [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (64, "8001"), (-64, "7f"), (-65, "8101"), (2**31, "8080808010")],
)
def test_numbers_are_zigzag_varints(number: int, data: str) -> None:
    assert varint(number).hex() == data


def test_a_record_is_as_documented(new: New) -> None:
    records = new(1000, 1000, 1000)
    assert records.append([(b"k", None, [("h", None)]), (None, b"", ())], 0, 1000, 1.0) == 2
    assert records.append(((b"k", b"v", ()),), 0, 990, 1.0) == 1
    data, size, count, first, latest = state(records)
    assert data.hex(" ", 1) == (
        "14 00 00 00 02 6b 01 02 02 68 01"  # size 10, attributes, time 0, number 0, key k, no value, one header h
        " 0c 00 00 02 01 00 00"  # size 6, number 1, no key, an empty value, no headers
        " 10 00 13 04 02 6b 02 76 00"  # size 8, 10 ms earlier, number 2, key k, value v
    )
    assert (size, count, first, latest) == (len(data), 3, 1000, 1000)


@given(
    calls=st.lists(
        st.tuples(messages(), st.integers(0, 3), st.integers(0, 2**63 - 1), st.floats(0.01, 3)), min_size=1, max_size=6
    ),
    limits=st.tuples(*[st.integers(0, 3000) | st.just(LARGE)] * 3),
)
def test_all_implementations_give_the_same_records(
    calls: list[tuple[list[Record], int, int, float]], limits: tuple[int, int, int]
) -> None:
    found = {name: module.Records(*limits) for name, module in IMPLEMENTATIONS.items()}
    for batch, start, timestamp, factor in calls:
        ends = {records.append(batch, min(start, len(batch)), timestamp, factor) for records in found.values()}
        assert len(ends) == 1
        assert len({state(records) for records in found.values()}) == 1
    for records in found.values():
        records.clear()
        assert state(records) == (b"", 0, 0, 0, 0)


ANYTHING = (
    st.none()
    | st.integers()
    | st.binary(max_size=3)
    | st.text(max_size=3)
    | st.just("\ud800")
    | st.builds(bytearray, st.binary(max_size=3))
)
WRONG_HEADERS = st.lists(st.tuples(ANYTHING, ANYTHING) | ANYTHING | st.lists(ANYTHING, max_size=2), max_size=3)


@given(
    good=st.lists(st.just(MESSAGE), max_size=3),
    wrong=st.tuples(ANYTHING, ANYTHING, WRONG_HEADERS | WRONG_HEADERS.map(tuple) | ANYTHING)
    | st.lists(ANYTHING, max_size=4)
    | st.lists(ANYTHING, max_size=4).map(tuple)
    | ANYTHING,
)
@settings(max_examples=300)
def test_all_implementations_refuse_the_same_messages(good: list[Record], wrong: Any) -> None:
    outcomes = set()
    for module in IMPLEMENTATIONS.values():
        records = module.Records(1000, 1000, 1000)
        records.append([MESSAGE], 0, 5, 1.0)
        before = state(records)
        outcome = refused(lambda records=records: records.append([*good, wrong, MESSAGE], 0, 7, 1.0))  # type: ignore[misc]
        if outcome is not None:
            assert state(records) == before
        records.append([MESSAGE], 0, 9, 1.0)  # goes on
        outcomes.add((outcome, state(records)))
    assert len(outcomes) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        [b"k", b"v", ()],
        (b"k", b"v"),
        ("k", b"v", ()),
        (b"k", bytearray(b"v"), ()),
        (b"k", b"v", None),
        (b"k", b"v", iter(())),
        (b"k", b"v", [("a", "b")]),
        (b"k", b"v", [(b"a", b"b")]),
        (b"k", b"v", [["a", b"b"]]),
        (b"k", b"v", [("a",)]),
    ],
)
def test_a_wrong_message_is_a_type_error_and_adds_nothing(new: New, wrong: Any) -> None:
    records = new(1000, 1000, 1000)
    with pytest.raises(TypeError, match=r"message|header"):
        records.append([MESSAGE, MESSAGE, wrong], 0, 5, 1.0)
    assert state(records) == (b"", 0, 0, 0, 0)


def test_a_name_that_is_not_unicode_text_adds_nothing(new: New) -> None:
    records = new(1000, 1000, 1000)
    with pytest.raises(UnicodeEncodeError):
        records.append([MESSAGE, (b"k", b"v", [("\ud800", None)])], 0, 5, 1.0)
    assert records.count == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ({MESSAGE}, 0, 0, 1.0),
        ([MESSAGE], -1, 0, 1.0),
        ([MESSAGE], 2, 0, 1.0),
        ([MESSAGE], 0, -1, 1.0),
        ([MESSAGE], 0, 2**63, 1.0),
        ([MESSAGE], 0, 0, 0.0),
        ([MESSAGE], 0, 0, 1001.0),
        ([MESSAGE], 0, 0, float("nan")),
    ],
)
def test_wrong_arguments_add_nothing(new: New, arguments: tuple[Any, ...]) -> None:
    records = new(1000, 1000, 1000)
    assert refused(lambda: records.append(*arguments)) is not None
    assert records.count == 0


@pytest.mark.parametrize("limits", [(-1, 0, 0), (0, -1, 0), (0, 0, -1), (0, 2**31 - 61, 0), (0, 0, 2**31)])
def test_limits_that_allow_2_gib_are_refused(new: New, limits: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="2 GiB"):
        new(*limits)


def test_a_batch_is_full_when_its_estimate_is(new: New) -> None:
    """After compression to a tenth, the records before count a tenth, and the next one in full."""
    message: Record = (None, b"v" * 990, ())
    for factor, expected in ((1.0, 2), (0.1, 15)):
        records = new(61 + 2450, LARGE, LARGE)
        assert records.append([message] * 20, 0, 0, factor) == expected
        assert records.append([message], 0, 0, factor) == 0


def test_the_raw_limit_holds_however_far_records_are_compressed(new: New) -> None:
    records = new(LARGE, 2990, LARGE)
    assert records.append([(None, b"v" * 990, ())] * 20, 0, 0, 0.001) == 2


@pytest.mark.parametrize("limits", [(0, LARGE), (LARGE, 0), (0, 0)])
def test_a_larger_record_is_alone(new: New, limits: tuple[int, int]) -> None:
    records = new(*limits, LARGE)
    assert records.append([MESSAGE] * 3, 0, 0, 1.0) == 1
    assert records.append([MESSAGE], 0, 0, 1.0) == 0


def test_a_record_beyond_its_limit_is_never_taken(new: New) -> None:
    limit = estimated_size(MESSAGE)
    assert new(LARGE, LARGE, limit).append([MESSAGE], 0, 0, 1.0) == 1
    records = new(LARGE, LARGE, limit - 1)
    assert records.append([(b"", b"", ()), MESSAGE, (b"", b"", ())], 0, 0, 1.0) == 1
    assert records.count == 1


def test_the_estimated_size_is_that_of_the_java_client() -> None:
    # AbstractRecords.estimateSizeInBytesUpperBound: 61 and 21, key and value each with their size, the headers.
    assert estimated_size((None, None, ())) == 61 + 21 + 1 + 1 + 1
    assert estimated_size((b"k" * 64, b"v", [("é", None)])) == 61 + 21 + 66 + 2 + 1 + 3 + 1


def test_records_cannot_change_while_they_are_read(new: New) -> None:
    records = new(LARGE, LARGE, LARGE)
    records.append([MESSAGE], 0, 0, 1.0)
    with records.view() as view:
        before = bytes(view)
        with pytest.raises(BufferError):
            records.append([MESSAGE], 0, 0, 1.0)
        with pytest.raises(BufferError):
            records.clear()
        assert bytes(view) == before
    assert records.append([MESSAGE], 0, 0, 1.0) == 1
    assert records.count == 2


def test_headers_that_can_change_are_encoded_again(new: New) -> None:
    changing: list[tuple[str, bytes | None]] = [("a", b"1")]
    first, second = new(LARGE, LARGE, LARGE), new(LARGE, LARGE, LARGE)
    first.append([(None, None, changing)], 0, 0, 1.0)
    changing[0] = ("b", b"22")
    first.append([(None, None, changing)], 0, 0, 1.0)
    second.append([(None, None, (("a", b"1"),)), (None, None, (("b", b"22"),))], 0, 0, 1.0)
    assert state(first) == state(second)


def test_refused_headers_leave_no_trace(new: New) -> None:
    good, refused_headers = (("a", b"1"),), (("another", b"22"), ("b", 2))
    records, expected = new(LARGE, LARGE, LARGE), new(LARGE, LARGE, LARGE)
    records.append([(None, None, good)], 0, 0, 1.0)
    for _attempt in range(2):
        with pytest.raises(TypeError):
            records.append([(None, None, refused_headers)], 0, 0, 1.0)  # type: ignore[list-item]
    records.append([(None, None, good)], 0, 0, 1.0)
    expected.append([(None, None, good)] * 2, 0, 0, 1.0)
    assert state(records) == state(expected)


def test_memory_of_a_very_large_record_is_returned(new: New) -> None:
    records = new(1000, 1000, LARGE)
    tracemalloc.start()
    try:
        records.append([(None, b"x" * 5_000_000, ())], 0, 0, 1.0)
        assert tracemalloc.get_traced_memory()[0] >= 5_000_000
        records.clear()
        assert tracemalloc.get_traced_memory()[0] < 100_000
    finally:
        tracemalloc.stop()
    assert records.append([MESSAGE], 0, 0, 1.0) == 1


@pytest.mark.skipif(native is None, reason="the compiled code was not built: run docker/setup")
def test_the_compiled_code_holds_no_references() -> None:
    assert native is not None
    records = native.Records(LARGE, LARGE, LARGE)
    key, headers, changing = bytes(bytearray(b"a key")), (("a", b"1"),), [("a", b"1")]
    counts = [sys.getrefcount(each) for each in (key, headers, changing)]
    for given_headers in (headers, changing, headers, changing):
        records.append([(key, key, given_headers)] * 3, 0, 0, 1.0)
        with pytest.raises(TypeError):
            records.append([(key, key, given_headers), None], 0, 0, 1.0)
    del given_headers
    records.append([(key, key, headers)], 0, 0, 1.0)  # held until the next headers
    assert [sys.getrefcount(each) for each in (key, headers, changing)] == [counts[0], counts[1] + 1, counts[2]]
    del records
    assert [sys.getrefcount(each) for each in (key, headers, changing)] == counts
