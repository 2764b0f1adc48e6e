"""Metrics of this process, under the names that all Prometheus clients use."""

import resource
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from rowtide.connector.worker.memory_release import resident
from rowtide.connector.worker.web.metrics import Metric, one, rendered

_OPEN_FILES = Path("/proc/self/fd")


def render() -> str:
    """Return the metrics in Prometheus' text format. Values that the system does not provide are omitted."""
    return rendered("process_", [({}, _metrics())])


def _metrics() -> Iterator[Metric]:
    yield Metric("cpu_seconds_total", "counter", "CPU time of the process in seconds.", one(time.process_time()))
    yield Metric("resident_memory_bytes", "gauge", "Resident memory in bytes.", one(resident() or None))
    open_files = None
    with suppress(OSError):  # even if no further file can be opened
        open_files = len(list(_OPEN_FILES.iterdir())) - 1  # the folder itself
    yield Metric("open_fds", "gauge", "Open files.", one(open_files))
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = None if most == resource.RLIM_INFINITY else most
    yield Metric("max_fds", "gauge", "How many files may be open.", one(limit))
