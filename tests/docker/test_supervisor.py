"""A server ends with the process that created it, for whatever reason. The servers here are sleeping programs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rowtide_stack.errors import StackError
from rowtide_stack.runners.process import ProcessRunner
from rowtide_stack.runners.runner import LocalPlan

PROGRAM = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {PROGRAM}"
OWNER = """
import os, sys, time
from pathlib import Path
from rowtide_stack.runners.process import ProcessRunner
from rowtide_stack.runners.runner import LocalPlan
runner = ProcessRunner("test", LocalPlan(lambda folder: [sys.executable, "-c", sys.argv[1]]))
runner.start()
print(runner.folder, runner._supervisor.pid, flush=True)
if sys.argv[2] == "forked":
    if os.fork() == 0:
        time.sleep(20)
        os._exit(0)
    print("forked", flush=True)
time.sleep(600)
"""


def plan(program: str) -> LocalPlan:
    return LocalPlan(lambda folder: [sys.executable, "-c", program])


@pytest.fixture
def runner() -> Iterator[ProcessRunner]:
    made = ProcessRunner("test", plan(PROGRAM))
    yield made
    made.close()


def pids(folder: Path) -> list[int]:
    """The process ids that the program has written to its log, one for each start."""
    log = folder / "log"
    return [int(line) for line in log.read_text().split()] if log.exists() else []


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # it may end while the file is read
        return False


def eventually(condition: Callable[[], object]) -> bool:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return False


def started(runner: ProcessRunner) -> int:
    """Start the program and return the process id that it writes to its log."""
    before = len(pids(runner.folder))
    runner.start()
    assert eventually(lambda: len(pids(runner.folder)) > before)
    return pids(runner.folder)[-1]


def test_a_program_is_stopped_and_started_again_in_the_same_folder(runner: ProcessRunner) -> None:
    assert not runner.running()
    first = started(runner)
    assert runner.running()
    runner.start()  # no effect while it runs
    runner.stop(20)
    assert not runner.running()
    assert not alive(first)
    second = started(runner)
    assert pids(runner.folder) == [first, second]


def test_a_program_that_ends_by_itself_is_not_running() -> None:
    runner = ProcessRunner("test", plan("print('bye')"))
    runner.start()
    assert eventually(lambda: not runner.running())
    assert runner.log() == "bye\n"
    runner.close()


def test_a_program_that_ignores_sigterm_is_killed() -> None:
    runner = ProcessRunner("test", plan(STUBBORN))
    pid = started(runner)
    runner.stop(0.1)
    assert not alive(pid)
    runner.close()


def test_a_paused_program_can_be_stopped(runner: ProcessRunner) -> None:
    pid = started(runner)
    runner.pause()
    assert eventually(lambda: "T" in Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0])
    assert runner.running()
    runner.resume()
    runner.pause()
    runner.stop(20)
    assert not alive(pid)


def test_closing_ends_the_program_and_removes_its_folder(runner: ProcessRunner) -> None:
    pid = started(runner)
    runner.close()
    assert not alive(pid)
    assert not runner.folder.exists()
    with pytest.raises(StackError, match="has been closed"):
        runner.start()
    runner.close()


def test_a_command_that_cannot_be_run_is_an_error() -> None:
    runner = ProcessRunner("test", LocalPlan(lambda folder: ["/no/such/program"]))
    with pytest.raises(StackError, match="/no/such/program"):
        runner.start()
    runner.close()


def test_a_plan_that_fails_leaves_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))

    def fail(folder: Path) -> list[str]:
        raise StackError("no such program")

    with pytest.raises(StackError, match="no such program"):
        ProcessRunner("test", LocalPlan(fail))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
@pytest.mark.parametrize("kind", ["alone", "forked"])
def test_a_program_ends_with_its_owner(how: signal.Signals, kind: str) -> None:
    # A forked child keeps the pipe of the owner open, so the pipe alone does not show that the owner has ended.
    with subprocess.Popen([sys.executable, "-c", OWNER, PROGRAM, kind], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout
        name, supervisor = owner.stdout.readline().split()
        if kind == "forked":
            owner.stdout.readline()
        folder = Path(name)
        assert eventually(lambda: pids(folder))
        (pid,) = pids(folder)
        owner.send_signal(how)
        owner.wait()
        owner.stdout.close()
        assert eventually(lambda: not alive(pid))
        assert eventually(lambda: not folder.exists())
        assert eventually(lambda: not alive(int(supervisor)))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a process with its parent")
def test_a_program_is_killed_with_its_supervisor(runner: ProcessRunner) -> None:
    pid = started(runner)
    os.kill(runner._supervisor.pid, signal.SIGKILL)
    assert eventually(lambda: not alive(pid))
    with pytest.raises(StackError, match="supervisor has ended"):
        runner.running()


def test_a_terminated_supervisor_cleans_up(runner: ProcessRunner) -> None:
    pid = started(runner)
    os.kill(runner._supervisor.pid, signal.SIGTERM)
    assert eventually(lambda: not alive(pid))
    assert eventually(lambda: not runner.folder.exists())
