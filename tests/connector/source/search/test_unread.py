"""How many rows of a transaction follow a position in it: as many as a replay from there makes records of."""

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.source.search.places import FolderFiles
from rowtide.connector.source.search.unread import unread_rows
from tests.support.recordings.golden import Case


def rows_of(batch: Batch) -> int:
    """The rows that a batch has records of; an update of a key has two."""
    values = [json.loads(value or b"{}") for _, value, headers in batch.messages if not _moved(headers)]
    return sum(value.get("payload", value).get("op") in ("c", "u", "d") for value in values)


def _moved(headers: object) -> bool:
    return "__debezium.newkey" in str(headers)


def positions(case: Case) -> Iterator[tuple[SourceOffset, int]]:
    """Every position of a record within a transaction, and the rows that follow in that transaction."""
    settings = pipeline_settings(from_properties(case.properties()), "run")
    batches = [output for output in replay(case.binlog, settings, case.start) if isinstance(output, Batch)]
    behind: dict[object, int] = {}
    for batch in reversed(batches):
        if batch.offset.done_within:
            transaction = batch.offset.within or (batch.offset.file, batch.offset.pos)
            yield batch.offset, behind.get(transaction, 0)
            behind[transaction] = behind.get(transaction, 0) + rows_of(batch)


@pytest.mark.parametrize(
    "name",
    [
        "gtid-off",
        "json-partial-update",
        "mariadb-compressed-binlog",
        "mariadb-transaction-boundaries",
        "mariadb-values-of-statements",
        "skipped-updates",
        "transaction-compression",
        "transactions",
    ],
)
def test_the_rows_behind_each_position(name: str) -> None:
    case = Case(name)
    capture = from_properties(case.properties()).capture
    files, most = FolderFiles(case.binlog), 0
    for offset, following in positions(case):
        unread = unread_rows(files, offset, capture.tables.captures, capture.skipped_operations)
        assert unread == following, offset
        for row in range(offset.row):  # within the event, too
            earlier = replace(offset, row=row)
            unread = unread_rows(files, earlier, capture.tables.captures, capture.skipped_operations)
            assert unread == following + offset.row - row
        most = max(most, following + offset.row)
        without_name = replace(offset, within=None)
        assert unread_rows(files, without_name, capture.tables.captures, capture.skipped_operations) == following
        assert unread_rows(files, offset, lambda *_: False) == 0
    assert most


def test_a_transaction_that_the_files_do_not_have() -> None:
    files = FolderFiles(Case("transactions").binlog)
    missing = SourceOffset(files.names[0], 4, event=1, within="3e11fa47-71ca-11e1-9e33-c80aa9429562:5")
    assert unread_rows(files, missing, lambda *_: True) is None
    assert unread_rows(files, SourceOffset("binlog.999999", 4, event=1), lambda *_: True) is None


def test_the_rows_of_an_xa_transaction_are_elsewhere() -> None:
    case = Case("xa-rolled-back")
    found = [offset for offset, _ in positions(case) if (offset.within or "").endswith(":10")]
    assert found
    for offset in found:
        assert unread_rows(FolderFiles(case.binlog), offset, lambda *_: True) is None
