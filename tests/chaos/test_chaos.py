"""The check of the records; the campaign itself is started by hand."""

from __future__ import annotations

import json
from typing import Any

from tests.chaos.accounts import account


def change(op: str, before: Any, after: Any, snapshot: str = "false") -> bytes:
    return json.dumps({"op": op, "before": before, "after": after, "source": {"snapshot": snapshot}}).encode()


def of(number: int, version: int) -> dict[str, int]:
    return {"id": number, "v": version}


ACCOUNTS = [
    change("r", None, of(1, 5), "first"),
    change("u", of(1, 5), of(1, 6)),
    change("c", None, of(2, 1)),
    change("d", of(1, 6), None),
    None,
    change("c", None, of(1, 7)),
]
ENTRIES = [
    change("r", None, {"writer": 0, "n": 2}, "first_in_data_collection"),
    change("r", None, {"writer": 0, "n": 1}, "last"),
    change("c", None, {"writer": 0, "n": 3}),
    change("c", None, {"writer": 0, "n": 4}),
]
TABLE, NUMBERS = {1: 7, 2: 1}, {0: 4}


def test_complete_records_have_no_problems() -> None:
    assert account(ACCOUNTS, ENTRIES, TABLE, NUMBERS, exactly_once=True) == ([], 0)


def test_repeated_records_are_a_problem_with_exactly_once_only() -> None:
    again = [*ACCOUNTS[:3], *ACCOUNTS[1:]]
    assert account(again, [*ENTRIES, ENTRIES[3]], TABLE, NUMBERS, exactly_once=False) == ([], 3)
    problems, _ = account(again, ENTRIES, TABLE, NUMBERS, exactly_once=True)
    assert problems == ["2 records are repeated"]


def test_every_lost_record_is_found() -> None:
    for lost in (1, 2, 3, 5):
        assert account(ACCOUNTS[:lost] + ACCOUNTS[lost + 1 :], ENTRIES, TABLE, NUMBERS, exactly_once=False)[0], lost
    for lost in (1, 2, 3):
        assert account(ACCOUNTS, ENTRIES[:lost] + ENTRIES[lost + 1 :], TABLE, NUMBERS, exactly_once=False)[0], lost


def test_records_out_of_order_are_found() -> None:
    swapped = [ACCOUNTS[0], ACCOUNTS[2], ACCOUNTS[3], ACCOUNTS[1], *ACCOUNTS[4:]]
    assert account(swapped, ENTRIES, TABLE, NUMBERS, exactly_once=False)[0]
    assert account(ACCOUNTS, [*ENTRIES[:2], ENTRIES[3], ENTRIES[2]], TABLE, NUMBERS, exactly_once=False)[0]


def test_a_repeated_snapshot_has_no_rows_that_were_deleted_before_it() -> None:
    aborted = [change("r", None, of(3, 1), "first"), change("r", None, of(1, 4), "true")]
    assert account([*aborted, *ACCOUNTS], [*ENTRIES[:1], *ENTRIES], TABLE, NUMBERS, exactly_once=True) == ([], 0)
