"""The load: two tables, filled by a few statements with many rows each.

``sbtest`` is sysbench's table with four columns; ``orders`` has thirteen columns of most types. The load inserts the
same number of rows into both, updates half of the rows of ``orders`` and deletes a quarter of those of ``sbtest``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

__all__ = ["AnyLoad", "Load"]

_SBTEST = """CREATE TABLE sbtest(
    id int unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, k int unsigned NOT NULL DEFAULT 0,
    c char(120) NOT NULL DEFAULT '', pad char(60) NOT NULL DEFAULT '', KEY k_1(k))"""
_ORDERS = """CREATE TABLE orders(
    id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, customer_id bigint NOT NULL, sku varchar(40) NOT NULL,
    qty int NOT NULL, price decimal(12,2) NOT NULL, tax decimal(12,4),
    status enum('new','paid','shipped','cancelled') NOT NULL DEFAULT 'new', note varchar(255),
    created_at datetime(3) NOT NULL,
    updated_at timestamp(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6) ON UPDATE CURRENT_TIMESTAMP(6),
    ship_date date, weight double, gift bool NOT NULL DEFAULT 0, KEY(customer_id))"""
_INSERT_SBTEST = """INSERT INTO sbtest(k, c, pad)
    SELECT a.n * b.n, CONCAT(SHA2(a.n * 1000 + b.n, 256), '-', LEFT(SHA2(b.n, 256), 50)), LEFT(SHA2(b.n, 256), 60)
    FROM seq a JOIN seq b ON a.n <= {many} AND b.n <= {few}"""
_INSERT_ORDERS = """INSERT INTO orders(
        customer_id, sku, qty, price, tax, status, note, created_at, ship_date, weight, gift)
    SELECT a.n * b.n, CONCAT('SKU-', LEFT(SHA2(b.n, 256), 32)), a.n % 10, a.n * 1.25, b.n * 0.1234, 1 + (a.n % 4),
        IF(b.n % 3 = 0, NULL, REPEAT('note ', b.n % 20)), NOW(3), '2024-01-01' + INTERVAL a.n DAY, a.n / 7, b.n % 2
    FROM seq a JOIN seq b ON a.n <= {many} AND b.n <= {few}"""


class AnyLoad(Protocol):
    """What a run needs of its load."""

    @property
    def messages(self) -> Mapping[str, int]:
        """Number of streamed messages by table."""
        ...

    @property
    def snapshot_rows(self) -> Mapping[str, int]:
        """Number of rows by table after the load."""
        ...

    def setup(self) -> Sequence[str]:
        """The statements that create the tables."""
        ...

    def again(self) -> Sequence[str]:
        """The statements after which :meth:`changes` makes as many rows once more."""
        ...

    def changes(self) -> Sequence[str]:
        """The statements whose rows are streamed."""
        ...


@dataclass(frozen=True, slots=True)
class Load:
    """The load for a number of rows, which is ``few * many`` in each table.

    Attributes:
        few: thousands of rows in each table.
        many: 1000, or less in a test.
    """

    few: int = 200
    many: int = 1000

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables whose messages are counted."""
        return ("sbtest", "orders")

    @property
    def rows(self) -> int:
        """Number of rows inserted into each table."""
        return self.few * self.many

    @property
    def messages(self) -> dict[str, int]:
        """Number of streamed messages by table. A delete is followed by a tombstone."""
        return {"sbtest": self.rows + 2 * (self.rows // 4), "orders": self.rows + self.rows // 2}

    @property
    def snapshot_rows(self) -> dict[str, int]:
        """Number of rows by table after the load."""
        return {"sbtest": self.rows - self.rows // 4, "orders": self.rows}

    def setup(self) -> list[str]:
        """The statements that create the tables."""
        numbers = (
            f"WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {max(self.few, self.many)})"
        )
        return [
            "SET cte_max_recursion_depth = 100000",
            _SBTEST,
            _ORDERS,
            "CREATE TABLE seq(n int PRIMARY KEY)",
            f"INSERT INTO seq {numbers} SELECT n FROM s",
        ]

    def again(self) -> list[str]:
        """The statements after which :meth:`changes` makes the same rows once more."""
        return [f"TRUNCATE TABLE {table}" for table in self.tables]

    def changes(self) -> list[str]:
        """The statements whose rows are streamed."""
        return [
            _INSERT_SBTEST.format(few=self.few, many=self.many),
            _INSERT_ORDERS.format(few=self.few, many=self.many),
            f"UPDATE orders SET qty = qty + 1 ORDER BY id LIMIT {self.rows // 2}",
            f"DELETE FROM sbtest ORDER BY id LIMIT {self.rows // 4}",
        ]
