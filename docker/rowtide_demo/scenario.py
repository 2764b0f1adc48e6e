"""The demo from beginning to end."""

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
from rowtide_demo.runtime.child_process import Child
from rowtide_demo.runtime.interruption import Interrupted, Interruption
from rowtide_demo.runtime.screen import Screen
from rowtide_demo.shop.schema import Sizes
from rowtide_demo.steps import keep_running
from rowtide_demo.steps.context import Stage
from rowtide_demo.steps.preparation import check, fetch_programs, fill_shop, start_servers
from rowtide_demo.steps.results import Facts
from rowtide_demo.steps.streaming import change, snapshot
from rowtide_demo.steps.tables import make_tables, prove
from rowtide_demo.topic_watch import Watch

__all__ = ["run"]

_STEPS = 8
_ROOT = Path(__file__).parents[2]


def run(rows: int, *, keep: bool, interruption: Interruption) -> int:
    """Run the demo and end all that it has started; gives the exit code."""
    screen = Screen(Console(), _STEPS)
    folder = Path(tempfile.mkdtemp(prefix="rowtide-demo-"))
    code = 1
    try:
        code = _guarded(screen, interruption, folder, rows, keep=keep)
    finally:
        interruption.hold()
        if code in (0, interruption.exit_code):
            shutil.rmtree(folder, ignore_errors=True)
    return code


def _guarded(screen: Screen, interruption: Interruption, folder: Path, rows: int, *, keep: bool) -> int:
    began = time.monotonic()
    try:
        with ExitStack() as stack:
            sizes = Sizes.of(rows)
            rowtide = Path(sys.executable).with_name("rowtide")
            stage = Stage(screen, interruption, stack, folder, sizes, Facts(sizes), rowtide, free_port())
            try:
                _tell(stage, keep=keep)
            finally:
                interruption.hold()
                screen.say("Stopping everything ...", style="dim")
    except Interrupted:
        screen.say("Stopped; nothing is left behind.")
        return interruption.exit_code
    except (DemoError, StackError) as error:
        return _failed(screen, folder, str(error))
    except Exception as error:  # noqa: BLE001 - a client's error, or a mistake of ours: the logs stay either way
        (folder / "demo.log").write_text(traceback.format_exc())
        return _failed(screen, folder, f"{type(error).__name__}: {error}")
    screen.say(f"All of it took {time.monotonic() - began:.0f} s; nothing is left behind.\n")
    screen.say(keep_running.next_steps(_ROOT))
    return 0


def _keep(stage: Stage, worker: Child) -> None:
    """Wait for Ctrl-C: here it is no interruption, but the end."""
    try:
        while True:
            stage.interruption.check()
            worker.require_running()
            time.sleep(0.2)
    except Interrupted:
        stage.interruption.hold()


def _failed(screen: Screen, folder: Path, what: str) -> int:
    screen.say(f"The demo has failed: {what}", style="red")
    screen.say(f"The logs of all programs are in {folder}")
    return 1


def _tell(stage: Stage, *, keep: bool) -> None:
    screen = stage.screen
    screen.say(
        "rowtide's demo: a shop in MySQL, its changes in Kafka, its tables in Spark, proved equal.", style="bold"
    )
    fetch_programs(stage)
    mysql, kafka = start_servers(stage)
    fill_shop(stage, mysql)
    check(stage, mysql, kafka)
    with Watch(kafka.bootstrap, PREFIX) as watch:
        worker = snapshot(stage, watch)
        change(stage, mysql, worker, watch)
    make_tables(stage)
    prove(stage, mysql)
    screen.say()
    stage.facts.show(screen)
    screen.say()
    if keep:
        screen.say(keep_running.advice(stage, mysql, kafka, os.getpid()))
        _keep(stage, worker)
    worker.stop()
