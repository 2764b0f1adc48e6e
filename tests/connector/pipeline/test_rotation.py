"""The position at a change of the binlog file."""

from __future__ import annotations

from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.offset import SourceOffset


def test_a_new_file_begins_with_no_row() -> None:
    progress = Progress(SourceOffset("binlog.000001", 4))
    progress.row = 3
    progress.rotated("binlog.000002", 4)
    assert (progress.file, progress.pos, progress.row) == ("binlog.000002", 4, 0)
