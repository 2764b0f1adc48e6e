"""The account of numbered messages."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tests.chaos.numbered import BLOCK, Place, account, place

PLACES: list[Place] = [("a", 0), ("a", 1), ("b", -1)]
COUNT = 40 * BLOCK


def numbers_of(wanted: Place) -> list[int]:
    return [number for number in range(COUNT) if place(number, PLACES) == wanted]


COMPLETE = {("a", 0): numbers_of(("a", 0)), ("a", 1): numbers_of(("a", 1)), ("b", 0): numbers_of(("b", -1))}


def problems(found: dict[Place, list[int]], starts: int = 1, *, exactly_once: bool = False) -> tuple[list[str], int]:
    def read(topic: str) -> list[Any]:
        return [
            SimpleNamespace(partition=partition, value=b"%d  " % number)
            for (name, partition), numbers in found.items()
            if name == topic
            for number in numbers
        ]

    return account(read, PLACES, COUNT, starts, exactly_once=exactly_once)


def with_one(at: Place, numbers: Sequence[int]) -> dict[Place, list[int]]:
    return {**COMPLETE, at: list(numbers)}


def test_complete_records_are_not_a_problem() -> None:
    assert problems(COMPLETE, exactly_once=True) == ([], 0)


@pytest.mark.parametrize("at", COMPLETE)
def test_every_lost_record_is_found(at: Place) -> None:
    numbers = COMPLETE[at]
    for lost in (0, 5, len(numbers) - 1):
        assert problems(with_one(at, numbers[:lost] + numbers[lost + 1 :]), 9)[0], lost
    assert problems({place: found for place, found in COMPLETE.items() if place != at})[0]


def test_repeated_records_are_a_problem_with_exactly_once_or_without_a_restart() -> None:
    numbers = COMPLETE["a", 0]
    again = with_one(("a", 0), [*numbers[:20], *numbers[10:]])
    assert problems(again, 2) == ([], 10)
    assert problems(again, 1)[0]
    assert problems(again, 2, exactly_once=True)[0]


def test_a_record_in_two_partitions_is_a_problem_with_exactly_once() -> None:
    again = {**COMPLETE, ("b", 1): COMPLETE["b", 0][:5]}
    assert problems(again, 1) == ([], 0)
    assert problems(again, 1, exactly_once=True)[0]


def test_records_out_of_order_or_of_another_partition_are_found() -> None:
    numbers = COMPLETE["a", 0]
    assert problems(with_one(("a", 0), [*numbers[:3], numbers[4], numbers[3], *numbers[5:]]), 9)[0]
    assert problems(with_one(("a", 0), [*numbers, COMPLETE["a", 1][-1]]), 9)[0]
    assert problems(with_one(("a", 0), [*numbers, COUNT]), 9)[0]
