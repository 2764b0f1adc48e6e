"""No healthy table is accused: random values of every type, delivered by the connector from a snapshot and the binlog.

``python -m tests.verify values --count 10000000`` compares more.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.verify.random_values import compared

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.nightly]

VALUES = 100_000 * int(os.environ.get("ROWTIDE_CAMPAIGN", "1"))


@pytest.mark.parametrize("form", ["exact", "debezium"])
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_random_values_are_equal(
    server: str,
    form: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kafka: Kafka,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROWTIDE_CAMPAIGN", raising=False)  # the command would take it for a property
    database: Database = request.getfixturevalue(f"{server}_db")
    number, problems = compared(database, kafka.bootstrap, tmp_path, VALUES, VALUES, form)
    assert number > VALUES * 3 // 4
    assert problems == []
