"""The metrics of the process."""

import errno
import re
import resource
from pathlib import Path

import pytest

from rowtide.connector.worker.web import process_metrics


def values() -> dict[str, float]:
    found = re.findall(r"^process_(\w+)\{\} (\S+)$", process_metrics.render(), re.MULTILINE)
    return {name: float(value) for name, value in found}


def test_they_are_those_of_this_process() -> None:
    before = values()
    assert before["resident_memory_bytes"] > 10 << 20
    assert before["max_fds"] == resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    with Path("/dev/null").open() as _, Path("/dev/null").open() as _more:
        assert values()["open_fds"] == before["open_fds"] + 2
    while values()["cpu_seconds_total"] == before["cpu_seconds_total"]:
        sum(range(100_000))
    assert values()["cpu_seconds_total"] > before["cpu_seconds_total"]


def test_what_cannot_be_read_is_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Path, "iterdir", fail)
    monkeypatch.setattr(Path, "read_text", fail)
    assert values().keys() == {"cpu_seconds_total", "max_fds"}
