"""The statements: before the connectors start, in each stage, and between the stages.

They contain only what both connectors handle in the same way. The differences are tested by the recorded cases.
"""

from __future__ import annotations

from collections.abc import Iterator

__all__ = ["BULK_ROWS", "OTHER", "SCHEMA", "STAGES", "bulk", "gap", "marker", "setup", "stage"]

SCHEMA = "interop"
OTHER = "elsewhere"
"""A database that is not captured. Its statements are nevertheless in the schema history."""
STAGES = 5
BULK_ROWS = 8000
_ALTERED = {0, 1, 3}


def setup() -> tuple[str, ...]:
    """Statements before the snapshot."""
    return (
        f"CREATE DATABASE {SCHEMA} CHARACTER SET utf8mb4",
        f"CREATE DATABASE {OTHER} CHARACTER SET latin1",
        f"CREATE TABLE {OTHER}.t (id INT PRIMARY KEY, v VARCHAR(10))",
        f"USE {SCHEMA}",
        "CREATE TABLE marker (stage INT PRIMARY KEY)",
        "CREATE TABLE bulk (id INT PRIMARY KEY, v VARCHAR(100))",
        (
            "CREATE TABLE customers (id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, name VARCHAR(50) NOT NULL, "
            "email VARCHAR(100) CHARACTER SET latin1, created DATETIME(3) DEFAULT '2024-02-29 12:34:56.789', "
            "level ENUM('gold','silver') DEFAULT 'silver', active BOOL NOT NULL DEFAULT 1, KEY (name))"
        ),
        (
            "CREATE TABLE orders (order_id BIGINT NOT NULL, line SMALLINT NOT NULL, amount DECIMAL(10,2), "
            "tags SET('a','b','c'), data JSON, PRIMARY KEY (order_id, line))"
        ),
        "CREATE TABLE `Größe` (`höhe` DOUBLE, bits BIT(9), raw VARBINARY(20), UNIQUE KEY u (raw))",
        "CREATE TABLE notes (id INT, text TEXT)",
        "INSERT INTO customers (name, email, level) VALUES ('Zoë', 'zoe@example.org', 'gold'), ('李', NULL, NULL)",
        "INSERT INTO orders VALUES (1, 1, 12.34, 'a,c', '{\"a\": [1, 2]}'), (1, 2, NULL, NULL, NULL)",
        "INSERT INTO `Größe` VALUES (1.5, b'101010101', x'00ff')",
        "INSERT INTO notes VALUES (1, 'before')",
    )


def stage(number: int) -> tuple[str, ...]:
    """Statements while the connector of a stage runs: changes of rows, of structures, and of rows again."""
    return _STAGES[number]


def gap(number: int) -> tuple[str, ...]:
    """Statements after a stage, while no connector runs."""
    return _GAPS[number]


def marker(number: int) -> tuple[str, ...]:
    """The end of a stage: a row whose record marks it, followed in some stages by a change of structure.

    The stored offset after a statement differs from that after a row.
    """
    row = f"INSERT INTO marker (stage) VALUES ({number})"
    return (row, f"ALTER TABLE marker ADD COLUMN c{number} INT") if number in _ALTERED else (row,)


def bulk(number: int) -> Iterator[str]:
    """A transaction that is long enough to stop connectors in the middle of it."""
    yield "BEGIN"
    for first in range(0, BULK_ROWS, 1000):
        base = number * 1_000_000 + first
        yield "INSERT INTO bulk VALUES " + ", ".join(f"({base + n}, REPEAT('{n % 10}', 80))" for n in range(1000))
    yield f"UPDATE bulk SET v = 'changed' WHERE id >= {number * 1_000_000} AND id % 2"
    yield "COMMIT"


_STAGES = (
    (
        "INSERT INTO customers (name) VALUES ('old structure')",
        "ALTER TABLE customers ADD COLUMN phone VARCHAR(20) AFTER name, ADD COLUMN ok BOOL DEFAULT 1",
        "INSERT INTO customers (name, phone) VALUES ('new structure', '0049')",
        "UPDATE customers SET phone = '1' WHERE id = 1",
        "CREATE TABLE products (sku CHAR(8) PRIMARY KEY, price DECIMAL(8,2) UNSIGNED, made DATE)",
        "INSERT INTO products VALUES ('a', 1.5, '2020-01-31')",
    ),
    (
        "INSERT INTO orders (order_id, line, amount) VALUES (2, 1, 1.125)",
        "ALTER TABLE customers DROP COLUMN email, CHANGE name full_name VARCHAR(80) NOT NULL DEFAULT ''",
        "INSERT INTO customers (full_name) VALUES ('renamed column')",
        "CREATE TABLE copies LIKE goods",
        "INSERT INTO copies (sku, price) VALUES ('b', 2)",
        "CREATE INDEX by_price ON copies (price)",
        "TRUNCATE TABLE orders",
        "INSERT INTO orders (order_id, line, amount) VALUES (3, 1, 2)",
    ),
    (
        "UPDATE goods SET price = 9 WHERE sku = 'a'",
        "ALTER TABLE goods DROP PRIMARY KEY, ADD id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY FIRST",
        "INSERT INTO goods (sku, price) VALUES ('c', 3)",
        f"CREATE TABLE {OTHER}.more (id INT PRIMARY KEY)",
        "DELETE FROM customers WHERE id = 1",
        "CREATE VIEW v AS SELECT * FROM goods",
    ),
    (
        "INSERT INTO customers (full_name) VALUES ('after the long transaction')",
        "ALTER TABLE customers MODIFY level ENUM('gold','silver','bronze') DEFAULT 'bronze'",
        "INSERT INTO customers (full_name) VALUES ('bronze')",
        "DROP TABLE copies",
        "CREATE TABLE copies (other TEXT CHARACTER SET latin1)",
        "INSERT INTO copies VALUES ('made anew')",
    ),
    (
        "INSERT INTO orders (order_id, line, amount) VALUES (5, 1, 5)",
        "ALTER TABLE orders ADD COLUMN placed TIMESTAMP(6) NULL, ADD UNIQUE KEY (placed)",
        "INSERT INTO orders (order_id, line, placed) VALUES (5, 2, '2024-01-02 03:04:05.678901')",
        "DELETE FROM orders",
    ),
)
_GAPS = (
    (
        "INSERT INTO orders (order_id, line, amount) VALUES (1, 3, 3)",
        "ALTER TABLE orders ADD COLUMN discount DECIMAL(5,2) NOT NULL DEFAULT 0.50, MODIFY amount DECIMAL(12,3)",
        "INSERT INTO orders (order_id, line, amount) VALUES (1, 4, 4.125)",
        "DROP TABLE notes",
        "RENAME TABLE products TO goods",
        "UPDATE goods SET price = 2 WHERE sku = 'a'",
        f"ALTER TABLE {OTHER}.t ADD COLUMN w INT",
    ),
    (
        "ALTER TABLE `Größe` ADD COLUMN `länge` FLOAT",
        "INSERT INTO `Größe` VALUES (2.5, b'1', x'01', 3.5)",
        f"ALTER DATABASE {SCHEMA} CHARACTER SET latin1",
        "CREATE TABLE latin (id INT PRIMARY KEY, v VARCHAR(10))",
        "INSERT INTO latin VALUES (1, 'é')",
    ),
    (),
    (
        "ALTER TABLE bulk RENAME TO heap",
        "INSERT INTO heap VALUES (-1, 'under a new name')",
        "ALTER TABLE heap RENAME TO bulk",
        f"DROP DATABASE {OTHER}",
        "CREATE TABLE latin2 AS SELECT * FROM latin",
    ),
)
