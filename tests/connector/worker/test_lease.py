"""A process that has not run for too long notices it."""

from __future__ import annotations

import time

import pytest

from rowtide.connector.worker.lease import Lease


def test_a_jump_of_the_clock_is_a_lapse() -> None:
    now, lapses = [100.0], list[float]()
    lease = Lease(5.0, lapses.append, lambda: now[0])
    for step in (0.2, 4.9, 5.0, 5.1, 0.2, 60.0):
        now[0] += step
        lease.tick()
    assert [round(lapse, 1) for lapse in lapses] == [5.1, 60.0]


def test_what_the_lapse_takes_is_no_other_one() -> None:
    now, lapses = [100.0], list[float]()

    def lapse(seconds: float) -> None:
        lapses.append(seconds)
        now[0] += 6.0

    lease = Lease(5.0, lapse, lambda: now[0])
    for step in (7.0, 0.2):
        now[0] += step
        lease.tick()
    assert lapses == [7.0]


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="only Linux has a clock that stops during a suspend")
def test_a_suspended_machine_did_not_run(monkeypatch) -> None:
    boot, lapses = [100.0], list[float]()
    clocks = {time.CLOCK_BOOTTIME: lambda: boot[0], time.CLOCK_MONOTONIC: lambda: 100.0}
    monkeypatch.setattr(time, "clock_gettime", lambda clock: clocks[clock]())
    lease = Lease(5.0, lapses.append)
    boot[0] += 60
    lease.tick()
    assert lapses == [60.0]
