"""The live view on a terminal."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.snapshot.status import TableProgress
from rowtide.connector.worker.reports.terminal import Terminal, progress, view
from rowtide.connector.worker.status import Status
from tests.support.processes.made_statuses import status

READER = ReaderStatus(connected=True, idle=True, file="binlog.000007", pos=81524)
TOPICS = {"shop.a": (7, 1), "shop.b": (1_240_113, 1), "shop.c": (7, 1)}


def drawn(*statuses: Status, lines: int = 8, width: int = 120) -> list[str]:
    console = Console(file=io.StringIO(), width=width, height=30, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(view(statuses, lines))
    return [line.rstrip() for line in capture.get().splitlines()]


def test_streaming() -> None:
    delivery = DeliveryCounters(topics=TOPICS, messages_per_second=1240.2)
    found = drawn(status(name="shop", reader=READER, delivery=delivery))
    assert found == [
        "shop  RUNNING  binlog.000007:81524  0.0 s behind  1,240 records/s",
        "  shop.b  1,240,113 records",
        "  shop.a          7 records",
        "  shop.c          7 records",
    ]
    assert drawn(status(name="shop", delivery=delivery), lines=1)[1:] == [
        "  shop.b  1,240,113 records",
        "  and 2 more topics",
    ]


def test_several_connectors_and_what_is_wrong() -> None:
    found = drawn(status(name="a"), status(name="b", state="RECONNECTING", error="the server is away"))
    assert found == ["a  RUNNING", "b  RECONNECTING", "  the server is away"]


def test_a_snapshot_beside_the_stream() -> None:
    tables = {"db.a": TableProgress(10, 40), "db.b": TableProgress()}
    found = drawn(status(name="shop", delivery=DeliveryCounters(topics=TOPICS), snapshot=tables), lines=4)
    assert found[0].startswith("shop  RUNNING")
    assert found[1].split() == ["db.a", found[1].split()[1], "25", "%", "10", "of", "about", "40", "rows"]
    assert found[2:] == [
        "  and 1 more tables",
        "  shop.b  1,240,113 records",
        "  shop.a          7 records",
        "  and 1 more topics",
    ]


def test_a_long_line_is_cut_not_wrapped() -> None:
    found = drawn(status(name="shop", state="RECONNECTING", error="x" * 100), width=40)
    assert [len(line) for line in found] == [18, 40]
    assert found[1].endswith("…")


def test_a_snapshot() -> None:
    tables = {
        "db.a": TableProgress(10, 1, finished=True),
        "db.b": TableProgress(30, 60),
        "db.c": TableProgress(),
    }
    found = drawn(status(name="shop", state="SNAPSHOT", snapshot=tables))
    assert found[0] == "shop  SNAPSHOT  1 of 3 tables  40 rows"
    assert found[1].startswith("  db.b  ")
    assert found[1].endswith("50 %  30 of about 60 rows")
    assert found[2].startswith("  db.a  ")
    assert found[2].endswith("100 %  10 rows")
    assert found[3] == "  and 1 more tables"


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        (TableProgress(0, 100), ("0 %", "0 of about 100 rows")),
        (TableProgress(999, 1000), ("99 %", "999 of about 1,000 rows")),
        (TableProgress(9_999_999, 10_000_000), ("99 %", "9,999,999 of about 10,000,000 rows")),
        (TableProgress(1000, 1000), ("", "1,000 rows, more than the server's estimate")),
        (TableProgress(5000, 137), ("", "5,000 rows, more than the server's estimate")),
        (TableProgress(5000), ("", "5,000 rows")),
        (TableProgress(5000, 0), ("", "5,000 rows")),
        (TableProgress(5000, 137, finished=True), ("100 %", "5,000 rows")),
        (TableProgress(5, 137, finished=True), ("100 %", "5 rows")),
        (TableProgress(0, 137, finished=True), ("100 %", "0 rows")),
        (TableProgress(1, 137, finished=True), ("100 %", "1 row")),
        (TableProgress(0, 1), ("0 %", "0 of about 1 row")),
    ],
)
def test_an_estimate_never_becomes_a_false_100_percent(rows: TableProgress, shown: tuple[str, str]) -> None:
    assert progress(rows) == shown


def test_the_view_is_drawn_in_place_and_removed() -> None:
    console = Console(file=io.StringIO(), width=80, height=30, force_terminal=True, color_system=None)
    terminal = Terminal(console)
    with console.capture() as capture:
        for _ in range(3):
            terminal.show([status(name="shop", reader=READER)])
        console.print("a line of the log")
        terminal.close()
    text = capture.get()
    assert text.count("\x1b[2K") >= 4, "each drawing clears the last one"
    assert text.index("a line of the log") < text.rindex("shop")
