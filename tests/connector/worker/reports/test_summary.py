"""The summaries in the log."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.engine.stream_attempts import ReaderStatus
from rowtide.connector.snapshot.status import TableProgress
from rowtide.connector.worker.reports.summary import SummaryLog, summary
from tests.support.processes.made_statuses import OFFSET, UUID, status

IDLE = ReaderStatus(connected=True, idle=True)


def test_a_summary_is_logged_at_a_fixed_interval_also_without_changes() -> None:
    lines: list[tuple[int, str]] = []
    second = 0
    log = SummaryLog(lambda line: lines.append((second, line)), 60)
    for second in range(0, 400, 5):
        records = min(second, 100)
        fields: dict[str, Any] = {"reader": IDLE, "delivery": DeliveryCounters(records), "stored": OFFSET}
        log.tick(status(name="shop", now=float(second), **fields))
    assert [second for second, _ in lines] == [60, 120, 180, 240, 300, 360]
    assert lines[0][1].startswith("shop: 60 records in 60 s; 0.0 s behind; stored position binlog.000007:1234, GTIDs")
    assert [line.split(";")[0] for _, line in lines[1:]] == ["shop: 40 records in 60 s"] + [
        "shop: 0 records in 60 s"
    ] * 4


def test_a_stored_position_inside_a_transaction_shows_what_of_it_is_done() -> None:
    found = summary(status(reader=IDLE, stored=replace(OFFSET, within=f"{UUID}:10")), 0, 60)
    assert found.endswith(f"{UUID}:red:1-2 (2 events and 1 row of transaction {UUID}:10 done)")


def test_a_new_run_counts_from_zero() -> None:
    lines: list[str] = []
    log = SummaryLog(lines.append, 10)
    for now, records in [(0, 0), (10, 500), (20, 30)]:
        log.tick(status(name="shop", now=float(now), delivery=DeliveryCounters(records)))
    assert [line.split(" ")[1] for line in lines] == ["500", "30"]


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        (TableProgress(3, 8), ", in db.b 3 of about 8"),
        (TableProgress(9, 8), ", in db.b 9"),
        (TableProgress(3), ", in db.b 3"),
        (TableProgress(), ""),
    ],
)
def test_a_snapshot(rows: TableProgress, text: str) -> None:
    tables = {"db.a": TableProgress(10, 12, finished=True), "db.b": rows}
    found = summary(status(state="SNAPSHOT", snapshot=tables), 0, 60)
    assert found == f"snapshot: 1 of 2 tables, {10 + rows.done} rows{text}"
    delivery = DeliveryCounters(messages_per_second=1234.4)
    assert summary(status(state="SNAPSHOT", snapshot=tables, delivery=delivery), 0, 60) == f"{found}, 1,234 rows/s"


def test_what_is_wrong_comes_first() -> None:
    now = status(state="RECONNECTING", error="the server is away")
    assert summary(now, 0, 60) == "RECONNECTING; the server is away; 0 records in 60 s"
    stuck = DeliveryCounters(stuck_s=45.0, problem="refused")
    assert summary(status(delivery=stuck), 5, 60).startswith("Kafka has not answered for 45 s: refused; 5 records")


def test_one_is_singular() -> None:
    assert "; 1 record in 60 s" in summary(status(state="RECONNECTING"), 1, 60)
    one = {"db.a": TableProgress(1, 1, finished=True)}
    assert summary(status(state="SNAPSHOT", snapshot=one), 0, 60).startswith("snapshot: 1 of 1 table, 1 row")
