"""What the ends of versions do to their rows."""

import pytest

from rowtide.spark_consumers.columns.conversion import Column
from rowtide.spark_consumers.messages.versions import ValueVersion
from rowtide.spark_consumers.rows.changes import BatchSchemas
from rowtide.spark_consumers.rows.evolution import evolve
from rowtide.spark_consumers.rows.history import ends_of
from rowtide.spark_consumers.settings import VERSION_COLUMNS

ID, NOTE = Column("id", "int", "INT"), Column("note", "string", "STRING", default="'none'")


@pytest.mark.parametrize("found", [[ID], [ID, NOTE]], ids=["first", "after a crash"])
def test_a_version_that_ended_before_a_column_was_added_has_no_default_also_after_a_crash(found: list[Column]) -> None:
    """A crash after the columns were changed leaves the new one in the table before the versions are."""
    versions = [ValueVersion(1, (ID,)), ValueVersion(2, (ID, NOTE))]
    before = (*((one.name, one.type) for one in found), *VERSION_COLUMNS)
    evolution = evolve("t", before, [], versions, ["id"], VERSION_COLUMNS)
    assert evolution.fills == {"note": "'none'"}
    ends = ends_of(BatchSchemas(evolution, {}, versions, ["id"]), (), ())
    assert ends.of_keys["note"] == "IF(s._rowtide_known < 1, NULL, t.`note`)"
    assert ends.of_keys.keys() == {"note", *(name for name, _ in VERSION_COLUMNS if "_to" in name or "cur" in name)}


def test_a_column_that_the_first_records_have_keeps_its_values() -> None:
    evolution = evolve("t", None, [], [ValueVersion(1, (ID, NOTE))], None, VERSION_COLUMNS)
    assert "note" not in ends_of(BatchSchemas(evolution, {}, [ValueVersion(1, (ID, NOTE))]), (), ()).of_keys
