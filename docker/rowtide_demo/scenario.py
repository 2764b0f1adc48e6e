"""The steps of the demo in order, and the clean-up after them."""

import os
import shutil
import sys
import tempfile
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

from rich.console import Console
from rowtide_stack import StackError
from rowtide_stack.ports import free_port

from rowtide_demo.connector_properties import PREFIX
from rowtide_demo.errors import DemoError
from rowtide_demo.runtime.child_process import ChildProcess
from rowtide_demo.runtime.interruption import Interrupted, Interruption
from rowtide_demo.runtime.screen import Screen
from rowtide_demo.shop.schema import Sizes
from rowtide_demo.steps import keep_running
from rowtide_demo.steps.canal import change_with_canal, load_with_canal, prove_with_canal
from rowtide_demo.steps.context import Context
from rowtide_demo.steps.preparation import check, fetch_programs, fill_shop, start_registry, start_servers
from rowtide_demo.steps.results import Results
from rowtide_demo.steps.streaming import change, snapshot
from rowtide_demo.steps.tables import make_tables, prove
from rowtide_demo.topic_watch import TopicWatch

__all__ = ["run"]

_STEPS, _STEPS_WITH_CANAL = 8, 6
_ROOT = Path(__file__).parents[2]


def run(rows: int, *, keep: bool, canal: bool, avro: bool, interruption: Interruption) -> int:
    """Run the demo, stop everything that it started, and return the exit code.

    Args:
        rows: the initial number of rows.
        keep: keep everything running at the end.
        canal: show ``rowtide canal`` instead of ``rowtide run``.
        avro: write the records in Avro, with a schema registry.
        interruption: the signal that interrupts the demo.
    """
    screen = Screen(Console(), _STEPS_WITH_CANAL if canal else _STEPS)
    folder = Path(tempfile.mkdtemp(prefix="rowtide-demo-"))
    code = 1
    try:
        code = _run_and_stop(screen, interruption, folder, rows, keep=keep, canal=canal, avro=avro)
    finally:
        interruption.hold()
        if code in (0, interruption.exit_code):
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _run_and_stop(
    screen: Screen, interruption: Interruption, folder: Path, rows: int, *, keep: bool, canal: bool, avro: bool
) -> int:
    started = time.monotonic()
    try:
        with ExitStack() as stack:
            sizes = Sizes.of(rows)
            rowtide = Path(sys.executable).with_name("rowtide")
            context = Context(screen, interruption, stack, folder, sizes, Results(sizes), rowtide, free_port())
            try:
                if canal:
                    _run_canal(context, keep=keep)
                else:
                    _run_steps(context, keep=keep, avro=avro)
            finally:
                interruption.hold()
                screen.print("Stopping everything ...", style="dim")
    except Interrupted:
        screen.print("Stopped. All data has been removed.")
        return interruption.exit_code
    except (DemoError, StackError) as error:
        return _failed(screen, folder, str(error))
    except Exception as error:  # noqa: BLE001 - an error of a client, or a bug: the logs are kept
        (folder / "demo.log").write_text(traceback.format_exc())
        return _failed(screen, folder, f"{type(error).__name__}: {error}")
    screen.print(f"Finished in {time.monotonic() - started:.0f} s. All data has been removed.\n")
    screen.print(keep_running.next_steps(_ROOT))
    return 0


def _keep(context: Context, worker: ChildProcess) -> None:
    """Wait for Ctrl-C, which ends the demo normally here."""
    try:
        while True:
            context.interruption.check()
            worker.require_running()
            time.sleep(0.2)
    except Interrupted:
        context.interruption.hold()


def _failed(screen: Screen, folder: Path, what: str) -> int:
    screen.print(f"The demo failed: {what}", style="red")
    screen.print(f"The logs of all programs are in {folder}")
    return 1


def _run_canal(context: Context, *, keep: bool) -> None:
    screen = context.screen
    screen.print(
        "The demo of rowtide canal: a shop in MySQL, Canal's messages in Kafka, and equal tables.", style="bold"
    )
    fetch_programs(context, spark=False)
    mysql, kafka = start_servers(context)
    fill_shop(context, mysql)
    worker, found = load_with_canal(context, mysql, kafka)
    change_with_canal(context, mysql, worker, found)
    prove_with_canal(context, mysql, found)
    if keep:
        screen.print(f"Everything is still running. Kafka is at {kafka.bootstrap}, Canal's configuration in")
        screen.print(f"{context.folder / 'conf'}. Ctrl-C stops everything.")
        _keep(context, worker)
    worker.stop()


def _run_steps(context: Context, *, keep: bool, avro: bool) -> None:
    screen = context.screen
    screen.print("The demo of rowtide: a shop in MySQL, its changes in Kafka, and equal tables in Spark.", style="bold")
    fetch_programs(context, spark=True, avro=avro)
    mysql, kafka = start_servers(context)
    registry = start_registry(context) if avro else None
    fill_shop(context, mysql)
    check(context, mysql, kafka, registry)
    with TopicWatch(kafka.bootstrap, PREFIX, None if registry is None else registry.url) as watch:
        worker = snapshot(context, watch)
        change(context, mysql, worker, watch)
    make_tables(context)
    prove(context)
    screen.print()
    context.results.show(screen)
    screen.print()
    if keep:
        screen.print(keep_running.instructions(context, mysql, kafka, registry, os.getpid()))
        _keep(context, worker)
    worker.stop()
