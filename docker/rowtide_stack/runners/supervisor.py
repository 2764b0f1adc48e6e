"""Runs one server program on behalf of a test run, and ends it when that run ends, however it ends.

Started as a script of its own (``python supervisor.py FOLDER OWNER -- COMMAND...``) in a session of its own, so that a
Ctrl-C of the terminal does not reach the server. It reads one command a line from standard input and answers each with
one line:

    start          runs COMMAND           ->  running PID
    stop SECONDS   SIGTERM, later SIGKILL ->  ended CODE
    kill           SIGKILL                ->  ended CODE
    pause, resume  SIGSTOP, SIGCONT       ->  running PID
    state          nothing                ->  running PID | ended CODE | new

The end of standard input, or of the process OWNER, is the end of the run: even kill -9 closes a pipe. (OWNER is watched
too because a child that OWNER forked may hold the pipe open.) The server is then killed, and FOLDER, which holds its
data, is removed. Should the supervisor itself be killed, Linux kills the server with it (PR_SET_PDEATHSIG); then only
FOLDER stays behind.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1


class Supervisor:
    """The state of one program: not started, running, or ended."""

    def __init__(self, folder: str, argv: list[str]) -> None:
        self.folder = folder
        self.argv = argv
        self.process: subprocess.Popen[bytes] | None = None

    def obey(self, line: str) -> str:
        """Do what a command line says and give the answer."""
        command, *arguments = line.split()
        match command:
            case "start":
                self.start()
            case "stop":
                self.end(signal.SIGTERM, float(arguments[0]))
            case "kill":
                self.end(signal.SIGKILL, 0)
            case "pause":
                self.pause()
            case "resume":
                self.signal(signal.SIGCONT)
        return self.state()

    def state(self) -> str:
        """The answer to every command."""
        if self.process is None:
            return "new"
        code = self.process.poll()
        return f"running {self.process.pid}" if code is None else f"ended {code}"

    def start(self) -> None:
        """Run the program, its output appended to the file ``log`` in the folder; do nothing if it is running."""
        if self.process is not None and self.process.poll() is None:
            return
        with open(os.path.join(self.folder, "log"), "ab") as log:  # noqa: PTH118, PTH123 - starts faster without pathlib
            self.process = subprocess.Popen(
                self.argv,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509 - this process has one thread
            )

    def signal(self, number: int) -> None:
        """Send a signal to the program and all that it started, if it is running."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def pause(self) -> None:
        """Stop the program; only when its last thread has stopped is it sure not to answer any more."""
        self.signal(signal.SIGSTOP)
        if self.process is not None and self.process.returncode is None:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def end(self, number: int, patience: float) -> None:
        """End the program with a signal; after ``patience`` seconds with SIGKILL."""
        if self.process is None:
            return
        self.signal(number)
        self.signal(signal.SIGCONT)  # a stopped process would not see SIGTERM
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
            self.process.wait()


def _die_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _commands(owner: int) -> Iterator[str]:
    """The lines of standard input, until it or the owner ends."""
    sources: list[int] = [0]
    if hasattr(os, "pidfd_open"):
        try:
            sources.append(os.pidfd_open(owner))  # readable when the process has ended
        except ProcessLookupError:
            return
        except OSError:
            pass  # an old kernel, or a sandbox that forbids it: the pipe must do
    buffer = b""
    while True:
        ready = select.select(sources, [], [])[0]
        if ready != [0]:
            return
        data = os.read(0, 4096)
        if not data:
            return
        *lines, buffer = (buffer + data).split(b"\n")
        yield from (line.decode() for line in lines)


def main(arguments: list[str]) -> None:
    """Supervise until the owner or its pipe ends."""
    folder, owner, _, *argv = arguments
    supervisor = Supervisor(folder, argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # runs what is below "finally"
    try:
        for line in _commands(int(owner)):
            try:
                answer = supervisor.obey(line)
            except (OSError, ValueError, IndexError) as error:
                answer = f"failed {error}"
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        pass  # the owner ended while it waited for the answer
    finally:
        supervisor.end(signal.SIGKILL, 0)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
