"""The search for prepared XA transactions in the binlog."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.errors import SnapshotError
from rowtide.connector.records.offset import PreparedXa, SourceOffset
from rowtide.connector.source.search.binlog_search import BinlogSearch
from tests.support.configurations import PROPERTIES

FILE = "binlog.000001"
XA = PreparedXa("X'61',X'',1", FILE, 100)
START, END = SourceOffset(FILE, 500), SourceOffset(FILE, 900)


class Recorded(BinlogSearch):
    """A search in a binlog that has these events: a transaction is prepared, or with ``None`` it ends."""

    def __init__(self, *events: tuple[str, PreparedXa | None]) -> None:
        config = from_properties({**PROPERTIES, "connector.class": "io.debezium.connector.mysql.MySqlConnector"})
        super().__init__(config.database, mariadb=False)
        self._events = events

    def _xa_events(self, *_: object) -> Iterator[tuple[str, PreparedXa | None]]:
        yield from self._events


def test_the_last_use_of_an_identifier_counts() -> None:
    again = PreparedXa(XA.xid, FILE, 300)
    assert Recorded((XA.xid, XA), (XA.xid, None), (XA.xid, again)).prepared([XA.xid], [FILE], END) == [again]
    with pytest.raises(SnapshotError, match=r"X'61',X'',1: no binlog file has them"):
        Recorded((XA.xid, XA), (XA.xid, None)).prepared([XA.xid], [FILE], END)


def test_a_transaction_that_the_binlog_does_not_have_is_missing() -> None:
    with pytest.raises(SnapshotError, match=r"X'62',X'',1: no binlog file has them"):
        Recorded((XA.xid, XA)).prepared([XA.xid, "X'62',X'',1"], [FILE], END)


def test_the_first_event_shows_whether_a_transaction_was_prepared_before() -> None:
    other, unused = "X'62',X'',1", "X'63',X'',1"
    search = Recorded((XA.xid, None), (other, XA), (XA.xid, XA), (other, None), ("X'64',X'',1", None))
    assert search.first_events([XA.xid, other, unused], START, END) == {XA.xid: None, other: XA}
