"""The benchmark of fleets, with few connectors."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tests.bench import starts
from tests.bench.fleet import main


@pytest.mark.servers
@pytest.mark.nightly
def test_the_connectors_of_a_killed_worker_are_measured() -> None:
    done = CliRunner().invoke(main, ["--connectors", "3", "--workers", "2", "--kills", "1"])
    assert done.exit_code == 0, done.output
    (line,) = (line for line in done.output.splitlines() if line.startswith("| rowtide"))
    kills, hand_overs, *_, rows, lost, twice = line.split(" | ")[1:]
    assert (kills, lost, twice.rstrip(" |")) == ("1", "0", "0")
    assert 1 <= int(hand_overs) <= 3
    assert int(rows) > 0


@pytest.mark.servers
@pytest.mark.nightly
def test_starts_are_measured() -> None:
    done = CliRunner().invoke(starts.main, ["--connectors", "2", "--offsets", "10", "--tables", "2"])
    assert done.exit_code == 0, done.output
    assert [line.split(" | ")[0] for line in done.output.splitlines()[2:4]] == ["| with all checks", "| hand-over"]
