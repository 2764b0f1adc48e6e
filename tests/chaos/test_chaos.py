"""The check of the records, and the scenarios; the campaign itself is started by hand."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rowtide.connector.config.load import from_properties
from tests.chaos.accounts import account, made_problems, sent_problems
from tests.chaos.records import envelope, read_records
from tests.chaos.scenario import Scenario
from tests.support.configurations import PROPERTIES


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


SENT = {"0a": [1, 2, 3], "0b": [1, 2]}
ROWS = {"0a": 3, "0b": 2}


def test_numbers_of_the_outbox_are_complete_and_may_begin_again() -> None:
    assert sent_problems(SENT, ROWS, exactly_once=True) == ([], 0)
    assert sent_problems({**SENT, "0a": [1, 2, 1, 2, 3]}, ROWS, exactly_once=True) == ([], 0)


@pytest.mark.parametrize("numbers", [[], [1, 2], [1, 3], [2, 3], [1, 3, 2]])
def test_every_lost_number_of_the_outbox_is_found(numbers: list[int]) -> None:
    assert sent_problems({**SENT, "0a": numbers}, ROWS, exactly_once=False)[0]


def test_repeated_numbers_of_the_outbox_are_a_problem_with_exactly_once_only() -> None:
    again = {**SENT, "0a": [1, 2, 2, 3]}
    assert sent_problems(again, ROWS, exactly_once=False) == ([], 1)
    assert sent_problems(again, ROWS, exactly_once=True) == (["outbox: 1 records are repeated"], 1)


def test_rows_of_tables_that_are_made_meanwhile_are_complete() -> None:
    made = [change("r", None, {"id": 0}, "last"), change("c", None, {"id": 1})]
    assert made_problems({"m": made}, {"m": {0, 1}}, exactly_once=True) == []
    assert made_problems({"m": made[:1]}, {"m": {0, 1}}, exactly_once=True) == ["m has rows [0], not [0, 1]"]
    again = [*made, made[1]]
    assert made_problems({"m": again}, {"m": {0, 1}}, exactly_once=False) == []
    assert made_problems({"m": again}, {"m": {0, 1}}, exactly_once=True) == ["m has repeated records: [1, 1]"]


def flat(op: str, row: Any) -> bytes:
    return json.dumps({**row, "__op": op, "__table": "t", "__source_snapshot": "false"}).encode()


def test_flattened_records_become_envelopes() -> None:
    updated, deleted = (json.loads(envelope(flat(op, of(1, 2))) or b"") for op in "ud")
    assert (updated["op"], updated["before"], updated["after"]["v"]) == ("u", None, 2)
    assert (deleted["op"], deleted["after"], deleted["before"]["v"]) == ("d", None, 2)
    assert updated["source"] == {"snapshot": "false"}
    assert envelope(None) is None


def test_routed_records_are_those_of_their_tables() -> None:
    def routed(table: str, row: Any) -> bytes:
        return json.dumps({"op": "c", "before": None, "after": row, "source": {"table": table}}).encode()

    account, entry = routed("accounts", of(1, 1)), routed("entries", {"writer": 0, "n": 1})
    topics: dict[str, list[bytes | None]] = {"d.all": [account, None, entry], "outbox.event.0a": [b'"1"', b'"2"']}
    records = read_records(lambda topic: topics.get(topic, []), "d", "routed", ["0a", "0b"], ["m"])
    assert (records.accounts, records.entries) == ([account], [entry])
    assert records.sent == {"0a": [1, 2], "0b": []}
    assert records.made == {"m": []}
    assert records.count() == 4


def test_seeds_cover_all_scenarios() -> None:
    scenarios = [Scenario.of(flavor, seed) for flavor in ("mysql", "mariadb") for seed in range(60)]
    assert scenarios == [Scenario.of(flavor, seed) for flavor in ("mysql", "mariadb") for seed in range(60)]
    names = "exactly_once", "compressed", "small_files", "encrypted", "replica", "small_disks", "rows_before"
    for name in (*names, "native_producer"):
        for flavor in ("mysql", "mariadb"):
            values = {bool(getattr(each, name)) for each in scenarios if each.flavor == flavor}
            assert values == {True, False}, (flavor, name)
    assert {(each.transform, each.exactly_once) for each in scenarios} == {
        (transform, once) for transform in ("no transform", "flattened", "routed") for once in (True, False)
    }
    assert {each.gtids for each in scenarios if each.flavor == "mysql"} == {True, False}
    assert not [each for each in scenarios if each.replica and not each.gtids]


def test_the_configuration_of_every_scenario_is_valid() -> None:
    for seed in range(60):
        scenario = Scenario.of("mysql", seed)
        from_properties({**PROPERTIES, **scenario.properties()}, {})
