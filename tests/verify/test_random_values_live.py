"""No healthy table is accused: random values of every type, delivered by the connector from a snapshot and the binlog.

``ROWTIDE_CAMPAIGN=25 docker/test --nightly tests/verify/test_random_values_live.py`` compares 10 million values:
100 000 for each round of a campaign, server and form of values.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.mysql.random_values import LOOSE, RandomRows
from tests.support.processes.worker_process import Worker, WorkerConfig
from tests.verify.test_verification_live import MORE, report

if TYPE_CHECKING:
    from rowtide_stack import Database, Kafka

pytestmark = [pytest.mark.servers, pytest.mark.nightly]


def shown(differences: list[dict[str, Any]]) -> list[Any]:
    """The first differences, with the columns that differ only."""
    return [
        (one["kind"], one["key"], *((name, (one[side] or {}).get(name)) for name in one["columns"] for side in SIDES))
        for one in differences[:3]
    ] + [sorted({name for one in differences for name in one["columns"]})]


SIDES = ("source", "topic")
VALUES = 100_000 * int(os.environ.get("ROWTIDE_CAMPAIGN", "1"))


@pytest.mark.parametrize("values", ["exact", "debezium"])
@pytest.mark.parametrize("server", ["mysql", "mariadb"])
def test_random_values_are_equal(
    server: str,
    values: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    kafka: Kafka,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("ROWTIDE_CAMPAIGN", raising=False)  # the command would take it for a property
    database: Database = request.getfixturevalue(f"{server}_db")
    given = MORE | {f"{side}.converter.schemas.enable": "true" for side in ("key", "value")}
    given |= {"database.include.list": database.name, "rowtide.values": values}
    given |= {"bigint.unsigned.handling.mode": "precise"}
    config = WorkerConfig(tmp_path, database.server, kafka.bootstrap, given)
    table = RandomRows(server, "mixed", seed=VALUES)
    rows = VALUES // table.width // 2 + 1
    database.execute(LOOSE, table.table, *table.inserts(rows))
    with Worker(config).streaming() as worker:
        database.execute(LOOSE, *table.inserts(rows), *table.changes(rows // 50))
        status, document = report(config, "--timeout", "600")
        (found,) = document["tables"]
        print(f"{server}, {values}: {found['source_rows'] * table.width:,} values, {found['read_again']} read again")
        print(found["reason"], *shown(found["differences"]), sep="\n")
        assert status == 0
        assert found["source_rows"] > rows * 3 // 2
        worker.stop()
