"""``rowtide replay``: records from binlog files on disk, to standard output or to Kafka."""

import json
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import click

from rowtide.cli.connector import loaded
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import connect, connection, history
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.replay import replay as replayed
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.offset import SourceOffset

_SERVER = frozenset(
    one.name for one in (connection.HOSTNAME, connection.USER, connection.PASSWORD, connection.SERVER_ID)
)
_KAFKA = frozenset({connect.BOOTSTRAP_SERVERS.name})
_HISTORY = frozenset({history.TOPIC.name, history.FILE_NAME.name})


class OffsetText(click.ParamType):
    """A source offset as JSON text."""

    name = "offset"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> SourceOffset:
        """Read it; one with a GTID set alone has no file."""
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
@click.argument("config", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--binlog",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    required=True,
    help="The folder of the binlog files, plain or .gz; all of them, in the order of their numbers.",
)
@click.option(
    "--start",
    type=OffsetText(),
    help='Where records begin: {"file": "binlog.000003", "pos": 157}, or {"gtids": "…"} for all transactions that are '
    "not in the set. Events before it only build the structure of the tables. By default the first event.",
)
@click.option(
    "--output",
    type=click.Choice(["-", "kafka"]),
    default="-",
    show_default=True,
    help="Standard output, a JSON object a line with topic, key, value and headers; or the Kafka of the configuration.",
)
def replay(config: str, *, binlog: Path, start: SourceOffset | None, output: str) -> None:
    """Make records of binlog files on disk, without a server.

    Reads the configuration file CONFIG as 'rowtide run' does. The files must hold the statements that made the tables:
    begin with the first file after the server was set up, or with a dump that was loaded into an empty server. Neither
    the connector's stored position nor its schema history is read or changed.
    """
    unneeded = _SERVER | _HISTORY | (_KAFKA if output == "-" else frozenset())
    configuration = loaded(config, unneeded)
    begin = time.monotonic()
    try:
        outputs = replayed(binlog, pipeline_settings(configuration, run_id()), start)
        done = _print(outputs, sys.stdout.buffer) if output == "-" else _send(outputs, configuration)
    except ConnectorError as error:
        raise click.ClickException(str(error)) from None
    click.echo(f"{done} records in {time.monotonic() - begin:.1f} s", err=True)


def _print(outputs: Iterable[Output], stream: BinaryIO) -> int:
    number = 0
    for batch in _batches(outputs):
        stream.write("".join(_lines(batch)).encode())
        number += len(batch.messages)
    stream.flush()
    return number


def _batches(outputs: Iterable[Output]) -> Iterator[Batch]:
    """Those with messages; the schema history is the connector's own."""
    return (output for output in outputs if isinstance(output, Batch) and output.messages)


def _lines(batch: Batch) -> Iterator[str]:
    for key, value, headers in batch.messages:
        fields = {
            "topic": batch.topic,
            "key": None if key is None else key.decode(),
            "value": None if value is None else value.decode(),
            "headers": [[name, None if text is None else text.decode()] for name, text in headers],
        }
        yield json.dumps(fields, ensure_ascii=False, separators=(",", ":")) + "\n"


def _send(outputs: Iterable[Output], configuration: Configuration) -> int:
    from rowtide.connector.engine.wiring import replay_delivery  # noqa: PLC0415 - opens connections, and needs Kafka's client

    number = 0
    store, delivery = replay_delivery(configuration)
    delivery.start()
    try:
        for batch in _batches(outputs):
            store.put([batch])
            number += len(batch.messages)
    finally:
        delivery.stop()
    delivery.raise_failure()
    return number
