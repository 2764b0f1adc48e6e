"""The four tables of the shop, which use many of MySQL's types, character sets and kinds of keys."""

from dataclasses import dataclass

__all__ = ["DATABASE", "TABLES", "Sizes", "create_statements"]

DATABASE = "shop"
"""The name of the database."""

TABLES = {
    "customers": """
        id INT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
        email VARCHAR(120) CHARACTER SET ascii NOT NULL UNIQUE,
        name VARCHAR(80) NOT NULL,
        city VARCHAR(60) CHARACTER SET latin1 NULL,
        legacy_name VARCHAR(60) CHARACTER SET cp1251 NULL,
        country CHAR(2) CHARACTER SET ascii NOT NULL,
        level ENUM('bronze', 'silver', 'gold') NOT NULL DEFAULT 'bronze',
        interests SET('books', 'garden', 'music', 'sport', 'travel') NOT NULL,
        newsletter BOOLEAN NOT NULL,
        credit DECIMAL(12, 2) NOT NULL,
        born DATE NULL,
        registered DATETIME(6) NOT NULL,
        seen TIMESTAMP(3) NULL,
        settings JSON NULL""",
    "products": """
        sku CHAR(10) CHARACTER SET ascii NOT NULL PRIMARY KEY,
        name VARCHAR(120) NOT NULL,
        description TEXT NOT NULL,
        price DECIMAL(10, 2) NOT NULL,
        cost DECIMAL(24, 6) NOT NULL,
        weight DOUBLE NOT NULL,
        stock MEDIUMINT NOT NULL,
        ean BIGINT UNSIGNED NOT NULL,
        digest BINARY(16) NOT NULL,
        thumbnail BLOB NULL,
        features BIT(12) NOT NULL,
        attributes JSON NOT NULL,
        launched YEAR NOT NULL,
        ready_after TIME(2) NULL,
        changed TIMESTAMP(6) NULL""",
    "orders": """
        id BIGINT UNSIGNED NOT NULL PRIMARY KEY,
        customer_id INT UNSIGNED NOT NULL,
        state ENUM('open', 'paid', 'sent', 'returned') NOT NULL,
        placed DATETIME(3) NOT NULL,
        paid TIMESTAMP NULL,
        due DATE NULL,
        total DECIMAL(12, 2) NOT NULL,
        discount DECIMAL(5, 4) NULL,
        express BOOLEAN NOT NULL,
        note TEXT NULL,
        KEY (customer_id)""",
    "order_lines": """
        order_id BIGINT UNSIGNED NOT NULL,
        line SMALLINT UNSIGNED NOT NULL,
        sku CHAR(10) CHARACTER SET ascii NOT NULL,
        quantity SMALLINT UNSIGNED NOT NULL,
        price DECIMAL(10, 2) NOT NULL,
        tax DECIMAL(6, 4) NOT NULL,
        gift BOOLEAN NOT NULL,
        wish VARCHAR(200) CHARACTER SET utf8mb3 NULL,
        PRIMARY KEY (order_id, line)""",
}
"""The column and key definitions of each table."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """The initial number of rows of each table."""

    customers: int
    products: int
    orders: int
    order_lines: int

    @classmethod
    def of(cls, rows: int) -> "Sizes":
        """Distribute ``rows`` (at least 100) over the tables; their total is exactly ``rows``."""
        customers, products, orders = rows * 12 // 100, rows // 100, rows * 27 // 100
        return cls(customers, products, orders, rows - customers - products - orders)

    @property
    def total(self) -> int:
        """The rows of all tables together."""
        return self.customers + self.products + self.orders + self.order_lines


def create_statements() -> list[str]:
    """Return the statements that create the database and its empty tables."""
    tables = [f"CREATE TABLE {DATABASE}.{name} ({columns}\n)" for name, columns in TABLES.items()]
    return [f"CREATE DATABASE {DATABASE} CHARACTER SET utf8mb4", *tables]
