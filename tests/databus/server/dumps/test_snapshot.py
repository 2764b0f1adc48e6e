"""The server that a dump is of."""

from __future__ import annotations

import pytest

from rowtide.connector.records.offset import SourceOffset
from rowtide.databus.errors import DumpDiscarded
from rowtide.databus.server.dumps.snapshot import DumpSnapshot


def test_a_dump_whose_connections_lead_to_different_servers_is_discarded() -> None:
    snapshot = object.__new__(DumpSnapshot)
    snapshot._offset = SourceOffset("binlog.000003", 500, server="uuid-1")
    snapshot._server = "uuid-1", "17"
    taken = snapshot.taken()
    assert (taken.file, taken.pos, taken.server) == ("binlog.000003", 500, "17")
    snapshot._server = "uuid-2", "18"
    with pytest.raises(DumpDiscarded, match=r"lead to different servers \(uuid-1, uuid-2\)"):
        snapshot.taken()
