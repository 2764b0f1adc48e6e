"""The runner without Docker: a local process under a supervisor (see `rowtide_stack.runners.supervisor`)."""

import os
import shutil
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from rowtide_stack.errors import StackError
from rowtide_stack.runners import supervisor
from rowtide_stack.runners.runner import LocalPlan

__all__ = ["ProcessRunner"]


class ProcessRunner:
    """A program in a temporary folder. Both are removed when this process ends."""

    def __init__(self, name: str, plan: LocalPlan) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"rowtide-{name}-"))
        try:
            argv = plan.prepare(self.folder)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._supervisor = subprocess.Popen(
            # -I -S: the supervisor needs no installed packages, and starts faster without them
            [sys.executable, "-I", "-S", supervisor.__file__, str(self.folder), str(os.getpid()), "--", *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._lock = threading.Lock()  # a test may kill a server in one thread while another thread uses it

    def start(self) -> None:
        """Start the program if it is not running."""
        self._send("start")

    def stop(self, patience: float) -> None:
        """Send SIGTERM, and SIGKILL after ``patience`` seconds."""
        self._send(f"stop {patience}")

    def kill(self) -> None:
        """Send SIGKILL."""
        self._send("kill")

    def pause(self) -> None:
        """Send SIGSTOP."""
        self._send("pause")

    def resume(self) -> None:
        """Send SIGCONT."""
        self._send("resume")

    def running(self) -> bool:
        """Return whether the program runs."""
        return self._send("state").startswith("running")

    def log(self) -> str:
        """Return the standard output and standard error of the program."""
        try:
            return (self.folder / "log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def close(self) -> None:
        """Kill the program and remove the folder."""
        # communicate() closes the pipe, upon which the supervisor ends
        self._supervisor.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)  # in case the supervisor was killed

    def _send(self, command: str) -> str:
        stdin, stdout = self._supervisor.stdin, self._supervisor.stdout
        with self._lock:
            if stdin is None or stdout is None or stdin.closed:
                raise StackError("the server has been closed: create a new one")
            try:
                stdin.write(command + "\n")
                stdin.flush()
                answer = stdout.readline().strip()
            except BrokenPipeError:
                answer = ""
        if not answer:
            raise StackError("the server's supervisor has ended: create a new server")
        if answer.startswith("failed"):
            raise StackError(f"{command}: {answer}")
        return answer
