"""The counts of a transaction, and what its offsets keep of them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.pipeline.transaction_metadata import TransactionMonitor
from rowtide.connector.records.batch import Batch
from tests.support.recordings.golden import Case, written

EVENTS = st.lists(st.tuples(st.sampled_from(["d.a", "d.b", "d.c", "d.é"]), st.integers(1, 5)), max_size=30)


def fields(counts: dict[str, int]) -> dict[str, Any]:
    orders = {f"transaction_data_collection_order_{name}": count for name, count in counts.items()}
    return {"transaction_id": "t", **orders}


@given(EVENTS, st.sampled_from([{}, {"d.b": 7, "d.a": 1}]), st.lists(st.booleans(), min_size=30, max_size=30))
def test_an_offset_has_the_counts_of_its_place(
    events: list[tuple[str, int]], restored: dict[str, int], stored: list[bool]
) -> None:
    monitor = TransactionMonitor(fields(restored))
    assert not monitor.begin("t")
    counts, offsets = dict(restored), []
    for (name, number), with_offset in zip(events, stored, strict=False):
        total, order = sum(counts.values()), counts.get(name, 0)
        blocks = monitor.blocks(name, number)
        assert len(blocks) == number
        assert f'"total_order":{total + number},"data_collection_order":{order + number}' in blocks[-1]
        counts[name] = order + number
        if with_offset:
            offsets.append((monitor.offset_fields(), fields(counts)))
    monitor.end()
    for found, expected in offsets:  # after all changes: they must not show in earlier offsets
        assert found == expected
        assert list(found.items()) == list(expected.items())


def test_the_offsets_of_a_transaction_of_many_tables_share_their_counts() -> None:
    """Each offset has a field for every table: made at once, they would take time and memory by the square."""
    monitor, tables = TransactionMonitor(None), 2000
    assert monitor.begin("t")
    offsets: list[Any] = []
    for number in range(2 * tables):
        monitor.blocks(f"d.t{number % tables}", 1)
        offsets.append(monitor.offset_fields())
    copied = {id(offset._counts): len(offset._counts) for offset in offsets}
    assert sum(copied.values()) <= 4 * tables
    assert len(offsets[-1]) == 1 + tables


def test_a_statement_counts_as_a_record_of_its_table() -> None:
    monitor = TransactionMonitor(None)
    assert monitor.block("d.a") is None
    monitor.begin("t")
    monitor.blocks("d.b", 3)
    assert monitor.block("d.a") == {"id": "t", "total_order": 4, "data_collection_order": 1}
    state = monitor.state()
    monitor.blocks("d.a", 5)
    monitor.return_to(state)
    assert monitor.block("d.a") == {"id": "t", "total_order": 5, "data_collection_order": 2}


def test_what_identifies_a_change_of_mariadb() -> None:
    """Positions of events within a transaction are not sent; Debezium's recording has the same repetitions."""
    case = Case("mariadb-transaction-boundaries")
    settings = pipeline_settings(from_properties({**case.properties(), "provide.transaction.metadata": "true"}), "run")
    batches = [one for one in replay(case.binlog, settings, None, lambda: 0) if isinstance(one, Batch)]
    values = [json.loads(one.value)["payload"] for one in written(batches) if one.value and '"op":' in one.value]
    changes = [value for value in values if value["op"] in "cud"]
    places = [tuple(change["source"][name] for name in ("file", "pos", "row")) for change in changes]
    orders = [(change["source"]["gtid"], change["transaction"]["total_order"]) for change in changes]
    assert len(set(places)) < len(changes)
    assert len(set(orders)) == len(changes)
