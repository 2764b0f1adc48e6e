"""Loads whose values never repeat, so that no figure depends on texts that are remembered.

``Unique`` has random strings, decimals, dates and JSON documents; ``Wide`` 60 columns; ``Large`` rows of 20 KB;
``Many`` a thousand tables with few rows each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Large", "Many", "Unique", "Wide"]

_RANDOM_TEXT = "SHA2(RAND(), 256)"
_UNIQUE = """CREATE TABLE {table}(
    id bigint unsigned NOT NULL AUTO_INCREMENT PRIMARY KEY, uuid char(36) NOT NULL, name varchar(80) NOT NULL,
    price decimal(18,4) NOT NULL, ratio double NOT NULL, born date NOT NULL, seen datetime(6) NOT NULL,
    stamp timestamp(3) NOT NULL, spent time(3) NOT NULL, data varbinary(40) NOT NULL, document json NOT NULL)"""
_INSERT_UNIQUE = """INSERT INTO {table}(uuid, name, price, ratio, born, seen, stamp, spent, data, document)
    SELECT UUID(), SHA2(RAND(), 256), RAND() * 1e12, RAND() * 1e5, '1970-01-01' + INTERVAL RAND() * 20000 DAY,
        '1970-01-01' + INTERVAL RAND() * 1e15 MICROSECOND, FROM_UNIXTIME(1 + RAND() * 2e9),
        SEC_TO_TIME(RAND() * 80000), RANDOM_BYTES(32),
        JSON_OBJECT('name', SHA2(RAND(), 256), 'number', RAND() * 1e6, 'list', JSON_ARRAY(RAND(), a.n, b.n))
    FROM seq a JOIN seq b ON a.n <= {many} AND b.n <= {few}"""


@dataclass(frozen=True, slots=True)
class _Load:
    """A load of ``few * many`` rows.

    Attributes:
        few: thousands of rows.
        many: 1000, or less in a test.
    """

    few: int = 100
    many: int = 1000

    @property
    def rows(self) -> int:
        """Number of rows that are inserted."""
        return self.few * self.many

    @property
    def names(self) -> Sequence[str]:
        """The tables; each gets as many rows as the others."""
        raise NotImplementedError

    @property
    def messages(self) -> dict[str, int]:
        """Number of streamed messages by table."""
        return dict.fromkeys(self.names, self.rows // len(self.names))

    @property
    def snapshot_rows(self) -> dict[str, int]:
        """Number of rows by table after the load."""
        return self.messages

    def again(self) -> list[str]:
        """The statements after which :meth:`changes` makes as many rows once more."""
        return [f"TRUNCATE TABLE {name}" for name in self.names]

    def setup(self) -> list[str]:
        """The statements that create the tables."""
        most = max(self.few, self.many)
        return [
            "SET cte_max_recursion_depth = 100000",
            "CREATE TABLE seq(n int PRIMARY KEY)",
            (
                "INSERT INTO seq WITH RECURSIVE s(n) AS "
                f"(SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {most}) SELECT n FROM s"
            ),
            *self.tables(),
        ]

    def tables(self) -> list[str]:
        """The statements that create the tables of the load itself."""
        raise NotImplementedError

    def changes(self) -> list[str]:
        """The statements whose rows are streamed."""
        raise NotImplementedError


class Unique(_Load):
    """Eleven columns of most types, with random values."""

    names = ("unique_values",)

    def tables(self) -> list[str]:
        """One table."""
        return [_UNIQUE.format(table="unique_values")]

    def changes(self) -> list[str]:
        """One statement."""
        return [_INSERT_UNIQUE.format(table="unique_values", few=self.few, many=self.many)]


class Wide(_Load):
    """Sixty columns: twenty each of numbers, decimals and strings."""

    names = ("wide",)

    def tables(self) -> list[str]:
        """One table."""
        columns = [f"n{i} bigint, d{i} decimal(14,3), s{i} varchar(40)" for i in range(20)]
        return [f"CREATE TABLE wide(id int AUTO_INCREMENT PRIMARY KEY, {', '.join(columns)})"]

    def changes(self) -> list[str]:
        """One statement."""
        names = ", ".join(f"n{i}, d{i}, s{i}" for i in range(20))
        values = ", ".join(["RAND() * 1e15, RAND() * 1e9, LEFT(SHA2(RAND(), 256), 30)"] * 20)
        source = f"seq a JOIN seq b ON a.n <= {self.many} AND b.n <= {self.few}"
        return [f"INSERT INTO wide({names}) SELECT {values} FROM {source}"]


class Large(_Load):
    """Rows of 20 KB: a text of 19 KB, and bytes."""

    names = ("large",)

    def tables(self) -> list[str]:
        """One table."""
        return ["CREATE TABLE large(id int AUTO_INCREMENT PRIMARY KEY, body text NOT NULL, data blob NOT NULL)"]

    def changes(self) -> list[str]:
        """One statement for every thousand rows."""
        return [
            (
                f"INSERT INTO large(body, data) SELECT REPEAT({_RANDOM_TEXT}, 300), RANDOM_BYTES(1000) FROM seq "
                f"WHERE n <= {self.many}"
            )
        ] * self.few


class Many(_Load):
    """A thousand tables, each with as many rows as there are thousands of rows."""

    names = tuple(f"t{number}" for number in range(1000))

    def tables(self) -> list[str]:
        """The tables."""
        return [_UNIQUE.format(table=name) for name in self.names]

    def changes(self) -> list[str]:
        """One statement for each table."""
        return [_INSERT_UNIQUE.format(table=name, few=self.few, many=max(self.many // 1000, 1)) for name in self.names]
