"""``rowtide verify``: proves that the source and the topics of a connector have the same rows."""

import json
import os
import re
import signal
import traceback
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn, TextIO

import click

from rowtide.cli.connectors import (
    CONFIG,
    from_options,
    ignore_unsupported_option,
    read_configuration,
    worker_options,
)
from rowtide.cli.connectors.signal import CHANNELS
from rowtide.cli.option_types import HOST, URL, FiniteRange
from rowtide.cli.tables import spark_output

if TYPE_CHECKING:
    from rowtide.verify.run import FindTable, Found

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_LONGEST = 366 * _UNITS["d"]
_HADOOP = "HADOOP_CONF_DIR", "YARN_CONF_DIR", "SPARK_CONF_DIR"
"""With one of these, a path without a scheme may be in another file system."""
_INTERRUPTED = 130
_TERMINATED = 143


class _Interval(click.ParamType):
    """A time such as ``6h``, in seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse the time."""
        match = re.fullmatch(r"([1-9]\d{0,6})([smhd])", str(value))
        if match is None:
            self.fail(f"{value!r} is not a time: write 30m, 6h or 1d", param, ctx)
        seconds = int(match[1]) * _UNITS[match[2]]
        if seconds > _LONGEST:
            self.fail(f"{value} is more than a year", param, ctx)
        return seconds


@click.command()
@click.option(
    "--config",
    "-c",
    metavar="FILE",
    multiple=True,
    required=True,
    type=CONFIG,
    help="The configuration of the connector; repeat it for files that override those before.",
)
@click.option("--topics", is_flag=True, help="Compare the source with the Kafka topics.")
@click.option(
    "--tables",
    "output",
    metavar="DIR",
    help="Compare the Kafka topics with the Spark tables in this directory (rowtide tables --output), too.",
)
@click.option(
    "--against",
    metavar="FILE",
    multiple=True,
    type=CONFIG,
    help="Compare the source with the server of this configuration, such as a replica; repeat it like --config.",
)
@click.option(
    "--format",
    "table_format",
    type=click.Choice(["iceberg"]),
    help="With --tables: the tables are in Iceberg. Other formats are recognized by their files.",
)
@click.option("--catalog", metavar="NAME", help="With --format iceberg: the catalog of the tables (rowtide tables).")
@click.option("--state", metavar="PATH", help="Directory of the offsets of --tables.  [default: DIR/_rowtide]")
@click.option("--master", metavar="URL", help="URL of the Spark master for --tables.  [default: local[*]]")
@click.option("--packages", metavar="COORDINATES", help="Maven coordinates of the jars, instead of the default ones.")
@click.option(
    "--jars",
    metavar="PATHS",
    envvar="ROWTIDE_SPARK_JARS",
    show_envvar=True,
    help="Kafka and Delta jars, separated by commas; nothing is downloaded then.",
)
@click.option("--spark-conf", "spark_conf", multiple=True, metavar="NAME=VALUE", help="A Spark property. Repeatable.")
@click.option("--repair", is_flag=True, help="Let the connector send differing rows again, and compare them again.")
@click.option("--dry-run", is_flag=True, help="With --repair: show the signals that would be sent.")
@click.option(
    "--channel",
    type=click.Choice(CHANNELS),
    help="With --repair: how signals are sent.  [default: the first enabled one of source, kafka and file, otherwise "
    "http]",
)
@worker_options
@click.option("--table", "tables", metavar="DATABASE.TABLE", multiple=True, help="Only this table; repeat it for more.")
@click.option("--where", metavar="SQL", default="", help="Only rows of the source that match this condition.")
@click.option("--columns", metavar="A,B", default="", help="Only these columns, besides the key.")
@click.option(
    "--sample",
    metavar="PERCENT",
    type=FiniteRange(0, 100, min_open=True),
    default=100.0,
    help="Compare only this part of each table, in randomly chosen chunks.",
)
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=FiniteRange(0),
    default=300.0,
    show_default=True,
    help="How long to wait for the connector to deliver what the source has.",
)
@click.option(
    "--max-differences",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Stop comparing a table after this many differences.",
)
@click.option(
    "--max-load",
    metavar="PERCENT",
    type=FiniteRange(0, 100, min_open=True),
    default=100.0,
    show_default=True,
    help="The part of the time in which chunks are read from the server, with pauses between them.",
)
@click.option(
    "--parallel",
    metavar="N",
    type=click.IntRange(1, 64),
    default=1,
    show_default=True,
    help="How many tables are compared at the same time, each with its own connections.",
)
@click.option(
    "--resume",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False, writable=True),
    help="Keep the rows of unfinished tables in this directory, so that a run continues with the chunk at which the "
    "previous one was killed.",
)
@click.option("--every", metavar="TIME", type=_Interval(), help="Verify repeatedly, at this interval, such as 6h.")
@click.option(
    "--proofs",
    metavar="FILE",
    type=click.Path(dir_okay=False),
    help="With --every: the file that keeps the last proof of each table.",
)
@click.option(
    "--web-port", type=click.IntRange(0, 65535), help="With --every: serve /metrics and /health; 0 chooses a port."
)
@click.option(
    "--web-bind",
    type=HOST,
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address of --web-port.",
)
@click.option("--limit", "-n", type=click.IntRange(0), default=20, show_default=True, help="Differences to show.")
@click.option("--registry", type=URL, metavar="URL", help="The schema registry; by default that of the configuration.")
@click.option(
    "--temp",
    metavar="DIR",
    type=click.Path(exists=True, file_okay=False),
    help="Where to keep the rows of the table that is compared: about twice its size.  [default: TMPDIR]",
)
@ignore_unsupported_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def verify(
    config: tuple[str, ...],
    *,
    topics: bool,
    output: str | None,
    against: tuple[str, ...],
    tables: tuple[str, ...],
    where: str,
    columns: str,
    sample: float,
    timeout: float,
    max_differences: int,
    limit: int,
    registry: str | None,
    temp: str | None,
    ignore_unsupported: bool,
    as_json: bool,
    repair: bool,
    dry_run: bool,
    channel: str | None,
    web: str | None,
    web_token_file: TextIO | None,
    max_load: float,
    parallel: int,
    resume: str | None,
    every: int | None,
    proofs: str | None,
    web_port: int | None,
    web_bind: str,
    **spark: Any,
) -> None:
    """Prove that the source, the topics of a connector and the Spark tables have the same rows, while all of them run.

    Reads each captured table in chunks, and its topic from the beginning. A row that has changed in the meantime is
    read again until the topic has its current state. Differences are shown with the rows of both sides and the last
    records of the key. With --tables, each Spark table is then compared with its topic, up to the offsets that are
    stored with it. Nothing is changed on the server, in Kafka or in the tables.

    With --against, the tables of two servers are compared instead, even while one replicates the other.

    With --repair, the running connector gets signals to read the differing rows again: it sends the rows that the
    source has, and deletes the others from the topic. The rows are then compared again.

    The exit code is 0 if all tables are equal (with --repair, in the end), 1 if one is different, and 2 if no
    difference was found but a table could not be decided, or if nothing can be repaired.

    With --every, it runs until SIGINT or SIGTERM, and then has the exit code 0. A round that fails is reported, and the
    next one begins as scheduled. Only a configuration with which no round can succeed ends the command, with exit code
    2.

    \b
    Examples:
      rowtide verify --config shop.properties --topics
      rowtide verify --config shop.properties --topics --table shop.orders --where "id > 1000"
      rowtide verify --config shop.properties --tables /data/tables
      rowtide verify --config shop.properties --against replica.properties
      rowtide verify --config shop.properties --topics --repair --dry-run
      rowtide verify --config shop.properties --topics --every 6h --proofs shop.proofs --web-port 9464
    """  # noqa: D301 - Click's mark of a paragraph
    if not topics and output is None and not against:
        raise click.UsageError("say what to compare with the source: --topics, --tables DIR or --against FILE")
    if against and (topics or output is not None or repair or every is not None or resume is not None):
        raise click.UsageError("--against stands alone: omit --topics, --tables, --repair, --every and --resume")
    if spark["catalog"] is not None and spark["table_format"] is None:
        raise click.UsageError("--catalog needs --format iceberg")
    if where and len(tables) != 1:
        raise click.UsageError("--where is a condition for one table: add --table")
    if not repair and (dry_run or channel or web or web_token_file):
        raise click.UsageError("--dry-run, --channel, --web and --web-token-file need --repair")
    if every is None and (proofs is not None or web_port is not None):
        raise click.UsageError("--proofs and --web-port need --every")
    signal.signal(signal.SIGTERM, _terminated)
    try:
        _verify(
            config,
            tables,
            where=where,
            columns=columns,
            sample=sample / 100,
            timeout=timeout,
            most=max_differences,
            limit=limit,
            registry=registry,
            temp=temp,
            ignore_unsupported=ignore_unsupported,
            as_json=as_json,
            output=output,
            against=against,
            spark=spark,
            repair=(channel, web, web_token_file, dry_run) if repair else None,
            max_load=max_load / 100,
            parallel=parallel,
            resume=resume,
            every=None if every is None else (every, proofs, None if web_port is None else (web_bind, web_port)),
        )
    except click.ClickException as error:
        error.exit_code = 2
        raise
    except KeyboardInterrupt:
        raise SystemExit(_INTERRUPTED) from None
    except Exception as error:  # a scheduler must not take a defect for a difference
        traceback.print_exc()
        raise SystemExit(2) from error


def _terminated(_number: int, _frame: object) -> NoReturn:
    raise SystemExit(_TERMINATED)


def _verify(
    files: tuple[str, ...],
    tables: tuple[str, ...],
    *,
    where: str,
    columns: str,
    sample: float,
    timeout: float,
    most: int,
    limit: int,
    registry: str | None,
    temp: str | None,
    ignore_unsupported: bool,
    as_json: bool,
    output: str | None,
    against: tuple[str, ...],
    spark: Mapping[str, Any],
    repair: tuple[str | None, str | None, TextIO | None, bool] | None,
    max_load: float,
    parallel: int,
    resume: str | None,
    every: tuple[int, str | None, tuple[str, int] | None] | None,
) -> None:
    from pathlib import Path  # noqa: PLC0415 - what follows needs the extra

    from rowtide.cli.registries import registry_of, registry_source  # noqa: PLC0415
    from rowtide.decoder.decoder import Decoder  # noqa: PLC0415
    from rowtide.errors import ConnectorError  # noqa: PLC0415
    from rowtide.spark_consumers.errors import TablesError  # noqa: PLC0415
    from rowtide.verify.resume import StoredReadings  # noqa: PLC0415
    from rowtide.verify.run import exit_code, report_json, report_lines, spark_lines, summary, verified  # noqa: PLC0415
    from rowtide.verify.servers import FORM, compared  # noqa: PLC0415
    from rowtide.verify.verification import VerifyOptions  # noqa: PLC0415

    more = from_options(None, None, ignore_unsupported=ignore_unsupported)
    if against:
        more |= FORM
    configuration = read_configuration(files, more=more)
    other = read_configuration(against, more=more) if against else None
    known, prefix = registry_of(configuration), configuration.topics.prefix
    chosen = [name.strip() for name in columns.split(",") if name.strip()]
    options, folder = VerifyOptions(where, chosen, sample, most, timeout), Path(temp) if temp else None

    kept = None
    if resume is not None:
        run = {"--where": where, "--columns": sorted(chosen), "--sample": sample, "--config": configuration.fingerprint}
        kept = StoredReadings(Path(resume), configuration.name, run, None if every is None else every[0])

    worker = None
    if repair is not None:
        from rowtide.cli.connectors.verify_repair import repair_by_signals  # noqa: PLC0415 - by need
        from rowtide.cli.connectors.worker_client import WorkerClient  # noqa: PLC0415

        channel, web, token_file, dry_run = repair
        worker = WorkerClient.of(configuration.name, web, token_file)

    def all_found(done: Collection[str]) -> "Iterator[Found]":
        if other is not None:
            results = compared(configuration, other, decoder, options, tables, folder, load=max_load, parallel=parallel)
            return ((result, ()) for result in results)
        mending = None if worker is None else repair_by_signals(configuration, worker, channel, dry_run=dry_run)
        return verified(
            configuration,
            decoder,
            options,
            tables,
            folder,
            stored,
            mending,
            kept,
            load=max_load,
            done=done,
            parallel=parallel,
        )

    def once(done: Collection[str] = ()) -> "Iterator[Found]":
        for found in all_found(done):
            if not as_json:
                lines = [
                    *report_lines(found[0], limit),
                    *(line for one in found[1] for line in spark_lines(one, limit)),
                ]
                if repair is not None:
                    lines += [_rebuilt(one.topic, output, prefix) for one in found[1] if one.outcome == "different"]
                click.echo("\n".join(lines))
            yield found

    def show(results: "Sequence[Found]", error: str | None, following: float) -> None:
        if as_json:
            click.echo(json.dumps(report_json(results, error), ensure_ascii=False))
        else:
            click.echo("\n".join(filter(None, (summary(results), round_line(error, following)))))

    try:
        decoder = partial(
            Decoder,
            registry_source(registry or "", known) if registry or known else None,
            placeholder=configuration.values.unavailable_placeholder,
            claim_checks=configuration.delivery.large_records.claim_check_url,
        )
        stored = None if output is None else _tables_in(output, prefix, spark)
        if every is not None:
            from rowtide.cli.connectors.verify_every import (  # noqa: PLC0415 - by need
                Proofs,
                VerifySchedule,
                only_user,
                round_line,
            )

            interval, proofs, address = every
            path = None if proofs is None else Path(proofs)
            with only_user(path):
                VerifySchedule(Proofs(configuration.name, path), interval, show).run(once, address)
        results = list["Found"]()
        try:
            results.extend(once())
        except ConnectorError as error:
            if as_json and results:
                click.echo(json.dumps(report_json(results, str(error)), indent=2, ensure_ascii=False))
            raise
    except (ConnectorError, TablesError) as error:
        raise click.ClickException(str(error)) from None
    click.echo(json.dumps(report_json(results), indent=2, ensure_ascii=False) if as_json else summary(results))
    raise SystemExit(exit_code(results))


def _rebuilt(topic: str, output: str | None, prefix: str) -> str:
    """Return instructions to repair a Spark table that differs from its topic."""
    from rowtide.spark_consumers.kafka.naming import table_name  # noqa: PLC0415 - an extra

    name = table_name(topic, prefix)
    return f"    not repaired: rowtide tables --output {output} --restart {name} builds the table from its topic"


def _require_directory(path: str, spark_conf: Sequence[str]) -> None:
    """Refuse a directory of this machine that does not exist. Only Spark knows other file systems."""
    scheme, rest = path.split(":", 1) if ":" in path else ("", path)
    elsewhere = any(map(os.environ.get, _HADOOP)) or any("fs.defaultFS" in one for one in spark_conf)
    local = scheme == "file" or not (scheme or elsewhere)
    if local and not os.path.isdir(rest):  # noqa: PTH112 - after file: there can be several slashes
        raise click.UsageError(f"--tables: directory {path} does not exist. Give the --output of rowtide tables")


def _tables_in(output: str, prefix: str, options: Mapping[str, Any]) -> "FindTable":
    """Start Spark, and return the function that finds the table of a topic."""
    if options["catalog"] is None:
        _require_directory(output, options["spark_conf"])
    try:
        from rowtide.spark_consumers.jvm.session import build_session  # noqa: PLC0415 - an extra
        from rowtide.spark_consumers.stored_tables import stored_table  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise click.ClickException(f"{error.name} is missing: pip install 'rowtide[spark]'") from error
    pairs = {"spark.ui.showConsoleProgress": "false"}
    for given in options["spark_conf"]:
        name, equals, text = given.partition("=")
        if not equals:
            raise click.UsageError(f"--spark-conf {given}: expected NAME=VALUE")
        pairs[name] = text
    with spark_output(shown=False) as printed:
        spark = build_session(
            delta=True,
            iceberg=options["table_format"] == "iceberg",
            master=options["master"],
            jars=options["jars"],
            packages=options["packages"],
            settings=pairs,
            output=printed,
        )
    spark.sparkContext.setLogLevel("ERROR")
    state = options["state"] or output.rstrip("/") + "/_rowtide"
    iceberg, catalog = options["table_format"] == "iceberg", options["catalog"]
    return lambda topic: stored_table(spark, output, state, topic, prefix, iceberg=iceberg, catalog=catalog)
