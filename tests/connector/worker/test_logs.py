"""The log of a worker: formats, timestamps, levels."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rowtide.connector.worker import logs
from rowtide.connector.worker.failures import StopTimeoutError, report


@pytest.fixture(autouse=True)
def kept() -> Iterator[None]:
    """The root logger as it was, after each test."""
    root = logging.getLogger()
    before, level, levels = root.handlers[:], root.level, {name: logging.getLogger(name).level for name in logs._CHATTY}
    yield
    for handler in root.handlers:
        if handler not in before:
            handler.close()
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(capture=False)
    for name, number in levels.items():
        logging.getLogger(name).setLevel(number)


def record(created: float) -> logging.LogRecord:
    made = logging.LogRecord("rowtide.x", logging.INFO, "x.py", 1, "read %s", ("Ö",), None)
    made.created = created
    return made


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("UTC", "2026-11-22T08:00:00.250+00:00"),
        ("Europe/Berlin", "2026-11-22T09:00:00.250+01:00"),
        ("America/St_Johns", "2026-11-22T04:30:00.250-03:30"),
    ],
)
def test_timestamps_have_a_time_zone(zone: str, start: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    try:
        assert logs.TextFormatter().format(record(1795334400.25)) == f"{start} INFO    rowtide.x: read Ö"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_json_lines(tmp_path: Path) -> None:
    file = tmp_path / "log"
    logs.set_up("info", str(file), as_json=True)
    log = logging.getLogger("rowtide.test")
    log.info('two\nlines, "quoted" %s', "Ö")
    try:
        int("wrong")
    except ValueError:
        log.exception("failed")
    report(StopTimeoutError(5), "shop", as_log=True)
    first, second, third = map(json.loads, file.read_text(encoding="utf-8").splitlines())
    assert first["message"] == 'two\nlines, "quoted" Ö'
    assert (first["level"], first["logger"], first["thread"]) == ("INFO", "rowtide.test", "MainThread")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}\+00:00", first["timestamp"])
    assert "exception" not in first
    assert second["exception"].endswith("ValueError: invalid literal for int() with base 10: 'wrong'")
    assert third["level"] == "CRITICAL"
    assert third["message"].startswith("connector shop has failed: it did not stop within")


def test_libraries_log_their_warnings_only(capsys: pytest.CaptureFixture[str]) -> None:
    logs.set_up("info")
    assert isinstance(logging.getLogger().handlers[0], logging.StreamHandler)
    assert logging.getLogger().handlers[0].stream is sys.stderr
    logging.getLogger("mode.rowtide").info("starting")
    logging.getLogger("mode.rowtide").warning("late")
    logging.getLogger("httpx2").info("HTTP Request: POST")
    logging.getLogger("rowtide.x").info("reading")
    logging.getLogger("rowtide.x").debug("details")
    assert [line.split(" ", 1)[1] for line in capsys.readouterr().err.splitlines()] == [
        "WARNING mode.rowtide: late",
        "INFO    rowtide.x: reading",
    ]


def test_a_line_that_repeats_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of something that is tried again and again would fill the disk."""
    file = tmp_path / "log"
    logs.set_up("info", str(file))
    log = logging.getLogger("rowtide.test")

    def lines() -> list[str]:
        text = file.read_text(encoding="utf-8")
        file.write_text("", encoding="utf-8")
        return re.findall(r"rowtide\.test: (.*)", text)

    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now)
    for number in range(100):
        log.error("no file can be opened: %s", "limit")
        log.warning("table t%d is read again", number)
        log.info("progress")
    written = lines()
    same = [line for line in written if line.startswith("no file")]
    assert same[:-1] == ["no file can be opened: limit"] * 4
    assert same[-1].startswith("no file can be opened: limit (this line is omitted")
    assert len([line for line in written if line.startswith("table")]) == 100, "each says something else"
    assert written.count("progress") == 100
    now += 61
    log.error("no file can be opened: %s", "limit")
    assert lines() == ["no file can be opened: limit"]


def test_lines_of_a_file_on_a_full_disk_go_to_standard_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    logs.set_up("info", "/dev/full")
    for text in ("one", "two"):
        logging.getLogger("rowtide.x").info(text)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "/dev/full cannot be written: No space left on device. Its lines come here"
    assert [line.rsplit(" ", 1)[1] for line in lines[1:]] == ["one", "two"]
    [handler] = logging.getLogger().handlers
    with contextlib.suppress(OSError):
        handler.close()
