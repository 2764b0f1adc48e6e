"""Runs rowtide with threads whose names the operating system knows, as Python does by itself from 3.14 on.

    python -m tests.bench.named_threads run FILE

The benchmark reads them, and the processor time of each thread, from ``/proc``.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any

__all__ = ["name_threads"]


def name_threads() -> None:
    """Let each thread of Python that starts from now on show the last part of its name."""
    threading.setprofile(_show_name)


def _show_name(_frame: Any, _event: str, _argument: Any) -> None:
    """Called for the first function of a thread, and for no other."""
    sys.setprofile(None)
    Path("/proc/thread-self/comm").write_text(threading.current_thread().name.rpartition("/")[2])


if __name__ == "__main__":
    from rowtide.cli import main

    name_threads()
    main(prog_name="rowtide")
