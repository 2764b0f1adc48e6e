"""The steps of ``rowtide run``: the snapshot, then changes while it streams."""

import statistics
import threading
import time
from collections import Counter

from rowtide_stack import MySQL

from rowtide_demo.errors import DemoError
from rowtide_demo.runtime.child_process import Child
from rowtide_demo.runtime.screen import Step
from rowtide_demo.shop.workload import Business
from rowtide_demo.steps.context import Stage
from rowtide_demo.steps.preparation import UTC
from rowtide_demo.topic_watch import Watch, expected

__all__ = ["change", "differences", "snapshot"]

_MORE = 0.5  # seconds in which a record too many would come


def snapshot(stage: Stage, watch: Watch) -> Child:
    """Start the worker and wait until every row is in Kafka."""
    facts, total = stage.facts, stage.sizes.total
    with stage.screen.step("snapshot") as step:
        worker = stage.start("rowtide run", [stage.rowtide, "run", stage.config, "--web-port", str(stage.web_port)])

        def reached() -> bool:
            done = watch.of("r")
            if not done:
                facts.start_seconds = step.seconds
            step.update(f"{done:,} records in Kafka", done, total)
            return done >= total

        stage.until(reached, lambda: watch.total, worker)
        facts.snapshot_seconds = step.seconds - facts.start_seconds
        step.result = f"{total:,} records in Kafka"
    return worker


def change(stage: Stage, mysql: MySQL, worker: Child, watch: Watch) -> None:
    """Do the shop's business, and wait until all of it is in Kafka, exactly once.

    Raises:
        DemoError: the topics have other records than the changes give.
    """
    before = watch.total
    with stage.screen.step("changes") as step, mysql.connect(init_command=UTC, autocommit=False) as connection:
        business = Business(connection, stage.sizes)
        _do_business(stage, business, worker, watch, step)
        committed = time.monotonic()
        wanted = expected(business.done)

        def reached() -> bool:
            step.update(_told(business, watch))
            return watch.total - before >= wanted.total()

        stage.until(reached, lambda: watch.total, worker)
        facts = stage.facts
        facts.behind = time.monotonic() - committed
        facts.changes_seconds = step.seconds
        facts.transactions, facts.changed_rows = business.transactions, business.rows
        facts.streamed_records, facts.delays = wanted.total(), list(watch.delays)
        facts.record_bytes = watch.bytes
        time.sleep(_MORE)
        wrong = differences(wanted, watch.seen)
        if wrong:
            raise DemoError(f"the topics have other records than MySQL's changes give: {'; '.join(wrong)}")
        step.result = f"{business.rows:,} rows in {business.transactions:,} transactions: {wanted.total():,} records"


def _do_business(stage: Stage, business: Business, worker: Child, watch: Watch, step: Step) -> None:
    """The load, in a thread, while this one shows how far the topics are."""
    failures: list[Exception] = []
    enough = threading.Event()

    def work() -> None:
        try:
            business.run(max(20, stage.sizes.total // 600), enough.is_set)
        except Exception as error:  # noqa: BLE001 - told in the main thread
            failures.append(error)

    thread = threading.Thread(target=work, name="business", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
            stage.interruption.check()
            worker.require_running()
            step.update(_told(business, watch))
    finally:
        enough.set()
        thread.join()
    if failures:
        raise DemoError(f"the load on MySQL failed: {failures[0]}") from failures[0]


def _told(business: Business, watch: Watch) -> str:
    delay = f", {statistics.median(watch.delays[-20:]):.2f} s behind" if watch.delays else ""
    return f"{business.rows:,} rows changed{delay}"


def differences(wanted: Counter[tuple[str, str]], seen: Counter[tuple[str, str]]) -> list[str]:
    """Where the records seen, the snapshot's apart, are not those wanted."""
    keys = {key for key in {*wanted, *seen} if key[1] != "r" and wanted[key] != seen[key]}
    return [f"{table} {kind}: {wanted[table, kind]} expected, {seen[table, kind]} seen" for table, kind in sorted(keys)]
