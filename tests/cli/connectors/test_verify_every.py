"""The rounds of ``rowtide verify --every``."""

from __future__ import annotations

import errno
import json
import os
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from rowtide.cli import main
from rowtide.cli.connectors import verify_every
from rowtide.cli.connectors.verify_every import Proofs, VerifySchedule, only_user
from rowtide.connector.config.errors import Problem
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.connection import DatabaseUnreachableError
from rowtide.verify.comparison import RowDifference
from rowtide.verify.errors import Undecided
from rowtide.verify.run import Found
from rowtide.verify.tables import TableResult
from rowtide.verify.verification import Result


@pytest.fixture(autouse=True)
def _handlers() -> Iterator[None]:
    kept = [(number, signal.getsignal(number)) for number in (signal.SIGTERM, signal.SIGINT)]
    yield
    for number, handler in kept:
        signal.signal(number, handler)


def result(table: str, outcome: str = "equal") -> Result:
    made = Result(table, outcome, start=SourceOffset("binlog.000007", 99), source_rows=5, topic_rows=4)  # type: ignore[arg-type]
    if outcome == "different":
        made.differences = [RowDifference("lost", {"id": "i1"}, {"id": "i1"}, None)]
    return made


def rounds(schedule: VerifySchedule, *given: list[Found] | Exception) -> list[set[str]]:
    """Run rounds with these results; returns the tables that each was told to omit."""
    omitted: list[set[str]] = []
    left = iter(given)

    def once(done: Collection[str]) -> Iterator[Found]:
        omitted.append({*done})
        found = next(left, None)
        if found is None:
            raise SystemExit(0)
        if isinstance(found, Exception):
            raise found
        yield from found

    with pytest.raises(SystemExit):
        schedule.run(once, None)
    return omitted


def shown(_results: list[Found], error: str | None, _following: float) -> None:
    print("error:", error)


def test_a_round_that_fails_is_reported_and_the_proofs_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proofs = Proofs("shop", tmp_path / "proofs")
    schedule = VerifySchedule(proofs, 0, shown)
    away = DatabaseUnreachableError(Problem("database.hostname", "cannot connect"), retriable=True)
    rounds(schedule, [(result("d.t"), ())], away)
    assert "error: None\nerror: database.hostname: cannot connect\n" in capsys.readouterr().out
    assert proofs.tables["d.t"]["topic"]["proved"] is not None
    status, text = schedule.health()
    assert (status, json.loads(text)["status"]) == (503, "DOWN")
    assert 'rowtide_verify_failed{connector="shop"} 1' in schedule.metrics()
    assert Proofs("shop", tmp_path / "proofs").tables == proofs.tables


def test_differences_and_the_age_of_the_last_proof_are_metrics(tmp_path: Path) -> None:
    proofs = Proofs("shop", None)
    schedule = VerifySchedule(proofs, 0, shown)
    table = TableResult("shop.d.t", outcome="equal", topic_rows=4, table_rows=4)
    rounds(schedule, [(result("d.t"), [table]), (result("d.u"), ())], [(result("d.t", "different"), [table])])
    text = schedule.metrics()
    label = 'connector="shop",table="d.t",of="topic"'
    assert f"rowtide_verified_differences{{{label}}} 1\n" in text
    assert f"rowtide_verified_timestamp_seconds{{{label}}} " in text, "an earlier proof"
    assert 'rowtide_verified_position{connector="shop",table="d.t"} 99\n' in text
    assert 'rowtide_verified_file_number{connector="shop",table="d.t"} 7\n' in text
    assert f'rowtide_verified_rows{{{label},side="topic"}} 4\n' in text
    assert 'rowtide_verified_differences{connector="shop",table="d.t",of="table"} 0\n' in text
    assert 'table="d.u"' not in text, "a table that is no longer captured"
    status, health = schedule.health()
    assert (status, json.loads(health)["tables"]) == (503, {"d.t (topic)": "different", "d.t (table)": "equal"})


def test_an_interrupted_round_continues_after_the_tables_that_it_has_verified(tmp_path: Path) -> None:
    path = tmp_path / "proofs"
    schedule = VerifySchedule(Proofs("shop", path), 3600, shown)

    def stopped(_done: Collection[str]) -> Iterator[Found]:
        yield result("d.a"), ()
        raise SystemExit(0)

    with pytest.raises(SystemExit):
        schedule.run(stopped, None)
    again = Proofs("shop", path)
    assert Proofs("shop", path).begin(0) == set(), "a round that is too old"
    assert again.begin(3600) == {"d.a"}
    again.end(None, ["d.a"])
    assert Proofs("shop", path).ended is not None
    assert Proofs("shop", path).begin(3600) == set()


@pytest.mark.parametrize(
    "problem",
    [Undecided("skipped.operations has d"), DatabaseUnreachableError(Problem("database.user", "access denied"))],
)
def test_a_wrong_configuration_ends_it(problem: Exception) -> None:
    def once(_done: Collection[str]) -> Iterator[Found]:
        raise problem
        yield

    with pytest.raises(click.ClickException, match="no round can succeed"):
        VerifySchedule(Proofs("shop", None), 0, shown).run(once, None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "cannot be read"),
        ('{"connector": "shop"}', "cannot be read"),
        (
            json.dumps({"connector": "crm", "version": 1, "begun": None, "ended": None, "error": None, "tables": {}}),
            "crm",
        ),
    ],
)
def test_a_file_that_cannot_be_used_is_named(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "proofs").write_text(text)
    with pytest.raises(click.ClickException, match=f"--proofs .*{reason}.*delete it"):
        Proofs("shop", tmp_path / "proofs")
    with pytest.raises(click.ClickException, match="cannot be written"):
        Proofs("shop", tmp_path / "no" / "proofs")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--every", "6 hours"], "is not a time: write 30m, 6h or 1d"),
        (["--every", "0s"], "is not a time"),
        (["--every", "9999999d"], "9999999d is more than a year"),
        (["--proofs", "x"], "need --every"),
        (["--dry-run"], "need --repair"),
    ],
)
def test_wrong_options_are_refused(options: list[str], reason: str, tmp_path: Path) -> None:
    file = tmp_path / "shop.properties"
    file.write_text("name=shop\n")
    found: Any = CliRunner().invoke(main, ["verify", "--config", str(file), "--topics", *options])
    assert found.exit_code == 2
    assert reason in found.output


def stored(**changes: Any) -> dict[str, Any]:
    """A file of proofs with one table, of whose topic some fields are others."""
    proofs = Proofs("c", None)
    proofs.add((result("shop.a"), ()))
    topic = proofs.tables["shop.a"]["topic"] | changes
    return {"connector": "c", "version": 1, "begun": 1, "ended": None, "error": None, "tables": {"a": {"topic": topic}}}


@pytest.mark.parametrize(
    "damaged",
    [
        stored() | {"tables": []},
        stored() | {"tables": {"shop.a": {}}},
        stored() | {"begun": 1e300},
        stored() | {"ended": "x"},
        stored(checked="x"),
        stored(checked=None),
        stored(known=None),
        stored(proved=-1e300),
        stored(outcome="x"),
        stored(differences="1"),
        stored(rows={"source": None}),
        stored(rows=5),
        stored(position=5),
        stored(position={"file": 5, "pos": 4}),
        stored(position={"file": "a.1", "pos": "x"}),
        stored(repaired=None),
    ],
)
def test_damaged_proofs_are_refused(damaged: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "proofs"
    path.write_text(json.dumps(stored()))
    assert [*Proofs("c", path).tables] == ["a"]
    path.write_text(json.dumps(damaged))
    with pytest.raises(click.ClickException, match="cannot be read"):
        Proofs("c", path)


def test_a_second_command_cannot_use_the_file_of_proofs(tmp_path: Path) -> None:
    """Each wrote the file without the proofs of the other."""
    path = tmp_path / "proofs"
    with only_user(path), pytest.raises(click.ClickException, match="another command uses it"), only_user(path):
        pass
    with only_user(path), only_user(None):
        pass
    with (
        pytest.raises(click.ClickException, match=r"no/proofs.lock cannot be written"),
        only_user(tmp_path / "no/proofs"),
    ):
        pass


def test_a_full_disk_fails_the_round_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ended the command, and left a part of a file."""
    proofs = Proofs("shop", tmp_path / "proofs")
    schedule, full = VerifySchedule(proofs, 0, shown), iter([True] * 3 + [False] * 9)

    def fsync(_number: int) -> None:
        if next(full):
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fsync)
    rounds(schedule, [(result("d.t"), ())])
    assert capsys.readouterr().out.splitlines() == [
        f"error: --proofs {tmp_path}/proofs cannot be written: No space left on device",
        f"error: --proofs {tmp_path}/proofs cannot be written: No space left on device",
        "error: None",
    ]
    assert [one.name for one in tmp_path.iterdir()] == ["proofs"]
    assert [*Proofs("shop", tmp_path / "proofs").tables] == ["d.t"]


def test_the_next_round_is_not_later_because_the_clock_goes_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was awaited until the clock said again what it had said."""
    proofs = Proofs("shop", None)
    proofs.begin(3600)
    proofs.end(None)
    monkeypatch.setattr(verify_every.time, "time", lambda: 1000.0)
    _status, health = VerifySchedule(proofs, 3600, shown).health()
    assert json.loads(health)["next_round"] == "1970-01-01 01:16:40 UTC"


def test_an_empty_name_of_a_file_is_refused() -> None:
    with pytest.raises(click.ClickException, match="--proofs names no file"), only_user(Path()):
        pass
