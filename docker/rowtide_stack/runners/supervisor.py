"""Runs one server program for another process, and ends it when that process ends for whatever reason.

It is a script (``python supervisor.py FOLDER OWNER -- COMMAND...``) in its own session, so that Ctrl-C on a terminal
does not reach the server. It reads commands from standard input, one per line, and answers each with one line:

    start          runs COMMAND           ->  running PID
    stop SECONDS   SIGTERM, later SIGKILL ->  ended CODE
    kill           SIGKILL                ->  ended CODE
    pause, resume  SIGSTOP, SIGCONT       ->  running PID
    state          nothing                ->  running PID | ended CODE | new

When standard input or the process OWNER ends, the supervisor kills the server and removes FOLDER, which contains the
server's data. Even kill -9 closes a pipe; OWNER is watched as well because its child processes may hold the pipe open.
If the supervisor itself is killed, Linux kills the server too (PR_SET_PDEATHSIG), and only FOLDER remains.
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
    """The program: not started, running, or ended."""

    def __init__(self, folder: str, argv: list[str]) -> None:
        self.folder = folder
        self.argv = argv
        self.process: subprocess.Popen[bytes] | None = None

    def execute(self, line: str) -> str:
        """Execute a command and return the answer."""
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
        """Return the state of the program, which is the answer to every command."""
        if self.process is None:
            return "new"
        code = self.process.poll()
        return f"running {self.process.pid}" if code is None else f"ended {code}"

    def start(self) -> None:
        """Run the program, appending its output to the file ``log`` in the folder, unless it is already running."""
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
        """Send a signal to the program and its children, if it is running."""
        if self.process is not None and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)

    def pause(self) -> None:
        """Suspend the program, and wait until its last thread has stopped."""
        self.signal(signal.SIGSTOP)
        if self.process is not None and self.process.returncode is None:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED | os.WEXITED | os.WNOWAIT)

    def end(self, number: int, patience: float) -> None:
        """Send a signal to the program, and SIGKILL after ``patience`` seconds."""
        if self.process is None:
            return
        self.signal(number)
        self.signal(signal.SIGCONT)  # a stopped process does not receive SIGTERM
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
            pass  # an old kernel, or forbidden by a sandbox: only the pipe is watched
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
    """Execute commands until the owner or its pipe ends."""
    folder, owner, _, *argv = arguments
    supervisor = Supervisor(folder, argv)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # SystemExit runs the "finally" block
    try:
        for line in _commands(int(owner)):
            try:
                answer = supervisor.execute(line)
            except (OSError, ValueError, IndexError) as error:
                answer = f"failed {error}"
            sys.stdout.write(answer + "\n")
            sys.stdout.flush()
    except BrokenPipeError:
        pass  # the owner ended before it read the answer
    finally:
        supervisor.end(signal.SIGKILL, 0)
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
