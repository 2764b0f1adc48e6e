"""What the messages of an incremental snapshot advise."""

import pytest

from rowtide.connector.snapshot.incremental.requests import changed_too_often

SERVER = "unless the server has rpl_semi_sync_master_wait_point=AFTER_SYNC"


@pytest.mark.parametrize(
    ("holds", "mariadb", "advised", "limited"),
    [(True, False, False, False), (True, True, False, False), (False, False, True, False), (False, True, True, True)],
)
def test_an_earlier_acknowledgement_is_advised_where_it_helps(
    *, holds: bool, mariadb: bool, advised: bool, limited: bool
) -> None:
    """It lets the stream wait for a chunk. Where the stream waits already, there is nothing to gain."""
    reason = changed_too_often(holds=holds, mariadb=mariadb)
    assert "fewer changes of these rows help" in reason
    assert ("rowtide.semi.sync.acknowledge=received" in reason) is advised
    assert (SERVER in reason) is limited
