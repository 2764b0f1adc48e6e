"""The checks of the campaign: every lost, misplaced or unexpectedly repeated change is found."""

from __future__ import annotations

import pytest

from tests.canal.clients.received import Position, Received
from tests.canal.clients.workload import Row, planned, table

INSERT = [Row("INSERT", (), (str(number), str(number), "x")) for number in range(6)]
EXPECTED = {"a": INSERT[:4], "b": INSERT[4:]}


def received(lines: list[str], stored: Position | None = None) -> Received:
    """What a client got; ``KILL`` stands for a kill."""
    found = Received(EXPECTED)
    for line in lines:
        if line == "KILL":
            found.killed(stored)
        else:
            found.feed(line)
    return found


def row(number: int, where: str | None = None) -> str:
    return f"row\t{where or ('a' if number < 4 else 'b')}\tINSERT\t|\t{number}\t{number}\tx"


def at(pos: int) -> str:
    return f"at\tbinlog.000001\t{pos}"


FIRST = ["connected", "batch\t1", at(10), row(0), row(4), at(11), "ack\t1", "batch\t2", at(20), row(1)]
REST = [row(2), at(21), at(30), row(3), row(5), at(31)]


def test_all_changes_once() -> None:
    found = received([*FIRST, *REST])
    assert (found.problems, found.complete, found.changes, found.repeated) == ([], True, 6, 0)
    assert not received([*FIRST, *REST[:-2]]).complete


def test_changes_come_again_from_the_stored_position_on() -> None:
    again = ["lost\tx", "connected", "batch\t1", at(20), row(1)]
    found = received([*FIRST, "KILL", *again, *REST], Position("binlog.000001", 11))
    assert (found.problems, found.complete, found.repeated, found.rewinds) == ([], True, 1, 1)


def test_without_a_stored_position_all_changes_come_again() -> None:
    found = received([*FIRST, "KILL", *FIRST, *REST])
    assert (found.problems, found.complete, found.repeated) == ([], True, 3)


def test_a_slow_client_shows_after_a_second_kill_what_it_got_before() -> None:
    found = received([*FIRST, "KILL", "KILL", *FIRST[:6], *FIRST, *REST])
    assert (found.problems, found.complete, found.rewinds) == ([], True, 2)
    assert received([*FIRST, "KILL", "KILL", *FIRST, *FIRST, *FIRST]).problems


@pytest.mark.parametrize("lost", [3, 4, 9])
def test_a_lost_change_is_found(lost: int) -> None:
    assert received([*FIRST[:lost], *FIRST[lost + 1 :], *REST]).problems


def test_a_gap_after_a_kill_is_found() -> None:
    assert received([*FIRST, "KILL", "batch\t1", row(3)], Position("binlog.000001", 11)).problems


def test_repeats_from_before_the_stored_position_are_found() -> None:
    assert received([*FIRST, "KILL", "batch\t1", row(0)], Position("binlog.000001", 11)).problems


def test_repeats_without_a_kill_within_a_batch_and_out_of_order_are_found() -> None:
    assert received([*FIRST, *FIRST]).problems
    assert received([*FIRST, "KILL", *FIRST, *FIRST]).problems
    assert received([*FIRST, row(1)]).problems
    assert received([*FIRST[:3], row(1), row(0)]).problems
    again = ["batch\t1", at(20), row(2)]
    assert received([*FIRST, "KILL", *again], Position("binlog.000001", 20)).problems


def test_a_stored_position_that_nobody_got_is_found() -> None:
    assert received([*FIRST, "KILL"], Position("binlog.000001", 99)).problems


def test_other_values_and_tables_are_found() -> None:
    assert received([row(0, "b")]).problems
    assert received([row(0, "c")]).problems
    assert received([row(0).replace("\tx", "\ty")]).problems


def test_a_plan_is_that_of_its_seed_and_changes_each_key_in_turn() -> None:
    plan = list(planned(3, 1, 3000))
    assert plan == list(planned(3, 1, 3000))
    assert plan != list(planned(4, 1, 3000))
    rows = [row for transaction in plan for row in transaction.rows]
    assert len(rows) >= 3000
    assert {row.kind for row in rows} == {"INSERT", "UPDATE", "DELETE"}
    widths = [len(row.before or row.after) for row in rows]
    assert widths == sorted(widths)
    assert set(widths) == set(range(3, 10))
    images: dict[str, tuple[str, ...]] = {}
    for row in rows:
        key = (row.before or row.after)[0]
        assert images.pop(key, ()) == row.before[:3]
        if row.after:
            images[key] = row.after[:3]
    assert all(table(1) in statement for transaction in plan for statement in transaction.statements)
