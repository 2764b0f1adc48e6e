"""``rowtide replay``: converts binlog files on disk to records, on standard output or in Kafka."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import click

from rowtide.canal.entries.entry import Entry
from rowtide.canal.replay import entries, entry_line
from rowtide.cli.connectors import config_argument, read_configuration
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import connect, connection, history
from rowtide.connector.config.catalogue.running import MIRROR_DIRECTORY
from rowtide.connector.engine.decoding.forms import LineForm, RecordForm
from rowtide.connector.engine.decoding.lines import write_lines
from rowtide.connector.engine.decoding.processes import decoding, default_number
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.replay import replay_as
from rowtide.connector.engine.time_travel import replay_table
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.errors import SchemaHistoryError

_SERVER = frozenset(
    entry.name for entry in (connection.HOSTNAME, connection.USER, connection.PASSWORD, connection.SERVER_ID)
)
_KAFKA = frozenset({connect.BOOTSTRAP_SERVERS.name})
_HISTORY = frozenset({history.TOPIC.name, history.FILE_NAME.name})


class OffsetText(click.ParamType):
    """A source offset in JSON."""

    name = "offset"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> SourceOffset:
        """Parse an offset. One that has only a GTID set gets an empty file name."""
        try:
            fields = json.loads(value)
            if isinstance(fields, dict) and "file" not in fields and isinstance(fields.get("gtids"), str):
                fields = {**fields, "file": ""}
            return SourceOffset.from_json(json.dumps(fields))
        except ValueError as error:
            self.fail(
                f'{value!r} is not an offset such as \'{{"file":"binlog.000003","pos":157}}\': {error}', param, ctx
            )


@click.command()
@config_argument()
@click.option(
    "--binlog",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder with the binlog files, plain or .gz. All of them are read, in the order of their numbers.  "
    "[default: rowtide.mirror.directory of CONFIG]",
)
@click.option(
    "--start",
    type=OffsetText(),
    help='Start position of the records: {"file": "binlog.000003", "pos": 157}, or {"gtids": "…"} for all transactions '
    "that are not in the set. From earlier events only the table structures are taken.  [default: the first event]",
)
@click.option("--table", metavar="DB.TABLE", help="Only the rows of this table; see above.")
@click.option(
    "--from",
    "first",
    metavar="POINT",
    help="With --table: a GTID (this transaction and later ones), a GTID set (from the first transaction that is not "
    "in it), or file:position.  [default: the first event]",
)
@click.option(
    "--to",
    "last",
    metavar="POINT",
    help="With --table: a GTID (this transaction is the last one), a GTID set (up to the first transaction that is "
    "not in it), or file:position (transactions that begin before it).  [default: the end]",
)
@click.option(
    "--output",
    type=click.Choice(["-", "kafka"]),
    default="-",
    show_default=True,
    help="-: one JSON object (topic, key, value, headers) per line on standard output; kafka: the Kafka of CONFIG.",
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["debezium", "canal"]),
    default="debezium",
    show_default=True,
    help="debezium: records; canal: Canal's entries, one JSON object (entryType, entry in base64, flat) a "
    "line, of all tables.",
)
def replay(
    config: tuple[str, ...],
    *,
    binlog: Path | None,
    start: SourceOffset | None,
    table: str | None,
    first: str | None,
    last: str | None,
    output: str,
    form: str,
) -> None:
    """Convert binlog files on disk to records, without a server.

    Reads the configuration files CONFIG as 'rowtide run' does. The files must contain the statements that created the
    tables: start with the first file that the server wrote, or with that of an empty server into which a dump was
    loaded. The connector's stored position and schema history are neither read nor changed.

    With --table, the rows of one table between two points are printed, with the structures of that time. These come
    from the schema history of CONFIG if it names one, so that the files need not contain the statements that created
    the table.

    \b
    Example:
      rowtide replay shop.properties --binlog /archive/shop --table shop.orders \\
        --from 3e11fa47-71ca-11e1-9e33-c80aa9429562:23 --to 3e11fa47-71ca-11e1-9e33-c80aa9429562:42
    """  # noqa: D301 - Click's mark of a paragraph
    if table is None and (first is not None or last is not None):
        raise click.UsageError("--from and --to need --table; --start is for all tables")
    if table is not None and (start is not None or output == "kafka" or form == "canal"):
        raise click.UsageError("--table excludes --start, --output kafka and --format canal; use --from")
    if form == "canal" and output == "kafka":
        raise click.UsageError("--format canal needs --output -: entries cannot be sent to Kafka yet")
    if output == "-" and sys.stdout is None:
        raise click.UsageError("standard output is closed: open it, or use --output kafka")
    not_required = _SERVER | _HISTORY | (_KAFKA if output == "-" else frozenset())
    configuration = read_configuration(config, not_required)
    binlog = binlog or _mirror(configuration)
    started = time.monotonic()
    settings = pipeline_settings(configuration, run_id())
    try:
        if table is not None:
            done = _print_table(configuration, settings, table, binlog, first, last, sys.stdout.buffer)
        elif output == "kafka":
            done = _send(configuration, settings, binlog, start)
        elif form == "canal":
            done = _print_entries(entries(binlog, settings, start, gtids=configuration.canal_gtids), sys.stdout.buffer)
        else:
            done = _print(configuration, settings, binlog, start, sys.stdout.buffer)
    except (ConnectorError, SchemaHistoryError) as error:
        raise click.ClickException(str(error)) from None
    except BrokenPipeError:
        raise  # the reader has what it wants; click ends the command
    except OSError as error:
        raise click.ClickException(
            f"{error.filename or 'standard output'}: {error.strerror or error}. The output is incomplete, and may "
            "end within a line"
        ) from None
    finally:
        if settings.transforms is not None:
            settings.transforms.close()
    made = "entries" if form == "canal" else "records"
    click.echo(f"{done} {made} in {time.monotonic() - started:.1f} s", err=True)


def _mirror(configuration: Configuration) -> Path:
    """Return the binlog files of the connector's mirror."""
    name, mirror = MIRROR_DIRECTORY.name, configuration.streaming.mirror
    if mirror is None:
        raise click.UsageError(f"--binlog is missing, and {name} is not set in CONFIG")
    folder = Path(mirror.directory)
    if not folder.is_dir():
        raise click.ClickException(f"{name}={folder} is not a directory")
    return folder


def _print(
    configuration: Configuration, settings: PipelineSettings, binlog: Path, start: SourceOffset | None, stream: BinaryIO
) -> int:
    """Write all records as JSON lines; returns their number."""
    number, form, file = 0, LineForm(), stream.fileno()
    chosen = configuration.streaming.decoder_processes
    with decoding(default_number() if chosen is None else chosen, settings, form) as processes:
        for lines in replay_as(form, binlog, settings, start, processes=processes):
            write_lines(file, lines.packed)
            number += lines.records
    return number


def _print_table(
    configuration: Configuration,
    settings: PipelineSettings,
    table: str,
    binlog: Path,
    first: str | None,
    last: str | None,
    stream: BinaryIO,
) -> int:
    """Write the records of one table as JSON lines; returns their number."""
    number = 0
    for lines in replay_table(LineForm(), configuration, settings, table, binlog, first, last):
        write_lines(stream.fileno(), lines.packed)
        number += lines.records
    return number


def _print_entries(found: Iterable[Entry], stream: BinaryIO) -> int:
    """Write Canal's entries as JSON lines; returns their number."""
    from rowtide.connector.delivery.sinks.json_lines import write_all  # noqa: PLC0415 - imports the HTTP sink, too

    number = 0
    for number, entry in enumerate(found, 1):
        write_all(stream, entry_line(entry, number, time.time_ns() // 1_000_000).encode("utf-8", "replace"))
    stream.flush()
    return number


def _batches(outputs: Iterable[Output]) -> Iterator[Batch]:
    """Return the outputs that are batches of messages. Schema history records are omitted."""
    return (output for output in outputs if isinstance(output, Batch) and output.messages)


def _send(configuration: Configuration, settings: PipelineSettings, binlog: Path, start: SourceOffset | None) -> int:
    """Deliver all messages to Kafka; returns their number."""
    from rowtide.connector.engine.wiring import replay_delivery  # noqa: PLC0415 - needs the Kafka client

    number, form = 0, RecordForm()
    store, delivery = replay_delivery(configuration)
    delivery.start()
    try:
        with decoding(configuration.streaming.decoder_processes or 0, settings, form) as processes:
            for outputs in replay_as(form, binlog, settings, start, processes=processes):
                for batch in _batches(outputs):
                    store.put([batch])
                    number += len(batch.messages)
    finally:
        delivery.stop()
    delivery.raise_failure()
    return number
