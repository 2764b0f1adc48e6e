"""The order of the statements that create structures."""

from __future__ import annotations

from rowtide.connector.snapshot.structure.plan import structure_statements
from rowtide.connector.source.server_queries import DatabaseCharset
from rowtide.schema_history.model import TableId

SERVER = DatabaseCharset("utf8mb4", "utf8mb4_bin")


def created(*, hash_order: bool) -> list[str]:
    names = ["T4", "t 5", "t1", "t2", "t3", "zz_end"]
    tables = {TableId("par00000213", name): f"CREATE {name}" for name in names}
    return [s.ddl[7:] for s in structure_statements(tables, {}, SERVER, hash_order=hash_order) if s.creates]


def test_tables_are_in_the_order_of_their_names() -> None:
    assert created(hash_order=False) == ["T4", "t 5", "t1", "t2", "t3", "zz_end"]


def test_without_locks_tables_are_in_the_order_of_a_hash_map() -> None:
    assert created(hash_order=True) == ["t2", "zz_end", "t1", "T4", "t3", "t 5"]
