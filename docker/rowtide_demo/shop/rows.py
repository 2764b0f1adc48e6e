"""The initial rows of the shop, generated deterministically from its sizes, and their insertion into MySQL."""

import datetime as dt
import json
import random
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from rowtide_demo.shop import sample_text
from rowtide_demo.shop.schema import DATABASE, TABLES, Sizes, create_statements

if TYPE_CHECKING:
    from pymysql import Connection
    from pymysql.cursors import Cursor

__all__ = ["COLUMNS", "Row", "generate_rows", "insert", "load", "new_customer", "new_line", "new_order", "sku"]

Row = tuple[object, ...]

COLUMNS = {
    "customers": "id email name city legacy_name country level interests newsletter credit born registered seen "
    "settings",
    "products": "sku name description price cost weight stock ean digest thumbnail features attributes launched "
    "ready_after changed",
    "orders": "id customer_id state placed paid due total discount express note",
    "order_lines": "order_id line sku quantity price tax gift wish",
}
"""The columns of each table, in the order of the values of a `Row`."""

_SEED = 20250131
_BATCH = 1000  # rows of a statement: below max_allowed_packet, and more are not faster
_EPOCH = dt.datetime(2018, 1, 1)  # noqa: DTZ001 - DATETIME and, with a session in UTC, TIMESTAMP have no zone
_TEN_YEARS = 10 * 365 * 24 * 3600
_INTERESTS = ("books", "garden", "music", "sport", "travel")


def generate_rows(table: str, sizes: Sizes) -> Iterator[Row]:
    """Return the initial rows of a table."""
    rng = random.Random(f"{_SEED} {table}")
    match table:
        case "customers":
            return (new_customer(rng, number) for number in range(1, sizes.customers + 1))
        case "products":
            return (_product(rng, number) for number in range(1, sizes.products + 1))
        case "orders":
            return (new_order(rng, number, sizes) for number in range(1, sizes.orders + 1))
        case _:
            return _lines(rng, sizes)


def sku(number: int) -> str:
    """Return the key of the product with this number."""
    return f"P{number:09d}"


def new_customer(rng: random.Random, number: int) -> Row:
    """Return a customer whose key is ``number``."""
    first, last = rng.choice(sample_text.NAMES)[0], rng.choice(sample_text.NAMES)[1]
    return (
        number,
        f"customer{number}@example.com",
        f"{first} {last}",
        rng.choice(sample_text.CITIES) if rng.random() < 0.9 else None,
        rng.choice(sample_text.LEGACY_NAMES) if rng.random() < 0.3 else None,
        rng.choice(sample_text.COUNTRIES),
        rng.choice(("bronze", "silver", "gold")),
        ",".join(word for word in _INTERESTS if rng.random() < 0.3),
        rng.randrange(2),
        _decimal(rng, -5_000_00, 99_999_999_99, 2),
        str((_EPOCH - dt.timedelta(days=rng.randrange(6_000, 30_000))).date()) if rng.random() < 0.8 else None,
        _moment(rng, 6),
        _moment(rng, 3) if rng.random() < 0.7 else None,
        _settings(rng) if rng.random() < 0.8 else None,
    )


def new_order(rng: random.Random, number: int, sizes: Sizes) -> Row:
    """Return an order whose key is ``number``."""
    placed = _moment(rng, 3)
    paid = rng.random() < 0.6
    return (
        number,
        rng.randint(1, sizes.customers),
        rng.choice(("paid", "sent", "returned")) if paid else "open",
        placed,
        _moment(rng, 0) if paid else None,
        placed[:10] if rng.random() < 0.5 else None,
        _decimal(rng, 0, 2_000_00, 2),
        _decimal(rng, 0, 9_999, 4) if rng.random() < 0.2 else None,
        rng.randrange(2),
        rng.choice(sample_text.NOTES) if rng.random() < 0.25 else None,
    )


def new_line(rng: random.Random, order: int, line: int, sizes: Sizes) -> Row:
    """Return a line of an order."""
    return (
        order,
        line,
        sku(rng.randint(1, sizes.products)),
        rng.randint(1, 12),
        _decimal(rng, 1, 900_00, 2),
        rng.choice(("0.0770", "0.1900", "0.2500")),
        rng.randrange(2),
        rng.choice(sample_text.WISHES) if rng.random() < 0.1 else None,
    )


def _lines(rng: random.Random, sizes: Sizes) -> Iterator[Row]:
    # The lines are spread evenly; the first orders have one more each if the division leaves a remainder.
    usual, rest = divmod(sizes.order_lines, sizes.orders)
    for order in range(1, sizes.orders + 1):
        for line in range(1, usual + (order <= rest) + 1):
            yield new_line(rng, order, line, sizes)


def _product(rng: random.Random, number: int) -> Row:
    name = rng.choice(sample_text.PRODUCTS)
    return (
        sku(number),
        f"{name} {number}",
        " · ".join(rng.choices(sample_text.PRODUCTS, k=rng.randint(1, 12))),
        _decimal(rng, 1, 900_00, 2),
        _decimal(rng, -(10**20), 10**20, 6),
        rng.randrange(1, 50_000) / 1000,
        rng.randint(-50, 8_000_000),
        rng.randrange(2**64),  # half of them exceed a signed 64-bit integer
        rng.randbytes(15) + bytes([rng.randrange(3)]),  # some end with a zero byte, which must be kept
        rng.randbytes(rng.randrange(400)) if rng.random() < 0.5 else None,
        rng.randrange(2**12),
        _attributes(rng),
        rng.randint(1990, 2025),
        _duration(rng) if rng.random() < 0.7 else None,
        _moment(rng, 6) if rng.random() < 0.9 else None,
    )


def _decimal(rng: random.Random, low: int, high: int, scale: int) -> str:
    """Return the text of a random decimal; ``low`` and ``high`` are unscaled."""
    unscaled = rng.randint(low, high)
    digits = f"{abs(unscaled):0{scale + 1}d}"
    return f"{'-' * (unscaled < 0)}{digits[:-scale]}.{digits[-scale:]}"


def _moment(rng: random.Random, digits: int) -> str:
    """Return a date and time between 2018 and 2027, with ``digits`` fractional digits."""
    second = (_EPOCH + dt.timedelta(seconds=rng.randrange(_TEN_YEARS))).isoformat(" ")
    return f"{second}.{rng.randrange(10**digits):0{digits}d}" if digits else second


def _duration(rng: random.Random) -> str:
    """Return a TIME(2), which may be negative or longer than a day."""
    hundredths = rng.randrange(100 * 3600 * 100)
    seconds, hundredths = divmod(hundredths, 100)
    text = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{hundredths:02d}"
    return "-" * (rng.random() < 0.2) + text


def _settings(rng: random.Random) -> str:
    theme = {"dark": bool(rng.randrange(2)), "scale": rng.choice((1, 1.25, 1.5)), "font": None}
    return json.dumps(
        {"lang": rng.choice(sample_text.COUNTRIES).lower(), "theme": theme, "seen": rng.sample(range(999), 3)}
    )


def _attributes(rng: random.Random) -> str:
    size = [rng.randrange(1, 500) for _ in range(3)]
    labels = rng.sample(sample_text.PRODUCTS, 2)
    return json.dumps(
        {"size": size, "labels": labels, 'quote " and \\': rng.randrange(-(2**62), 2**62), "empty": {}, "none": []},
        ensure_ascii=bool(rng.randrange(2)),
    )


def load(connection: "Connection[Cursor]", sizes: Sizes, report: Callable[[int], None]) -> None:
    """Create the database and its rows; ``report`` is called with the number of rows after each statement."""
    done = 0
    with connection.cursor() as cursor:
        for statement in create_statements():
            cursor.execute(statement)
        for table in TABLES:
            for rows in _batches(generate_rows(table, sizes)):
                insert(cursor, table, rows)
                done += len(rows)
                report(done)


def insert(cursor: "Cursor", table: str, rows: Iterable[Row], database: str = DATABASE) -> int:
    """Insert all rows with one statement, and return their number."""
    columns = COLUMNS[table].split()
    values = ", ".join(cursor.mogrify(f"({', '.join(['%s'] * len(columns))})", row) for row in rows)
    return cursor.execute(f"INSERT INTO {database}.{table} ({', '.join(columns)}) VALUES {values}")


def _batches(rows: Iterator[Row]) -> Iterator[list[Row]]:
    while batch := list(islice(rows, _BATCH)):
        yield batch
