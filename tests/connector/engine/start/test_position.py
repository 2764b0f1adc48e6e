"""The decision where a start resumes."""

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.start.position import decide_start
from rowtide.connector.errors import OffsetError
from rowtide.connector.records.offset import SourceOffset
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.support.recordings.golden import Case


@pytest.mark.parametrize("gtids", ["0-1-42", "nonsense"])
def test_gtids_of_another_kind_of_server_are_refused(gtids: str) -> None:
    config = from_properties(Case("keys").properties())
    with pytest.raises(OffsetError, match=r"the stored position b\.000001:4 has no GTIDs of mysql: .*delete it"):
        decide_start(config, SourceOffset("b.000001", 4, gtids=gtids), InMemorySchemaHistory())
