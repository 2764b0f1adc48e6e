"""The transactions that change the shop while rowtide streams; the same in every run.

Each day has a few transactions: orders are placed, paid and cancelled, stock and prices change, customers move. Halfway
through, the table of customers gets a column with a value for each customer, and some products get a new key.
"""

import random
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING

from rowtide_demo.shop import sample_text
from rowtide_demo.shop.rows import insert, new_customer, new_line, new_order, sku
from rowtide_demo.shop.schema import Sizes

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor

__all__ = ["ALTER", "Workload"]

ALTER = "ALTER TABLE shop.customers ADD COLUMN points INT UNSIGNED NOT NULL DEFAULT 100 AFTER level"
"""The statement that is executed halfway through."""

_NOON = "2025-02-%02d 12:%02d:%02d"


class Workload:
    """Executes the transactions over one connection.

    Attributes:
        done: number of rows changed, by table and kind: ``insert``, ``update``, ``delete``, ``key`` (a key update).
        transactions: number of transactions committed.
    """

    def __init__(self, connection: "Connection[Cursor]", sizes: Sizes) -> None:
        self.done: Counter[tuple[str, str]] = Counter()
        self.transactions = 0
        self._connection = connection
        self._sizes = sizes
        self._rng = random.Random("business")
        self._next_order = sizes.orders + 1
        self._next_customer = sizes.customers + 1
        self._altered = False

    @property
    def rows(self) -> int:
        """Number of rows changed."""
        return self.done.total()

    def run(self, days: int, stopped: Callable[[], bool]) -> None:
        """Execute the transactions of ``days`` days, or fewer if ``stopped`` returns true."""
        with self._connection.cursor() as cursor:
            for day in range(days):
                if day == days // 2:
                    cursor.execute(ALTER)
                    self._altered = True
                    self._transaction(cursor, self._points)
                    self._transaction(cursor, self._new_keys)
                for part in (self._orders, self._payments, self._cancellation, self._customers, self._stock):
                    self._transaction(cursor, part)
                if day % 20 == 0:
                    self._transaction(cursor, self._sale)
                if stopped():
                    return

    def _transaction(self, cursor: "Cursor", part: Callable[["Cursor"], None]) -> None:
        self._connection.begin()
        part(cursor)
        self._connection.commit()
        self.transactions += 1

    def _change(self, cursor: "Cursor", table: str, kind: str, statement: str, *values: object) -> None:
        # The server counts only rows whose values changed, which are those in the binlog.
        self.done[table, kind] += cursor.execute(statement, values)

    def _orders(self, cursor: "Cursor") -> None:
        """Place three orders with one to six lines each."""
        for _ in range(3):
            number = self._next_order
            self._next_order += 1
            lines = [new_line(self._rng, number, n, self._sizes) for n in range(1, self._rng.randint(1, 6) + 1)]
            self.done["orders", "insert"] += insert(cursor, "orders", [new_order(self._rng, number, self._sizes)])
            self.done["order_lines", "insert"] += insert(cursor, "order_lines", lines)

    def _payments(self, cursor: "Cursor") -> None:
        orders = [self._order() for _ in range(6)]
        self._change(
            cursor,
            "orders",
            "update",
            "UPDATE shop.orders SET state = 'paid', paid = %s, note = %s WHERE id IN %s",
            self._time(),
            self._rng.choice(sample_text.NOTES),
            orders,
        )

    def _cancellation(self, cursor: "Cursor") -> None:
        order = self._order()
        self._change(cursor, "order_lines", "delete", "DELETE FROM shop.order_lines WHERE order_id = %s", order)
        self._change(cursor, "orders", "delete", "DELETE FROM shop.orders WHERE id = %s", order)

    def _customers(self, cursor: "Cursor") -> None:
        who, rng = self._rng.randint(1, self._sizes.customers), self._rng
        self._change(
            cursor,
            "customers",
            "update",
            "UPDATE shop.customers SET city = %s, credit = credit - %s, seen = %s, "
            "settings = JSON_SET(COALESCE(settings, '{}'), '$.lang', %s, '$.visits', %s) WHERE id = %s",
            rng.choice(sample_text.CITIES),
            f"{rng.randint(0, 99)}.{rng.randint(0, 99):02d}",
            self._time(),
            rng.choice(sample_text.PRODUCTS),
            rng.randint(0, 10**6),
            who,
        )
        self.done["customers", "insert"] += insert(cursor, "customers", [new_customer(rng, self._next_customer)])
        self._next_customer += 1
        if self._altered:
            points = "UPDATE shop.customers SET points = points + %s WHERE id IN (%s, %s)"
            self._change(cursor, "customers", "update", points, rng.randint(1, 50), who, self._next_customer - 1)

    def _stock(self, cursor: "Cursor") -> None:
        first = self._rng.randint(1, self._sizes.products)
        some = [sku((first + i) % self._sizes.products + 1) for i in range(8)]
        change = "UPDATE shop.products SET stock = stock - %s, changed = %s WHERE sku IN %s"
        self._change(cursor, "products", "update", change, self._rng.randint(1, 3), self._time(), some)

    def _sale(self, cursor: "Cursor") -> None:
        """Change many rows with one statement."""
        first = self._order()
        sale = "UPDATE shop.order_lines SET price = price * 0.9, gift = NOT gift WHERE order_id BETWEEN %s AND %s"
        self._change(cursor, "order_lines", "update", sale, first, first + 100)

    def _points(self, cursor: "Cursor") -> None:
        """Give the new column a value in every row. Without this, old records would not show it."""
        self._change(cursor, "customers", "update", "UPDATE shop.customers SET points = 101 + MOD(id, 400)")

    def _new_keys(self, cursor: "Cursor") -> None:
        last = sku(max(3, self._sizes.products // 50))
        change = "UPDATE shop.products SET sku = CONCAT('Q', SUBSTRING(sku, 2)), stock = stock + 1 WHERE sku <= %s"
        self._change(cursor, "products", "key", change, last)

    def _order(self) -> int:
        return self._rng.randrange(1, self._next_order)

    def _time(self) -> str:
        return _NOON % (self._rng.randint(1, 28), self._rng.randrange(60), self._rng.randrange(60))
