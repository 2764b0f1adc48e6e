"""``rowtide tables``: updates Spark tables from the topics of a connector."""

import contextlib
import json
import os
import re
import signal
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

import click
from rich.console import Console
from rich.markup import escape

from rowtide.cli.option_types import HOST, SERVERS, URL
from rowtide.cli.tables_job import Check, JobFile, PatternOptions, json_schema, read_job
from rowtide.cli.tables_upkeep import duration, is_only_upkeep, keep, upkeep_of
from rowtide.connector.config import ConfigurationError, load, read_properties
from rowtide.connector.config.catalogue.values import placeholder_bytes
from rowtide.spark_consumers.columns.metadata import MetadataField, metadata_fields
from rowtide.spark_consumers.columns.unavailable import DEFAULT_PLACEHOLDER
from rowtide.spark_consumers.errors import SettingsError, TablesError
from rowtide.spark_consumers.kafka.addresses import require_listener
from rowtide.spark_consumers.partitioning import Expression, expression, require_supported
from rowtide.spark_consumers.settings import (
    ChangeKind,
    ChangePolicy,
    Keyless,
    Layout,
    SchemaChange,
    Settings,
    StructuresOf,
    TableRule,
    is_part,
)
from rowtide.topics.java_regex import compile_java

if TYPE_CHECKING:
    from rowtide.cli.registries import RetryingRegistry

_CLIENT = ("security.", "sasl.", "ssl.")
_DECIMALS = "value.converter.decimal.format"
_PLACEHOLDER = "unavailable.value.placeholder"
_MINIMAL = "binlog.row.image.minimal.allowed"
_UNNEEDED = frozenset({"database.hostname", "database.user", "database.password", "database.server.id"})
_CLAIM_CHECKS = "rowtide.large.records.claim.check.url"
_NAMES = ("bootstrap.servers", "topic.prefix", _DECIMALS, _PLACEHOLDER, _MINIMAL, _CLAIM_CHECKS)


def _read_job(context: click.Context, _option: click.Parameter, path: Path | None) -> JobFile | None:
    """Use the options of a file as defaults for those on the command line."""
    if path is None:
        return None
    try:
        job = read_job(path, context.command, _CHECKS)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    context.default_map = {**(context.default_map or {}), **job.given}
    return job


def _print_schema(context: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted:
        click.echo(json.dumps(json_schema(context.command), indent=2))
        context.exit()


@click.command("tables", short_help="Update Spark tables from the topics.")
@click.option(
    "--job",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    is_eager=True,
    callback=_read_job,
    help="A YAML file with these options by their names, and with options of single tables. An option on the command "
    "line takes precedence.",
)
@click.option(
    "--job-schema",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_schema,
    help="Print the JSON schema of --job, and exit.",
)
@click.option("--bootstrap-servers", type=SERVERS, metavar="HOST:PORT,...", help="Addresses of Kafka brokers.")
@click.option(
    "--topic-prefix", metavar="PREFIX", help="topic.prefix of the connector: the topics of all its tables are read."
)
@click.option("--topics", metavar="REGEX", help="Read only topics whose full name matches.")
@click.option(
    "--config",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False),
    help="The connector's configuration (.properties, .json, .yaml), for the addresses of Kafka and the prefix; "
    "repeat it for several files.",
)
@click.option(
    "--output",
    metavar="PATH",
    help="Directory of the tables: a path, or an hdfs:// or s3a:// URL. Not required with --catalog and --state.",
)
@click.option(
    "--format",
    "table_format",
    type=click.Choice(["delta", "iceberg", "parquet"]),
    default="delta",
    show_default=True,
    help="Format of the tables. Parquet has no transactions: each run rewrites the tables that changed.",
)
@click.option(
    "--catalog",
    metavar="NAME",
    help="With --format iceberg: the catalog of the tables, NAME.DATABASE.TABLE. Spark's properties describe it "
    "(--spark-conf spark.sql.catalog.NAME...).  [default: directories of the output]",
)
@click.option(
    "--table-property",
    "table_properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of new tables in Delta Lake or Iceberg, such as write.merge.mode=copy-on-write. Repeatable.",
)
@click.option(
    "--partition-by",
    multiple=True,
    metavar="COLUMN",
    help="What new tables are partitioned by: a column, or in Iceberg also years, months, days or hours(column), "
    "bucket(16, column) or truncate(10, column). Repeatable.",
)
@click.option(
    "--cluster-by",
    multiple=True,
    metavar="COLUMN",
    help="What new tables are clustered by: columns in Delta Lake (liquid clustering); the sort order in Iceberg, also "
    "with the functions of --partition-by. Repeatable.",
)
@click.option(
    "--where",
    metavar="SQL",
    help="Which rows tables have: a condition in Spark SQL on the columns of a row, such as region = 'eu'. A row that "
    "no longer matches after a change is removed.",
)
@click.option(
    "--columns",
    multiple=True,
    metavar="COLUMN,...",
    help="Which columns of MySQL tables have; all columns of the key must be among them. Repeatable.",
)
@click.option(
    "--compute",
    multiple=True,
    metavar="NAME=VALUE",
    help="A column that tables have in addition, and its expression in Spark SQL on the columns of a row, such as "
    "total_eur='total * 1.1'. It may use columns that --columns does not name. Repeatable.",
)
@click.option("--state", metavar="PATH", help="Directory of the consumed offsets.  [default: OUTPUT/_rowtide]")
@click.option(
    "--keyless",
    type=click.Choice([str(choice) for choice in Keyless]),
    default=str(Keyless.APPLY),
    show_default=True,
    help="Tables without a key: apply changes to rows that equal the before image, or append each change as a row.",
)
@click.option(
    "--append",
    is_flag=True,
    help="Append each change of every table as a row, with its operation, time and place in the binlog.",
)
@click.option(
    "--soft-delete",
    is_flag=True,
    help="Keep deleted rows, with __deleted = true. Tables without a key cannot have it: see --keyless append.",
)
@click.option(
    "--history",
    is_flag=True,
    help="Keep all versions of each row (SCD type 2), with the time and the place in the binlog of its begin and end. "
    "Tables without a key cannot have it: see --keyless append.",
)
@click.option(
    "--metadata",
    multiple=True,
    metavar="FIELD,...",
    help="Columns with fields of the last record of each row, such as op,source.ts_ms,gtid, with the names of "
    "Debezium's add.fields. Repeatable.",
)
@click.option(
    "--schema-change",
    type=click.Choice([str(choice) for choice in SchemaChange]),
    default=str(SchemaChange.EVOLVE),
    show_default=True,
    help="The effect of changes of structure: evolve the table; evolve it as far as types allow; evolve it without "
    "renaming or dropping a column; ignore them; or stop the table with an error.",
)
@click.option(
    "--include-changes",
    multiple=True,
    metavar="KIND",
    help="Kinds of changes that are not ignored: add.column, alter.column.type, drop.column, rename.column, "
    "truncate.table, or a part such as column. Repeatable.  [default: all but drop.column]",
)
@click.option("--exclude-changes", multiple=True, metavar="KIND", help="Kinds of changes that are ignored. Repeatable.")
@click.option(
    "--max-records", type=click.IntRange(min=1), help="Read at most this many records of a partition at a time."
)
@click.option(
    "--parallel", type=click.IntRange(min=1), default=2, show_default=True, help="Number of tables updated at a time."
)
@click.option(
    "--schemas",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Connect schemas for topics whose messages have none, as JSON: "
    '{"TOPIC": {"key": SCHEMA, "value": SCHEMA}}.  [default: from the schema history of --config]',
)
@click.option(
    "--registry",
    type=URL,
    metavar="URL",
    help="The schema registry of records in Avro and Protobuf.  [default: that of --config]",
)
@click.option("--numeric-decimals", is_flag=True, help="The connector's converter uses decimal.format=NUMERIC.")
@click.option(
    "--unavailable-placeholder",
    metavar="TEXT",
    help="unavailable.value.placeholder of the connector; hex:... for bytes.  [default: that of --config, else "
    "__debezium_unavailable_value]",
)
@click.option(
    "--claim-checks",
    metavar="URL",
    help="The folder of values that are too large for Kafka, as Spark names it.  [default: that of --config, with s3a: "
    "for s3:]",
)
@click.option(
    "--kafka-property",
    "kafka_properties",
    multiple=True,
    metavar="NAME=VALUE",
    help="A property of Kafka's Java client, such as security.protocol=SSL. Repeatable.",
)
@click.option("--follow", is_flag=True, help="Keep the tables up to date until the command is stopped.")
@click.option(
    "--trigger",
    metavar="DURATION",
    help="With --follow: the time between the starts of two micro-batches, as Spark names it; a longer one is followed "
    "by the next immediately.  [default: 10 seconds]",
)
@click.option(
    "--available-now",
    is_flag=True,
    help="Apply the records that the topics have at the start, in micro-batches as with --follow, and exit.",
)
@click.option(
    "--web-port", type=click.IntRange(0, 65535), help="With --follow: serve /metrics and /health; 0 chooses a port."
)
@click.option(
    "--web-bind",
    type=HOST,
    metavar="ADDRESS",
    default="127.0.0.1",
    show_default=True,
    help="The address of --web-port.",
)
@click.option(
    "--optimize",
    is_flag=True,
    help="Merge small files and deleted rows: OPTIMIZE of Delta Lake, rewrite_data_files of Iceberg. With this option "
    "and the next two, no records are applied, unless there is --follow or --available-now.",
)
@click.option(
    "--vacuum",
    metavar="AGE",
    help="Delete files that no version of a table needs and that are older than this, such as 7d: VACUUM of Delta "
    "Lake, remove_orphan_files of Iceberg.",
)
@click.option(
    "--expire",
    metavar="AGE",
    help="Forget versions of tables that are older than this, such as 30d: commits of Delta Lake's log, snapshots of "
    "Iceberg.",
)
@click.option(
    "--upkeep-every",
    metavar="INTERVAL",
    help="With --follow: how often --optimize, --vacuum and --expire take care of a table that has changed: a "
    "duration, or a number of micro-batches.  [default: 100 batches]",
)
@click.option("--restart", multiple=True, metavar="DB.TABLE", help="Delete this table and rebuild it. Repeatable.")
@click.option(
    "--master", metavar="URL", help="URL of the Spark master.  [default: that of spark-submit, otherwise local[*]]"
)
@click.option(
    "--packages",
    metavar="COORDINATES",
    help="Maven coordinates of the Kafka, Avro, Delta and Iceberg jars, instead of the default ones.",
)
@click.option(
    "--jars",
    metavar="PATHS",
    envvar="ROWTIDE_SPARK_JARS",
    show_envvar=True,
    help="Kafka, Avro, Delta and Iceberg jars, separated by commas; nothing is downloaded then.",
)
@click.option("--spark-conf", "spark_conf", multiple=True, metavar="NAME=VALUE", help="A Spark property. Repeatable.")
@click.option("--verbose", is_flag=True, help="Show what Spark prints, such as downloads and warnings.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object for each table instead of a report.")
def tables(as_json: bool, restart: tuple[str, ...], **options: Any) -> None:
    """Update tables from the topics of a connector, once or, with --follow, continuously.

    Every topic of the connector becomes a table: OUTPUT/DATABASE/TABLE, or a table in a catalog. The first run builds
    the tables; each further run reads only the new records. Rows are inserted, updated and deleted by their
    key, and columns that were added in MySQL are added. Run it whenever the tables should be updated, by hand or from a
    scheduler, or let it follow the topics; SIGINT or SIGTERM then ends it after the micro-batch that is being applied.

    \b
    Examples:
      rowtide tables --config shop.properties --output /data/tables
      rowtide tables --bootstrap-servers localhost:9092 --topic-prefix shop --output s3a://lake/shop
      rowtide tables --config shop.properties --output /data/tables --follow --trigger "30 seconds"
      rowtide tables --config shop.properties --output /data/tables --format iceberg
      rowtide tables --config shop.properties --output /data/tables --optimize --vacuum 7d

    The consumed offsets are stored in OUTPUT/_rowtide. After an interruption, run the command again: no record is lost
    or applied twice. Only one run at a time can update a table; a second run reports an error for it.

    The exit code is 1 if a table could not be updated. All other tables are updated nevertheless.
    """  # noqa: D301 - a backspace is Click's mark of a paragraph that is not to be wrapped
    console = Console(stderr=as_json)
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        failed = _run(console, as_json, restart, options)
    except TablesError as error:
        raise click.ClickException(str(error)) from error
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    sys.exit(1 if failed else 0)


def _run(console: Console, as_json: bool, restart: tuple[str, ...], options: dict[str, Any]) -> bool:
    trigger = _trigger(options)
    only_upkeep = is_only_upkeep(options, restart)
    properties, settings = run_settings(options, needs_kafka=not only_upkeep)
    settings = replace(settings, registry=_registry(options["registry"] or "", options["config"]))
    # PySpark is an extra and slow to import, so wrong options are reported first.
    try:
        from rowtide.cli.tables_report import Bars, line, print_report  # noqa: PLC0415
        from rowtide.spark_consumers.job import TopicSelection, restart_tables, update_tables  # noqa: PLC0415
        from rowtide.spark_consumers.jvm.session import build_session  # noqa: PLC0415
        from rowtide.spark_consumers.kafka.source import KafkaSource  # noqa: PLC0415
        from rowtide.spark_consumers.upkeep import ScheduledUpkeep, keep_tables  # noqa: PLC0415

        upkeep, schedule = upkeep_of(options)
    except ModuleNotFoundError as error:
        raise SettingsError(f"{error.name} is missing: pip install 'rowtide[spark]'") from error
    # The report has a line for each table; Spark's progress bar would overwrite it.
    spark_settings = {"spark.ui.showConsoleProgress": "false", **_pairs("--spark-conf", options["spark_conf"])}
    if not only_upkeep:
        require_listener(properties["bootstrap.servers"])
    signal.signal(signal.SIGINT, _interrupted)
    with spark_output(shown=options["verbose"]) as output, console.status("starting Spark"):
        spark = build_session(
            delta=settings.format == "delta",
            iceberg=settings.format == "iceberg",
            avro=settings.registry is not None,
            master=options["master"],
            jars=options["jars"],
            packages=options["packages"],
            settings=spark_settings,
            output=output,
        )
    signal.signal(signal.SIGINT, _interrupted)  # PySpark's handler would call Spark in the middle of another call
    spark.sparkContext.setLogLevel("ERROR")
    if only_upkeep:
        return keep(console, keep_tables(spark, settings, upkeep, options["topics"]), as_json=as_json)
    source = KafkaSource(spark, properties, headers=settings.registry is not None)
    for text in TopicSelection(spark, source, settings, options["topics"]).unused_rules():
        console.print(f"[yellow]warning[/yellow]  {escape(text)}", soft_wrap=True, highlight=False)
    restart_tables(spark, source, settings, restart, options["topics"])
    if trigger is not None:
        from rowtide.cli.tables_follow import follow  # noqa: PLC0415 - imports PySpark

        address = None if options["web_port"] is None else (options["web_bind"], options["web_port"])
        kept = partial(ScheduledUpkeep, spark, settings, upkeep, schedule) if upkeep else None
        return follow(
            console, spark, source, settings, options["topics"], trigger, address, as_json=as_json, upkeep=kept
        )
    outcomes = []
    with Bars(console) as bars:
        for outcome in update_tables(spark, source, settings, options["topics"], bars.show):
            outcomes.append(outcome)
            bars.remove(outcome.name)
            if as_json:
                click.echo(json.dumps(outcome.as_dict(), ensure_ascii=False))
            else:
                console.print(line(outcome), highlight=False)
    if not as_json:
        print_report(console, sorted(outcomes, key=lambda outcome: str(outcome.name)))
    return any(outcome.error for outcome in outcomes)


def _trigger(options: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the arguments of Spark's trigger; ``None`` for a single run.

    Raises:
        SettingsError: options contradict each other.
    """
    follow, once, interval = options["follow"], options["available_now"], options["trigger"]
    if follow and once:
        raise SettingsError("--follow and --available-now: choose one of them")
    for name in ("trigger", "web_port"):
        if options[name] is not None and not follow:
            raise SettingsError(f"--{name.replace('_', '-')} needs --follow")
    if once:
        return {"availableNow": True}
    if not follow:
        return None
    try:
        return _interval("10 seconds" if interval is None else interval)
    except ValueError as error:
        raise SettingsError(f"--trigger {error}") from error


def _interval(given: str) -> Mapping[str, Any]:
    """Return the arguments of Spark's trigger for the time between two micro-batches.

    Raises:
        ValueError: it is not a duration.
    """
    text = given.strip()
    found = re.fullmatch(r"(\d+) *(ms|milliseconds?|s|seconds?|m|min|minutes?|h|hours?)?", text)
    if found is None:
        raise ValueError(f"{given}: expected a duration such as 30s, '30 seconds' or '5 minutes'")
    unit = found[2] or "s"
    names = {"s": "seconds", "m": "minutes", "h": "hours"}
    name = "milliseconds" if unit.startswith(("ms", "mil")) else names[unit[0]]
    return {"processingTime": f"{found[1]} {name}"}


@contextlib.contextmanager
def spark_output(*, shown: bool) -> Iterator[IO[bytes] | None]:
    """Yield a file for Spark's output, which is shown if Spark does not start.

    ``None`` to show all output immediately.
    """
    if shown:
        yield None
        return
    with tempfile.TemporaryFile() as output:  # Spark's process keeps it open
        try:
            yield output
        except Exception:
            output.seek(0)
            click.echo(output.read(), err=True, nl=False)
            raise


def _interrupted(_number: int, _frame: object) -> NoReturn:
    """Handle Ctrl-C: exit immediately and end Spark. The next run repeats the unfinished tables."""
    os.write(2, b"\nInterrupted. Run the command again: no record is lost or applied twice.\n")
    os._exit(130)


def run_settings(options: dict[str, Any], *, needs_kafka: bool = True) -> tuple[dict[str, str], Settings]:
    """Return the properties of the Kafka client and the settings of the run.

    Raises:
        SettingsError: an option or the configuration is wrong, or a required setting is missing.
    """
    given = _pairs("--kafka-property", options["kafka_properties"])
    if options["bootstrap_servers"]:
        given["bootstrap.servers"] = options["bootstrap_servers"]
    if options["topic_prefix"]:
        given["topic.prefix"] = options["topic_prefix"]
    properties = {**(_configured(options["config"], given) if options["config"] else {}), **given}
    prefix = properties.pop("topic.prefix", None)
    numeric = properties.pop(_DECIMALS, "").upper() == "NUMERIC"
    folder = re.sub("^s3:", "s3a:", properties.pop(_CLAIM_CHECKS, ""))
    configured = properties.pop(_PLACEHOLDER, None)
    placeholder = options["unavailable_placeholder"] or configured
    if properties.pop(_MINIMAL, "").strip().lower() == "true":
        raise SettingsError(
            f"{_MINIMAL}=true in --config: numbers and dates that the binlog did not have are null in the records, as "
            f"true nulls are, so tables would get wrong values. Use binlog_row_image=FULL and remove the property; if "
            f"the topics have rows from before that, take a new snapshot"
        )
    if needs_kafka and "bootstrap.servers" not in properties:
        raise SettingsError(
            "no Kafka brokers: set --bootstrap-servers, or --config with a file that has bootstrap.servers"
        )
    if options["output"] is None and (options["catalog"] is None or options["state"] is None):
        raise SettingsError("no directory for tables: set --output, or --catalog and --state")
    if prefix is None and options["topics"] is None:
        raise SettingsError("no topics: set --topic-prefix or --topics, or --config with a file that has topic.prefix")
    return properties, Settings(
        output=options["output"] or "",
        state=options["state"] or options["output"].rstrip("/") + "/_rowtide",
        prefix=prefix,
        format=options["table_format"],
        numeric_decimals=options["numeric_decimals"] or numeric,
        schemas=_schemas(options["schemas"], options["config"]),
        unavailable_placeholder=DEFAULT_PLACEHOLDER if placeholder is None else _bytes(placeholder),
        parallel=options["parallel"],
        claim_checks=options["claim_checks"] or folder or None,
        catalog=options["catalog"],
        structures=_structures(options["config"]),
        rules=[] if options["job"] is None else [_rule(options, one) for one in options["job"].tables],
        **_of_tables(options),
    )


def _of_tables(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that single tables can override.

    Raises:
        SettingsError: an option is wrong.
    """
    return {
        "keyless": Keyless(options["keyless"]),
        "max_records": options["max_records"],
        "table_properties": _pairs("--table-property", options["table_properties"]),
        "changes": _changes(options["schema_change"], options["include_changes"], options["exclude_changes"]),
        "metadata": _metadata(options["metadata"]),
        "layout": _layout(options),
        "where": _where(options["where"]),
        "columns": _columns(options["columns"]),
        "computed": _computed(options["compute"]),
        **_partitioning(options),
    }


def _where(text: str | None) -> str | None:
    """Return the condition of the rows that tables have.

    Raises:
        SettingsError: there is none in the text.
    """
    try:
        return None if text is None else _condition(text)
    except SettingsError as error:
        raise SettingsError(f"--where: {error}") from error


def _condition(text: str) -> str:
    if not text.strip():
        raise SettingsError("a condition in Spark SQL is missing, such as region = 'eu'")
    return text.strip()


def _columns(given: Sequence[str]) -> list[str]:
    """Return the columns that tables have, none for all.

    Raises:
        SettingsError: a name is missing.
    """
    try:
        return [name for text in given for name in _column_names(text)]
    except SettingsError as error:
        raise SettingsError(f"--columns: {error}") from error


def _computed(given: Sequence[str]) -> dict[str, str]:
    """Return the expressions of computed columns.

    Raises:
        SettingsError: a name or an expression is missing, or two columns have the same name.
    """
    found = {name.strip(): sql.strip() for name, sql in _pairs("--compute", given).items()}
    if not all(name and sql for name, sql in found.items()):
        raise SettingsError("--compute: a name or an expression is missing, as in total_eur='total * 1.1'")
    if len({name.lower() for name in found}) < len(given):
        raise SettingsError(f"--compute: two columns have the same name: {', '.join(given)}")
    return found


def _column_names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise SettingsError("the name of a column is missing")
    return names


def _partitioning(options: Mapping[str, Any]) -> dict[str, Sequence[Expression]]:
    """Return the expressions by which new tables are partitioned and clustered.

    Raises:
        SettingsError: an expression is wrong, or the format does not support it.
    """
    found: dict[str, Sequence[Expression]] = {}
    for name in ("partition_by", "cluster_by"):
        try:
            found[name] = [expression(text) for text in options[name]]
        except ValueError as error:
            raise SettingsError(f"--{name.replace('_', '-')} {error}") from error
    require_supported(options["table_format"], **found)
    return found


def _rule(options: Mapping[str, Any], own: PatternOptions) -> TableRule:
    """Return the settings of the tables with separate options.

    Raises:
        SettingsError: options contradict each other.
    """
    names = [layout.replace("-", "_") for layout in Layout]
    others = dict.fromkeys(names, False) if any(name in own.given for name in names) else {}
    properties = (*options["table_properties"], *own.given.get("table_properties", ()))
    try:
        found = _of_tables({**options, **others, **own.given, "table_properties": properties})
    except SettingsError as error:
        raise SettingsError(f"--job {options['job'].path}, line {own.line}: {error}") from error
    return TableRule(own.pattern, found, own.into, own.shard_column)


def _layout(options: Mapping[str, Any]) -> Layout:
    """Return the layout of the rows of tables.

    Raises:
        SettingsError: options contradict each other.
    """
    given = [layout for layout in Layout if options.get(layout.replace("-", "_"))]
    if len(given) > 1:
        raise SettingsError(f"{' and '.join(f'--{layout}' for layout in given)}: choose one of them")
    return given[0] if given else Layout.ROWS


def _metadata(given: Sequence[str]) -> Sequence[MetadataField]:
    """Return the fields of records that tables have as columns.

    Raises:
        SettingsError: a field is unknown.
    """
    try:
        return metadata_fields(name.strip() for names in given for name in names.split(","))
    except ValueError as error:
        raise SettingsError(f"--metadata: {error}") from error


def _changes(behavior: str, include: Sequence[str], exclude: Sequence[str]) -> ChangePolicy:
    """Return the handling of structure changes.

    Raises:
        SettingsError: a kind is unknown, or columns cannot be dropped.
    """
    for option, names in (("--include-changes", include), ("--exclude-changes", exclude)):
        for name in names:
            try:
                _require_kind(name)
            except SettingsError as error:
                raise SettingsError(f"{option} {error}") from error
    policy = ChangePolicy(SchemaChange(behavior), tuple(include), tuple(exclude))
    if policy.applies(ChangeKind.DROP_COLUMN) and not policy.applies(ChangeKind.RENAME_COLUMN):
        raise SettingsError("drop.column needs rename.column: a column that was renamed must not be dropped")
    return policy


def _require_kind(name: str) -> None:
    if not any(is_part(kind, [name]) for kind in ChangeKind):
        raise SettingsError(f"{name}: unknown kind; there are {', '.join(ChangeKind)}, and their parts")


def _structures(config: Sequence[str]) -> StructuresOf | None:
    """Return the schema history of a connector's configuration, which is read when the columns of a table change."""
    if not config:
        return None

    def read(topic: str) -> Sequence[Mapping[str, int]]:
        from rowtide.cli.table_structures import HistoryStructures  # noqa: PLC0415 - slow to import

        return HistoryStructures(config)(topic)

    return read


def _registry(url: str, config: Sequence[str]) -> "RetryingRegistry | None":
    """Return the schema registry of an option or of a connector's configuration; ``None`` if records have none.

    Raises:
        SettingsError: the configuration is wrong.
    """
    try:
        if not url and not (config and any(name.endswith("registry.url") for name in read_properties(config)[0])):
            return None
        from rowtide.cli.registries import RetryingRegistry, registry_of, registry_source  # noqa: PLC0415 - the extra avro

        found = None if url else registry_of(load(config, not_required=_UNNEEDED))
        if not url and found is None:
            return None
        urls = (url,) if found is None else found.urls
        return RetryingRegistry(registry_source(url, found), ", ".join(one.rpartition("@")[2] for one in urls))
    except ConfigurationError as error:
        raise SettingsError(str(error)) from error
    except ModuleNotFoundError as error:
        raise SettingsError(f"{error.name} is missing: pip install 'rowtide[avro]'") from error


def _bytes(placeholder: str) -> bytes:
    """Return the bytes of ``unavailable.value.placeholder``."""
    try:
        return placeholder_bytes(placeholder)
    except ValueError as error:
        raise SettingsError(f"{_PLACEHOLDER}={placeholder}: expected hexadecimal digits after hex:") from error


def _configured(paths: Sequence[str], given: Collection[str]) -> dict[str, str]:
    """Return the Kafka client properties and the topic prefix of a connector's configuration.

    Args:
        paths: the configuration files.
        given: names of properties that are set by options, whose references need not be resolved.

    Raises:
        SettingsError: the file cannot be read, or a reference in a value cannot be resolved.
    """
    try:
        properties, problems = read_properties(paths)
    except ConfigurationError as error:
        raise SettingsError(str(error)) from error
    found = {name: value for name, value in properties.items() if name.startswith(_CLIENT) or name in _NAMES}
    for name, message in problems:
        if name in found and name not in given:
            raise SettingsError(f"{paths[-1]}: {name}: {message}. Set it with --kafka-property {name}=...")
    return found


def _schemas(path: Path | None, config: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
    """Return the schemas of topics whose messages have none: from a file, otherwise from the schema history."""
    if path is None:
        if not config:
            return {}
        from rowtide.cli.table_schemas import HistorySchemas  # noqa: PLC0415 - slow to import

        return HistorySchemas(config)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise SettingsError(f"{path} is not JSON: {error}") from error
    if not isinstance(content, dict):
        raise SettingsError(f"{path} is not a JSON object whose names are topics")
    for topic, schemas in content.items():
        if not isinstance(schemas, dict) or not all(isinstance(schema, dict) for schema in schemas.values()):
            raise SettingsError(f'{path}: {topic} needs a JSON object {{"key": SCHEMA, "value": SCHEMA}}')
    return content


def _pairs(option: str, values: Sequence[str]) -> dict[str, str]:
    pairs = {}
    for value in values:
        name, equals, text = value.partition("=")
        if not equals:
            raise SettingsError(f"{option} {value}: expected NAME=VALUE")
        pairs[name] = text
    return pairs


_CHECKS: Mapping[str, Check] = {
    "topics": compile_java,
    "metadata": lambda text: metadata_fields(name.strip() for name in text.split(",")),
    "include_changes": _require_kind,
    "exclude_changes": _require_kind,
    "trigger": _interval,
    "vacuum": lambda text: duration("", text, "7d or 168h"),
    "expire": lambda text: duration("", text, "7d or 168h"),
    "unavailable_placeholder": _bytes,
    "partition_by": expression,
    "cluster_by": expression,
    "where": _condition,
    "columns": _column_names,
}
"""What the values of options in a file must be."""
