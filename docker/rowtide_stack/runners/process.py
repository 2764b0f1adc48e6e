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
    """A program in a temporary folder; the folder and the program are gone when this process ends."""

    def __init__(self, name: str, plan: LocalPlan) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"rowtide-{name}-"))
        try:
            argv = plan.prepare(self.folder)
        except BaseException:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._supervisor = subprocess.Popen(
            # -I -S: the supervisor needs no installed package, and starts at once without them
            [sys.executable, "-I", "-S", supervisor.__file__, str(self.folder), str(os.getpid()), "--", *argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._asking = threading.Lock()  # a test may kill a server in one thread while it is used in another

    def start(self) -> None:
        """Start the program if it is not running."""
        self._ask("start")

    def stop(self, patience: float) -> None:
        """SIGTERM, and after ``patience`` seconds SIGKILL."""
        self._ask(f"stop {patience}")

    def kill(self) -> None:
        """SIGKILL."""
        self._ask("kill")

    def pause(self) -> None:
        """SIGSTOP."""
        self._ask("pause")

    def resume(self) -> None:
        """SIGCONT."""
        self._ask("resume")

    def running(self) -> bool:
        """Whether the program has been started and has not ended."""
        return self._ask("state").startswith("running")

    def log(self) -> str:
        """What the program has written to standard output and error."""
        try:
            return (self.folder / "log").read_text(errors="replace")
        except FileNotFoundError:
            return ""

    def close(self) -> None:
        """Let the supervisor kill the program and remove the folder."""
        # communicate() closes the pipe, which is the supervisor's sign to end
        self._supervisor.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)  # should the supervisor have been killed

    def _ask(self, command: str) -> str:
        stdin, stdout = self._supervisor.stdin, self._supervisor.stdout
        with self._asking:
            if stdin is None or stdout is None or stdin.closed:
                raise StackError("the server has been closed: make a new one")
            try:
                stdin.write(command + "\n")
                stdin.flush()
                answer = stdout.readline().strip()
            except BrokenPipeError:
                answer = ""
        if not answer:
            raise StackError("the server's supervisor has ended: make a new server")
        if answer.startswith("failed"):
            raise StackError(f"{command}: {answer}")
        return answer
