"""Commands about structures: ``rowtide schema apply``, ``show``, ``diff`` and ``log``."""

import functools
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import click

from rowtide.cli.schema_sources import BinlogSource, Source, file_source
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.apply import apply_lines
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.queries.point_in_time import InvalidPointInTime, PointInTime, parse_point_in_time
from rowtide.schema_history.queries.table_changes import changes_of_table
from rowtide.schema_history.queries.table_diff import diff_tables, matching_tables
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.record import id_text, table_fields
from rowtide.schema_history.structure.show_create import show_create

F = TypeVar("F", bound=Callable[..., None])


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
    """Tell what rowtide makes of statements.

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
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
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


class _Moment(click.ParamType):
    name = "moment"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> PointInTime:
        """Read a moment."""
        if isinstance(value, PointInTime):
            return value
        try:
            return parse_point_in_time(value)
        except InvalidPointInTime as problem:
            self.fail(str(problem), param, ctx)


_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _with_source(command: F) -> F:
    """Let a command take a source by options; what goes wrong with it is told without a traceback."""

    @functools.wraps(command)
    def run(config: Path | None, history: Path | None, binlogs: Path | None, flavor: str, **arguments: Any) -> None:
        try:
            command(_source(config, history, binlogs, Flavor(flavor)), **arguments)
        except (SchemaHistoryError, InvalidPointInTime, OSError) as problem:
            raise click.ClickException(str(problem)) from None
        except Exception as problem:
            if type(problem).__module__.startswith("rowtide."):
                raise click.ClickException(str(problem)) from None
            raise

    for option in (
        click.option("--flavor", type=click.Choice([f.value for f in Flavor]), default="mysql", show_default=True,
                     help="Whose history or binlog files they are; a configuration tells it itself."),
        click.option("--binlogs", type=_FOLDER, help="A folder with binlog files, plain or gzipped."),
        click.option("--history", type=_FILE, help="A schema history file, one record a line."),
        click.option("--config", type=_FILE, help="A connector's configuration, for its schema history."),
    ):  # fmt: skip
        run = option(run)
    return run  # type: ignore[return-value]


def _source(config: Path | None, history: Path | None, binlogs: Path | None, flavor: Flavor) -> Source:
    given = [name for name, value in (("config", config), ("history", history), ("binlogs", binlogs)) if value]
    if len(given) != 1:
        raise click.UsageError("say where to look: one of --config, --history and --binlogs")
    if binlogs is not None:
        return BinlogSource(binlogs, flavor)
    if history is not None:
        return file_source(history, flavor)
    from rowtide.cli.connector import loaded  # noqa: PLC0415 - needs the extra
    from rowtide.cli.schema_sources import configured_source  # noqa: PLC0415

    return configured_source(loaded(str(config), unneeded={"database.password"}))


_AT = {"type": _Moment(), "help": "A moment: binlog.000042:1234, a GTID set, a time, or end."}


@schema.command()
@_with_source
@click.argument("tables", metavar="TABLE")
@click.option("--at", default="end", show_default=True, **_AT)  # type: ignore[arg-type]
@click.option(
    "--format",
    "form",
    type=click.Choice(["ddl", "json", "debezium"]),
    default="ddl",
    show_default=True,
    help="DDL, JSON with the fields of information_schema, or Debezium's table JSON.",
)
def show(source: Source, tables: str, at: PointInTime, form: str) -> None:
    """Print the structure of TABLE at a moment.

    TABLE is database.table, where * and ? stand for any characters.

    DDL has what decides about rows and their keys, in the server's own words: columns with all their attributes,
    indexes, character set, comment. CHECK and FOREIGN KEY constraints, partitions and options of storage are left out:
    a statement's text does not tell how the server words the one, and they are no part of a row.
    """
    known = source.tables(at)
    found = matching_tables(known, tables)
    if not found:
        near = ", ".join(sorted(map(str, known.names()))[:10])
        raise click.ClickException(f"there is no table {tables} at {at.text}; there are {near or 'no tables'}")
    for table in found:
        click.echo(_shown(table, known.server, form))


def _shown(table: Table, server: Server, form: str) -> str | bytes:
    if form == "ddl":
        return show_create(table, server) + ";"
    if form == "json":
        return as_json({str(table.id): table_json(table, server.flavor)})
    return as_json({"id": id_text(table.id), "table": table_fields(table, comments=True)})


@schema.command()
@_with_source
@click.argument("before", metavar="A", type=_Moment())
@click.argument("after", metavar="B", type=_Moment())
@click.argument("tables", metavar="[TABLE]", default="*")
def diff(source: Source, before: PointInTime, after: PointInTime, tables: str) -> None:
    """Print what differs between the structures at two moments, A and B.

    A and B are positions (binlog.000042:1234), GTID sets, times, or end. TABLE is database.table, where * and ? stand
    for any characters; all tables if it is not given.
    """
    old, new = source.tables(before), source.tables(after)
    colours = {"+": "green", "-": "red"}
    for line in diff_tables(old, new, tables, source.server, (before.text, after.text)):
        click.secho(line, fg=colours.get(line[:1]))


@schema.command()
@_with_source
@click.argument("table", metavar="TABLE")
def log(source: Source, table: str) -> None:
    """Print the changes of TABLE and where they stand.

    TABLE is database.table. What was done to it under former names is told too.
    """
    database, dot, name = table.partition(".")
    found = changes_of_table(source.changes(), TableId(database, name)) if dot else []
    if not found:
        raise click.ClickException(f"nothing is told of a table {table}; a name is given as database.table")
    for change in found:
        click.secho(_where(change.position), fg="yellow")
        click.echo("\n".join(f"    {line}" for line in change.ddl.splitlines()))


def _where(place: BinlogPosition) -> str:
    time = datetime.fromtimestamp(place.ts_sec, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if place.ts_sec else ""
    return "  ".join(part for part in (f"{place.file}:{place.pos}", time, place.gtids or "") if part)
