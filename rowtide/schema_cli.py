"""Commands about structures: ``rowtide schema apply``."""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

import click

from rowtide.schema_history.apply import apply_lines
from rowtide.schema_history.query import Flavor


@click.group()
def schema() -> None:
    """Ask for tables' structures, and what changed them."""


@schema.command()
@click.option(
    "--flavor",
    required=True,
    type=click.Choice([flavor.value for flavor in Flavor]),
    help="Which server's statements they are.",
)
@click.argument("events", type=click.File("rb"), default="-")
def apply(flavor: str, events: BinaryIO) -> None:
    r"""Tell what rowtide makes of statements.

    Reads Query events from EVENTS (standard input if it is not given), one JSON object a line:

    \b
      {"db": "shop", "sql": "CREATE TABLE t (a INT)",
       "sql_mode": 0, "charset": [255, 255, 255], "vars": {}}

    sql_mode is the event's bit mask, charset its collation ids (client, connection, server), vars its other status
    variables; all three may be left out. The first line may be a header:

    \b
      {"server": "mysql", "version": "9.7.4",
       "variables": {"collation_server": "utf8mb4_0900_ai_ci", "lower_case_table_names": 0},
       "databases": {"shop": {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}}}

    Prints for each event one line: {"error": null or text, "databases": {...}, "changed": {...}}, the databases and
    tables that it changed as information_schema would show them, null for what is gone. After an event with an error
    it goes on with the structures as they were.
    """
    for answer in apply_lines(_lines(events), Flavor(flavor)):
        click.echo(as_json(answer))


def _lines(file: BinaryIO) -> Iterator[str]:
    for line in file:
        yield line.decode("utf-8-sig" if line.startswith(b"\xef\xbb\xbf") else "utf-8", "surrogateescape")


def as_json(value: Any) -> bytes:
    """One line of JSON in UTF-8; escaped if it has characters that are none."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()
