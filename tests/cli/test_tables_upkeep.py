"""``rowtide tables --optimize``, ``--vacuum`` and ``--expire``: their options and their report."""

import json
from datetime import timedelta

import pytest

from rowtide.cli.tables_upkeep import is_only_upkeep, keep, upkeep_of
from rowtide.spark_consumers.errors import SettingsError

pytest.importorskip("pyspark")

NONE = {"optimize": False, "vacuum": None, "expire": None, "upkeep_every": None, "table_format": "delta"}


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"optimize": True}, (True, None, None)),
        ({"vacuum": "7d"}, (False, timedelta(days=7), None)),
        ({"vacuum": "168 hours", "expire": "4 weeks"}, (False, timedelta(days=7), timedelta(days=28))),
        ({"expire": "90m", "table_format": "iceberg"}, (False, None, timedelta(minutes=90))),
    ],
)
def test_ages_have_units(options: dict[str, object], expected: tuple[object, ...]) -> None:
    upkeep, _ = upkeep_of({**NONE, **options})
    assert (upkeep.optimize, upkeep.vacuum, upkeep.expire) == expected


@pytest.mark.parametrize("age", ["36501d", "9999999999 weeks"])
def test_an_age_that_no_date_has_is_refused(age: str) -> None:
    with pytest.raises(SettingsError, match=f"--expire {age}: the duration is longer than a hundred years"):
        upkeep_of({**NONE, "expire": age})
    assert upkeep_of({**NONE, "expire": "36500d"})[0].expire == timedelta(days=36_500)


def test_an_empty_age_is_not_ignored() -> None:
    options = {**NONE, "vacuum": "", "follow": False, "available_now": False}
    assert is_only_upkeep(options, ())
    with pytest.raises(SettingsError, match="--vacuum : expected a duration"):
        upkeep_of(options)


@pytest.mark.parametrize(
    ("text", "expected"), [(None, (100, None)), ("5 batches", (5, None)), ("1 batch", (1, None)), ("2h", (None, 7200))]
)
def test_upkeep_is_scheduled_by_batches_or_time(text: str | None, expected: tuple[object, ...]) -> None:
    _, schedule = upkeep_of({**NONE, "optimize": True, "upkeep_every": text})
    assert (schedule.batches, schedule.seconds) == expected


def test_the_report_says_what_was_done(capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    from rowtide.spark_consumers.formats.upkeep import Merged, Removed
    from rowtide.spark_consumers.kafka.naming import TableName
    from rowtide.spark_consumers.upkeep import UpkeepOutcome

    name = TableName("p.d.t", "d", "t")
    done = UpkeepOutcome(name, Merged(120, 3, 4096), Removed(7, 900, 2), Removed(5, 12345))
    quiet = UpkeepOutcome(name, Merged(0, 0, 0), Removed(), given_up="table d.t was changed")
    failed = UpkeepOutcome(name, error="table d.t: [disk] is full")
    assert not keep(Console(), [done, quiet], as_json=False)
    assert keep(Console(), [failed], as_json=False)
    assert keep(Console(), [failed], as_json=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(
        "upkeep  d.t: 120 files became 3 (4,096 bytes), 2 versions expired (7 files, 900 bytes), "
    )
    assert lines[0].endswith("5 unneeded files removed (12,345 bytes) in 0.0 s")
    assert lines[1] == "upkeep  d.t: no files to merge, no versions expired, given up: table d.t was changed in 0.0 s"
    assert lines[2] == "error  upkeep: table d.t: [disk] is full"
    assert json.loads(lines[3]) == {
        **dict.fromkeys(("optimize", "expire", "vacuum", "given_up")),
        "event": "upkeep",
        "table": "d.t",
        "seconds": 0.0,
        "error": "table d.t: [disk] is full",
    }
