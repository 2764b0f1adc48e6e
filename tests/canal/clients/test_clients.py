"""canal-python reads all changes while its server is killed; README.md has the long form with the other clients."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.canal.clients.campaign import Round, run_round
from tests.canal.clients.clients import CLIENTS

if TYPE_CHECKING:
    from rowtide_stack import Database

pytestmark = pytest.mark.servers


def test_canal_python_reads_every_change_over_kills(mysql_db: Database, tmp_path: Path) -> None:
    CLIENTS["python"]()
    outcome = run_round(Round(clients=("python",), changes=3000, kills=2), mysql_db, None, tmp_path, print)
    assert outcome.problems == []
    found = outcome.received["python"]
    assert found.changes == outcome.changes >= 3000
    assert found.connections >= 2
