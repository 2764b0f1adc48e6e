"""``rowtide schema``: table structures at a position of the binlog, and the statements that changed them."""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from rowtide.cli.schema_sources import BinlogSource, StructureSource, file_source
from rowtide.cli.sql_script import apply_script
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.apply import NotAnEvent, apply_lines
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.queries.point_in_time import InvalidPointInTime, PointInTime, parse_point_in_time
from rowtide.schema_history.queries.table_changes import changes_of_table
from rowtide.schema_history.queries.table_diff import diff_tables, matching_tables
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.history_record import id_text, table_fields
from rowtide.schema_history.structure.show_create import show_create

F = TypeVar("F", bound=Callable[..., None])


@click.group()
def schema() -> None:
    """Look up table structures and their history."""


@schema.command()
@click.option(
    "--flavor",
    required=True,
    type=click.Choice([flavor.value for flavor in Flavor]),
    help="The server whose statements they are.",
)
@click.option("--sql", "as_sql", is_flag=True, help="The input is SQL; the default for a file named *.sql.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, allow_dash=True), default="-")
def apply(file: str, flavor: str, *, as_sql: bool) -> None:
    """Apply DDL statements to an empty catalog and print what each changes.

    FILE (default: standard input) holds SQL statements, or Query events of a binlog as one JSON object per line.

    \b
    Examples:
      rowtide schema apply --flavor mysql shop.sql
      mysqldump --no-data shop | rowtide schema apply --flavor mysql --sql

    SQL statements end with a semicolon or with the delimiter set by DELIMITER; USE selects the database, and SET has no
    effect. A Query event is:

    \b
      {"db": "shop", "sql": "CREATE TABLE t (a INT)",
       "sql_mode": 0, "charset": [255, 255, 255], "vars": {}}

    where sql_mode is the event's bit mask, charset its collation ids (client, connection, server), and vars its other
    status variables; all three are optional. The first line may be a header:

    \b
      {"server": "mysql", "version": "9.7.4",
       "variables": {"collation_server": "utf8mb4_0900_ai_ci", "lower_case_table_names": 0},
       "databases": {"shop": {"charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci"}}}

    Prints one JSON object for each statement or event: "error" (null or a text), and the "databases" and tables
    ("changed") that it changed, in the form of information_schema, or null for those that it removed. An SQL statement
    also has the "line" at which it starts. After an error the next statement is applied to the unchanged catalog.

    The exit code is 1 if an SQL statement failed, or if no line of the input is a Query event.
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    with click.open_file(file, "rb") as opened:
        if as_sql or file.lower().endswith(".sql"):
            _apply_script(opened.read().decode("utf-8-sig", "surrogateescape"), Flavor(flavor))
        else:
            _apply_events(opened, Flavor(flavor))


def _apply_script(script: str, flavor: Flavor) -> None:
    number, failed = 0, []
    for answer in apply_script(script, flavor):
        click.echo(as_json(answer))
        number += 1
        if answer["error"] is not None:
            failed.append(answer["line"])
    if failed:
        raise click.ClickException(f"{len(failed)} of {number} statements failed; the first is at line {failed[0]}")


def _apply_events(file: IO[bytes], flavor: Flavor) -> None:
    try:
        for answer in apply_lines(_lines(file), flavor):
            click.echo(as_json(answer))
    except NotAnEvent as error:
        raise click.ClickException(f"{error}; for SQL statements add --sql") from None


def _lines(file: IO[bytes]) -> Iterator[str]:
    for line in file:
        yield line.decode("utf-8-sig" if line.startswith(b"\xef\xbb\xbf") else "utf-8", "surrogateescape")


def as_json(value: Any) -> bytes:
    """Return one line of JSON in UTF-8. Text that UTF-8 cannot encode is escaped."""
    try:
        return json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return json.dumps(value).encode()


class _PointInTime(click.ParamType):
    name = "position"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> PointInTime:
        """Parse the text of a position, GTID set or time."""
        if isinstance(value, PointInTime):
            return value
        try:
            return parse_point_in_time(value)
        except InvalidPointInTime as problem:
            self.fail(str(problem), param, ctx)


_FOLDER = click.Path(exists=True, file_okay=False, path_type=Path)
_CONFIG = click.Path(exists=True, dir_okay=False)
_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


def _with_source(command: F) -> F:
    """Add the options that select a source to a command; errors of the source are printed without a traceback."""

    @functools.wraps(command)
    def run(config: tuple[str, ...], history: Path | None, binlogs: Path | None, flavor: str, **arguments: Any) -> None:
        try:
            with _source(config, history, binlogs, Flavor(flavor)) as source:
                command(source, **arguments)
        except (SchemaHistoryError, OSError) as problem:
            raise click.ClickException(str(problem)) from None
        except Exception as problem:
            if type(problem).__module__.startswith("rowtide."):
                raise click.ClickException(str(problem)) from None
            raise

    for option in (
        click.option("--flavor", type=click.Choice([f.value for f in Flavor]), default="mysql", show_default=True,
                     help="The server of the history or binlog files; not needed with --config."),
        click.option("--binlogs", type=_FOLDER, help="A folder with binlog files, plain or gzipped."),
        click.option("--history", type=_FILE, help="A schema history file, one record per line."),
        click.option("--config", type=_CONFIG, multiple=True,
                     help="A connector's configuration, whose schema history is read; repeat it for several files."),
    ):  # fmt: skip
        run = option(run)
    return run  # type: ignore[return-value]


def _source(
    config: tuple[str, ...], history: Path | None, binlogs: Path | None, flavor: Flavor
) -> AbstractContextManager[StructureSource]:
    given = [name for name, value in (("config", config), ("history", history), ("binlogs", binlogs)) if value]
    if len(given) != 1:
        raise click.UsageError("a source is needed: one of --config, --history and --binlogs")
    if binlogs is not None:
        return nullcontext(BinlogSource(binlogs, flavor))
    if history is not None:
        return file_source(history, flavor)
    from rowtide.cli.connectors import read_configuration  # noqa: PLC0415 - needs the extra
    from rowtide.connector.engine.wiring import history_source  # noqa: PLC0415

    return history_source(read_configuration(config, not_required={"database.password"}))


_AT = {"type": _PointInTime(), "help": "A position (binlog.000042:1234), a GTID set, a time, or end."}


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
def show(source: StructureSource, tables: str, at: PointInTime, form: str) -> None:
    """Print the structure of TABLE at a position, GTID set or time.

    TABLE is database.table, where * stands for any characters and ? for one.

    \b
    Examples:
      rowtide schema show 'shop.*' --config shop.properties
      rowtide schema show shop.orders --binlogs /var/lib/mysql --at '2026-01-31 12:00:00'

    The DDL is that of SHOW CREATE TABLE for everything that affects rows and their keys: columns with all attributes,
    indexes, character set and comment. It has no CHECK and FOREIGN KEY constraints, partitions and storage options:
    they do not affect rows, and the statements do not show their exact form.
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    known = source.tables(at)
    found = matching_tables(known, tables)
    if not found:
        near = ", ".join(sorted(map(str, known.names()))[:10])
        raise click.ClickException(f"there is no table {tables} at {at.text}; there are {near or 'no tables'}")
    for table in found:
        click.echo(_rendered(table, known.server, form))


def _rendered(table: Table, server: Server, form: str) -> str | bytes:
    if form == "ddl":
        return show_create(table, server) + ";"
    if form == "json":
        return as_json({str(table.id): table_json(table, server.flavor)})
    return as_json({"id": id_text(table.id), "table": table_fields(table, comments=True)})


@schema.command()
@_with_source
@click.argument("before", metavar="A", type=_PointInTime())
@click.argument("after", metavar="B", type=_PointInTime())
@click.argument("tables", metavar="[TABLE]", default="*")
def diff(source: StructureSource, before: PointInTime, after: PointInTime, tables: str) -> None:
    """Print the differences between the structures at A and at B.

    A and B are positions (binlog.000042:1234), GTID sets, times, or end. TABLE is database.table, where * stands for
    any characters and ? for one; the default is all tables.

    \b
    Example:
      rowtide schema diff binlog.000041:4 end 'shop.*' --config shop.properties
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    old, new = source.tables(before), source.tables(after)
    colours = {"+": "green", "-": "red"}
    for line in diff_tables(old, new, tables, source.server, (before.text, after.text)):
        click.secho(line, fg=colours.get(line[:1]))


@schema.command()
@_with_source
@click.argument("table", metavar="TABLE")
def log(source: StructureSource, table: str) -> None:
    """Print the statements that changed TABLE, with position, time and GTID set.

    TABLE is database.table. Statements from before the table was renamed are included.

    \b
    Example:
      rowtide schema log shop.orders --config shop.properties
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    database, dot, name = table.partition(".")
    found = changes_of_table(source.changes(), TableId(database, name)) if dot else []
    if not found:
        raise click.ClickException(f"no statement about a table {table} was found; expected database.table")
    for change in found:
        click.secho(_position_text(change.position), fg="yellow")
        click.echo("\n".join(f"    {line}" for line in change.ddl.splitlines()))


def _position_text(place: BinlogPosition) -> str:
    time = datetime.fromtimestamp(place.ts_sec, UTC).strftime("%Y-%m-%d %H:%M:%S UTC") if place.ts_sec else ""
    return "  ".join(part for part in (f"{place.file}:{place.pos}", time, place.gtids or "") if part)


@schema.command()
@click.option("--pydantic", is_flag=True, help="Make pydantic models instead of dataclasses.")
@click.option(
    "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.  [default: standard output]"
)
@click.argument("config", type=_CONFIG)
def models(config: str, output: Path | None, *, pydantic: bool) -> None:
    """Write Python classes for the rows of the captured tables.

    CONFIG is the connector's configuration. The structures are the current ones on the server. A change turns its rows
    into objects of these classes: change.after_as(Customers).

    \b
    Example:
      rowtide schema models shop.properties --output shop_tables.py
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    from rowtide.connector.engine.models import models as written  # noqa: PLC0415 - needs the extra
    from rowtide.connector.errors import ConnectorError  # noqa: PLC0415

    try:
        text = written(config, output, pydantic=pydantic)
    except ConnectorError as problem:
        raise click.ClickException(str(problem)) from None
    except OSError as problem:
        raise click.ClickException(f"{problem.filename} cannot be written: {problem.strerror}") from None
    if output is None:
        click.echo(text, nl=False)
