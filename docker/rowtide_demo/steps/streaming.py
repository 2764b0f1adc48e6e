"""The steps with ``rowtide run``: the snapshot, then changes while it streams."""

import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from rowtide_stack import MySQL

from rowtide_demo.errors import DemoError
from rowtide_demo.runtime.child_process import ChildProcess
from rowtide_demo.runtime.screen import Step
from rowtide_demo.shop.workload import Workload
from rowtide_demo.steps.context import Context
from rowtide_demo.steps.preparation import UTC
from rowtide_demo.topic_watch import TopicWatch, expected_records

__all__ = ["change", "differences", "run_workload", "snapshot"]

_EXTRA = 0.5  # seconds to wait for records that must not come


def snapshot(context: Context, watch: TopicWatch) -> ChildProcess:
    """Start the worker and wait until every row is in Kafka."""
    results, total = context.results, context.sizes.total
    with context.screen.step("snapshot") as step:
        command: list[str | Path] = [context.rowtide, "run", context.config, "--web-port", str(context.web_port)]
        worker = context.start("rowtide run", command)

        def reached() -> bool:
            done = watch.of("r")
            if not done:
                results.start_seconds = step.seconds
            step.update(f"{done:,} records in Kafka", done, total)
            return done >= total

        context.until(reached, lambda: watch.total, worker)
        results.snapshot_seconds = step.seconds - results.start_seconds
        step.result = f"{total:,} records in Kafka"
    return worker


def change(context: Context, mysql: MySQL, worker: ChildProcess, watch: TopicWatch) -> None:
    """Change the tables, and wait until each change is in Kafka exactly once.

    Raises:
        DemoError: records are missing from the topics, or there are too many.
    """
    before = watch.total
    with context.screen.step("changes") as step, mysql.connect(init_command=UTC, autocommit=False) as connection:
        workload = Workload(connection, context.sizes)
        run_workload(context, workload, worker, step, lambda: _progress_text(workload, watch))
        committed = time.monotonic()
        required = expected_records(workload.done)

        def reached() -> bool:
            step.update(_progress_text(workload, watch))
            return watch.total - before >= required.total()

        context.until(reached, lambda: watch.total, worker)
        results = context.results
        results.behind = time.monotonic() - committed
        results.changes_seconds = step.seconds
        results.transactions, results.changed_rows = workload.transactions, workload.rows
        results.streamed_records, results.delays = required.total(), list(watch.delays)
        results.record_bytes = watch.bytes
        time.sleep(_EXTRA)
        wrong = differences(required, watch.seen)
        if wrong:
            raise DemoError(f"the records in the topics do not match the changes in MySQL: {'; '.join(wrong)}")
        step.result = f"{workload.rows:,} rows in {workload.transactions:,} transactions: {required.total():,} records"


def run_workload(
    context: Context, workload: Workload, worker: ChildProcess, step: Step, progress: Callable[[], str]
) -> None:
    """Run the workload in a thread, and show its progress.

    Raises:
        DemoError: the workload has failed, or the worker has ended.
    """
    failures: list[Exception] = []
    stopped = threading.Event()

    def run() -> None:
        try:
            workload.run(max(20, context.sizes.total // 600), stopped.is_set)
        except Exception as error:  # noqa: BLE001 - raised in the main thread
            failures.append(error)

    thread = threading.Thread(target=run, name="workload", daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(0.1)
            context.interruption.check()
            worker.require_running()
            step.update(progress())
    finally:
        stopped.set()
        thread.join()
    if failures:
        raise DemoError(f"the workload on MySQL failed: {failures[0]}") from failures[0]


def _progress_text(workload: Workload, watch: TopicWatch) -> str:
    delay = f", {statistics.median(watch.delays[-20:]):.2f} s behind" if watch.delays else ""
    return f"{workload.rows:,} rows changed{delay}"


def differences(required: Counter[tuple[str, str]], seen: Counter[tuple[str, str]]) -> list[str]:
    """Return the differences between the required records and those seen, without the records of the snapshot."""
    keys = {key for key in {*required, *seen} if key[1] != "r" and required[key] != seen[key]}
    return [
        f"{table} {kind}: {required[table, kind]} expected, {seen[table, kind]} seen" for table, kind in sorted(keys)
    ]
