"""Verifies the captured tables of a connector, and makes the report."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

import pymysql

from rowtide.connector.config import Configuration
from rowtide.connector.config.model import JsonConverterConfig, ProtobufConverterConfig
from rowtide.connector.engine.pipeline_settings import pipeline_settings, run_id
from rowtide.connector.engine.wiring import history_source, offset_store
from rowtide.connector.records.canonical import shown, shown_values
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.source.server_queries import DENIED
from rowtide.decoder.decoder import Decoder
from rowtide.errors import ConnectorError
from rowtide.schema_history.model import TableId
from rowtide.schema_history.queries.column_changes import ColumnChange
from rowtide.schema_history.store.topic_reader import TopicReader, TopicReadError
from rowtide.spark_consumers.errors import TablesError
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.verify.comparison import RowDifference
from rowtide.verify.errors import Undecided
from rowtide.verify.fold import Row
from rowtide.verify.old_forms import described as form_change
from rowtide.verify.pace import Pace
from rowtide.verify.parallel import in_parallel
from rowtide.verify.positions import RecordPlace, described
from rowtide.verify.progress import ConnectorProgress
from rowtide.verify.repair import RepairSignals
from rowtide.verify.resume import StoredReadings
from rowtide.verify.source import TableSource
from rowtide.verify.tables import StoredTable, TableComparison, TableDifference, TableResult
from rowtide.verify.texts import Key, Texts
from rowtide.verify.topic import Topic
from rowtide.verify.verification import Result, TableVerification, VerifyOptions

FindTable = Callable[[str], StoredTable]
"""Finds the Spark table of a topic; raises ``TablesError``."""

_KAFKA_S = 60.0
ERRORS = (ConnectorError, TopicReadError, pymysql.MySQLError, OSError, sqlite3.Error)
"""What leaves a table undecided, while the others are compared."""


def verified(
    config: Configuration,
    decoder: Callable[[], Decoder],
    options: VerifyOptions,
    tables: Sequence[str] = (),
    folder: Path | None = None,
    stored: FindTable | None = None,
    repair: RepairSignals | None = None,
    resume: StoredReadings | None = None,
    *,
    load: float = 1.0,
    done: Collection[str] = (),
    parallel: int = 1,
) -> Iterator[tuple[Result, Sequence[TableResult]]]:
    """Verify tables, and yield the results of each as soon as they are known: for its topics and their Spark tables.

    Args:
        config: the configuration of the connector.
        decoder: makes decoders of its records, one for each table that is verified at the same time.
        options: what to compare.
        tables: the names of the tables, ``database.table``; none for all that are captured.
        folder: the folder for files of rows; by default a temporary folder.
        stored: finds the Spark table of a topic; ``None`` to compare topics only.
        repair: sends signals that repair differences of topics; ``None`` to repair nothing.
        resume: keeps the rows of unfinished tables for the next run; ``None`` to keep none.
        load: the part of the time in which chunks are read from the server.
        done: the names of tables that need no verification.
        parallel: how many tables are verified at the same time, each with its own connections.

    Raises:
        Undecided: nothing can be compared.
        ConnectorError: the server cannot be reached.
    """
    skipped = sorted(config.capture.skipped_operations & {"c", "u", "d"})
    if skipped:
        raise Undecided(
            f"skipped.operations has {', '.join(skipped)}: the topics do not have all changes, and cannot be equal"
        )
    if config.delivery.sink != "kafka":
        raise Undecided(f"the connector's records do not go to Kafka (rowtide.sink={config.delivery.sink})")
    settings, chosen_converter = pipeline_settings(config, run_id()), config.converters.value
    without_types = isinstance(chosen_converter, JsonConverterConfig) and not chosen_converter.schemas_enable
    protobuf = isinstance(chosen_converter, ProtobufConverterConfig)
    if (without_types or protobuf) and not settings.canonical:
        form = "in Protobuf" if protobuf else "without value.converter.schemas.enable=true"
        raise Undecided(
            "with rowtide.values=debezium, a snapshot and the stream spell some values in two ways, "
            f"which only schemas distinguish: {form} they cannot be compared"
        )
    pace = Pace(load)
    source = TableSource(config, settings, pace)
    try:
        captured = source.captured()
        missing = missing_tables(captured, tables) or missing_tables(captured, listed_tables(config))
        chosen = [one for one in captured if (not tables or str(one) in tables) and str(one) not in done]
    finally:
        source.close()
    for name in missing:
        reason = "the server shows no such captured table: it does not exist, or the user lacks SELECT on it"
        yield Result(name, reason=reason), ()
    if not chosen and not missing and not done:
        raise Undecided("no table is captured: check table.include.list, and the user's SELECT privileges")
    names, turn = {(one.database, one.table) for one in captured}, Lock()
    with TemporaryDirectory(prefix="rowtide-verify-", dir=folder, ignore_cleanup_errors=True) as made:
        verifiers = [
            _Verifier(config, settings, pace, decoder(), options, Path(made), names, stored, turn, repair, resume)
            for _ in range(min(parallel, len(chosen)))
        ]
        yield from in_parallel(chosen, verifiers, _Verifier.verify, _Verifier.close)


class _Verifier:
    """Verifies tables one after the other, with its own connections.

    Args:
        config: the configuration of the connector.
        settings: its settings for records.
        pace: of reading, shared by all connections.
        decoder: decodes the records.
        options: what to compare.
        folder: where files of rows are.
        captured: the databases and names of all captured tables.
        stored: finds the Spark table of a topic, if those are compared.
        turn: held while a Spark table is compared, so that only one table's Spark rows are in memory.
        repair: sends signals that repair differences.
        resume: keeps the rows of unfinished tables.
    """

    def __init__(
        self,
        config: Configuration,
        settings: PipelineSettings,
        pace: Pace,
        decoder: Decoder,
        options: VerifyOptions,
        folder: Path,
        captured: Collection[tuple[str, str]],
        stored: FindTable | None,
        turn: Lock,
        repair: RepairSignals | None,
        resume: StoredReadings | None,
    ) -> None:
        self._config, self._settings, self._decoder, self._options = config, settings, decoder, options
        self._folder, self._stored, self._turn = folder, stored, turn
        self._repair, self._resume = repair, resume
        self._reader = TopicReader(config.kafka.consumer, config.kafka.admin, timeout=_KAFKA_S)
        self._progress = ConnectorProgress(config, offset_store(config), captured)
        self._connect = partial(TableSource, config, settings, pace)
        self._source: TableSource | None = None

    def close(self) -> None:
        """Close the connection to the server. A query that runs in another thread fails."""
        if self._source is not None:
            self._source.close()

    def _connected(self) -> TableSource:
        """Return the connection to the server, a new one after an error."""
        if self._source is None:
            self._source = self._connect()
        return self._source

    def verify(self, table: TableId) -> "Found":
        """Verify a table.

        Raises:
            ConnectorError: the server cannot be reached again after the error of an earlier table.
        """
        config, options, settings = self._config, self._options, self._settings
        source = self._connected()
        result, found, verification = Result(str(table)), list[TableResult](), None
        try:
            if (table.database, table.table) in config.snapshot.select_overrides and not options.where:
                raise Undecided(
                    "snapshot.select.statement.overrides has a query for it, so its topic may lack rows: give "
                    "its condition with --where"
                )
            structure = source.table(table)
            unknown = {*options.columns} - {one.name for one in structure.form.columns}
            if unknown:
                raise Undecided(f"it has no captured column {', '.join(sorted(unknown))}")
            verification = TableVerification(
                source,
                structure,
                self._decoder,
                lambda topics: Topic(topics, self._reader, self._decoder),
                self._progress,
                options,
                partial(_column_changes, config, table),
                exact=settings.canonical,
                two_forms=not settings.exact_values,
                repair=self._repair,
                resume=self._resume,
            )
            verification.result = result
            verification.run(self._folder)
        except ERRORS as error:
            result.outcome, result.reason = "undecided", reason_of(error)
            source.close()  # a result may not have been read to its end
            self._source = None
        if self._stored is not None and verification is not None:
            for topic in verification.topics:
                found.append(TableResult(topic))
                try:
                    _refuse_untyped(config)
                    verification.source = self._connected()
                    exact = settings.canonical or bool(structure.key_columns)
                    with self._turn:
                        TableComparison(
                            found[-1],
                            self._stored(topic),
                            Topic([topic], self._reader, self._decoder),
                            Texts(structure, options.columns, exact=exact),
                            options,
                            partial(_ambiguous_names, config, table),
                            partial(_cleanup_policy, config, topic),
                            exact=exact,
                        ).run(self._folder, None if options.complete else verification.chosen_keys())
                except (*ERRORS, TablesError) as error:
                    found[-1].outcome, found[-1].reason = "undecided", reason_of(error)
        return result, found


def _column_changes(config: Configuration, table: TableId) -> Mapping[str, ColumnChange]:
    with history_source(config) as source:
        return source.column_changes(table)


def _ambiguous_names(config: Configuration, table: TableId) -> Collection[str]:
    with history_source(config) as source:
        return source.ambiguous_names(table)


def _cleanup_policy(config: Configuration, topic: str) -> str:
    admin = TopicAdmin(config.kafka.admin, timeout=_KAFKA_S)
    return admin.topic_config("cleanup.policy", [topic]).get(topic, "")


def _refuse_untyped(config: Configuration) -> None:
    if isinstance(config.converters.value, ProtobufConverterConfig):
        raise Undecided("Protobuf does not show the types of dates and times: only --topics can compare these records")


def listed_tables(config: Configuration) -> Sequence[str]:
    """Return the names in ``table.include.list`` that contain no special characters of regular expressions."""
    include = config.capture.tables.tables.include
    texts = [] if include is None else [text.replace("\\.", ".") for text in include.sources]
    return [text for text in texts if text.count(".") == 1 and text.replace(".", "").replace("_", "").isalnum()]


def missing_tables(captured: Sequence[TableId], wanted: Sequence[str]) -> list[str]:
    """Return the names of wanted tables that are not among the captured ones."""
    known = {str(one).lower() for one in captured}
    return [name for name in wanted if name.lower() not in known]


def reason_of(error: Exception) -> str:
    """Return the reason why the result for a table is undecided, for the report."""
    if not isinstance(error, pymysql.MySQLError) or not error.args:
        return str(error)
    way_out = ". Grant the user SELECT on the table" if error.args[0] in DENIED else ""
    return f"the server refuses a query: {error.args[-1]}{way_out}"


Found = tuple[Result, Sequence[TableResult]]


def exit_code(results: Sequence[Found]) -> int:
    """Return the exit code: 1 if a table is different, else 2 if one is undecided, otherwise 0."""
    outcomes = {result.outcome for result, _ in results} | {one.outcome for _, tables in results for one in tables}
    return 1 if "different" in outcomes else 2 if "undecided" in outcomes or not results else 0


def report_json(results: Sequence[Found], error: str | None = None) -> dict[str, Any]:
    """Return the report as a JSON object.

    Args:
        results: the results, of the tables before the error if there was one.
        error: the reason why the others have none.
    """
    outcome = ("equal", "different", "undecided")[exit_code(results)]
    return {
        "outcome": "undecided" if error is not None and outcome == "equal" else outcome,
        "error": error,
        "tables": [
            _table_json(result) | {"spark_tables": [_spark_json(one) for one in tables]} for result, tables in results
        ],
    }


def _table_json(result: Result) -> dict[str, Any]:
    start, end = (None if one is None else one.to_map() for one in (result.start, result.end))
    other = result.other.replace(" ", "_")
    return {
        "table": result.table,
        "outcome": result.outcome,
        "reason": result.reason or None,
        "topics": list(result.topics),
        "position": start,
        "end": end,
        "source_rows": result.source_rows,
        f"{other}_rows": result.topic_rows,
        "resumed_rows": result.resumed,
        "interrupted_runs": result.interrupted,
        "read_again": result.again,
        "not_compared": result.older,
        "repaired": [_difference_json(one, other) for one in result.repaired],
        "sent_again": result.sent_again,
        "not_repaired": result.not_repaired or None,
        "signals": result.signals,
        "old_form": {
            name: {"rows": rows, "statement": change.ddl, "file": change.position.file, "pos": change.position.pos}
            for name, (rows, change) in result.old.items()
        },
        "differences": [_difference_json(one, other) for one in result.differences],
        "more_differences": result.more,
        "further_ranges": [
            {"first": _key_json(result, one.first), "last": _key_json(result, one.last), **one.kinds}
            for one in result.ranges
        ],
    }


def _key_json(result: Result, key: Key | None) -> Mapping[str, str | None] | None:
    return None if key is None else _row_json(_named(result, key))


def _spark_json(one: TableResult) -> dict[str, Any]:
    return {
        "topic": one.topic,
        "path": one.path or None,
        "outcome": one.outcome,
        "reason": one.reason or None,
        "version": one.version,
        "other_commits": list(one.others),
        "offsets": {str(partition): offset for partition, offset in sorted(one.offsets.items())},
        "behind": one.behind,
        "last": {str(partition): _place_json(place) for partition, place in sorted(one.last.items())},
        "table_rows": one.table_rows,
        "topic_rows": one.topic_rows,
        "not_compared": one.not_compared,
        "differences": [_spark_difference_json(found) for found in one.differences],
        "more_differences": one.more,
    }


def _spark_difference_json(one: TableDifference) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "key": _row_json(one.key),
        "columns": list(one.columns),
        "topic": _row_json(one.topic),
        "table": _row_json(one.table),
        "copies": one.copies,
        "records": [_place_json(place) for place in one.places],
        "applied": None if one.applied is None else _place_json(one.applied),
    }


def _difference_json(one: RowDifference, other: str) -> dict[str, Any]:
    return {
        "kind": one.kind,
        "key": _row_json(one.key),
        "columns": list(one.columns),
        "source": _row_json(one.source),
        other: _row_json(one.topic),
        "copies": one.copies,
        "records": [_place_json(place) for place in one.places],
    }


def _row_json(row: Row | None) -> Mapping[str, str | None] | None:
    if row is None:
        return None
    return {name: None if text == "-" else text[1:] for name, text in row.items()}


def _place_json(place: RecordPlace) -> dict[str, Any]:
    return {
        "partition": place.partition,
        "offset": place.offset,
        "op": place.op,
        "file": place.file or None,
        "pos": place.pos,
        "gtid": place.gtid,
        "snapshot": place.snapshot,
    }


def report_lines(result: Result, limit: int) -> Iterator[str]:
    """Yield the lines of the report about one table.

    Args:
        result: the result.
        limit: the number of differences to show.
    """
    counts = f"{result.source_rows:,} rows in the source, {result.topic_rows:,} {_at(result)} the {result.other}"
    if result.outcome == "undecided":
        yield f"{result.table}: not decided: {result.reason}"
    elif result.outcome == "equal":
        yield f"{result.table}: equal, {counts}"
    else:
        number = f"{'at least ' * result.more}{len(result.differences):,}"
        yield f"{result.table}: different, {number} differences, {counts}"
    if result.start is not None and result.end is not None and result.outcome != "undecided":
        yield f"  proved at {described(result.start)}; rows that changed later, up to {described(result.end)}"
    if result.resumed:
        yield f"  continued a run that was interrupted: {result.resumed:,} rows were already read"
    if result.interrupted:
        yield f"  read from its beginning, because it has no key: {result.interrupted} runs before were interrupted"
    for name, rows in result.older.items():
        yield f"  column {name} was not compared in {rows:,} rows whose last record is older than the column"
    for name, (rows, change) in result.old.items():
        yield (
            f"  column {name} was not compared in {rows:,} rows: the structure changed after their last record "
            f"({form_change(change)})"
        )
    if result.repaired:
        kinds = Counter(one.kind for one in result.repaired)
        yield f"  repaired: {', '.join(f'{number:,} {kind}' for kind, number in kinds.items())}"
    if result.sent_again:
        yield f"  sent again in their new form: {result.sent_again:,} rows"
    for one in result.repaired[:limit]:
        yield f"    {one.kind}: {shown_values(one.key)}: {_meaning(one, result.other)}"
    for one in result.differences[:limit]:
        yield from _difference_lines(one, result.other)
    for signal in result.signals:
        yield f"  would send: {json.dumps(signal, ensure_ascii=False)}"
    if result.not_repaired:
        yield f"  not repaired: {result.not_repaired}"
    if len(result.differences) > limit:
        yield f"  … and {len(result.differences) - limit:,} more (--limit, --json)"
    yield from _range_lines(result)


def _range_lines(result: Result) -> Iterator[str]:
    if result.ranges:
        number = sum(sum(one.kinds.values()) for one in result.ranges)
        yield f"  {number:,} further keys differ, and were not compared again (--max-differences):"
    for one in result.ranges:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in one.kinds.items())
        if one.first is None or one.last is None:
            yield f"    {kinds}: only in the topic"
        else:
            first, last = (shown_values(_named(result, key)) for key in (one.first, one.last))
            yield f"    {kinds}: from {first} to {last}"


def _named(result: Result, key: Key) -> dict[str, str]:
    return dict(zip(result.key_names, key, strict=False))


def _at(result: Result) -> str:
    return "in" if result.other == "topic" else "on"


def _meaning(one: RowDifference, other: str) -> str:
    match one.kind:
        case "lost":
            return f"the {other} {'has deleted' if one.places else 'lacks'} the row"
        case "stale":
            return f"the {other} has other values of {', '.join(one.columns)}"
        case "extra":
            return "the source does not have the row"


def _difference_lines(one: RowDifference, other: str) -> Iterator[str]:
    copies = f" ({one.copies} copies)" if one.copies > 1 else ""
    yield f"  {one.kind}: {shown_values(one.key)}{copies}: {_meaning(one, other)}"
    names = one.columns or [name for name in (one.source or one.topic or {}) if name not in one.key]
    for side, row in (("source", one.source), (other, one.topic)):
        if row is not None and names:
            yield f"    {side}: " + ", ".join(f"{name}={shown(row[name])}" for name in names if name in row)
    yield from _place_lines(one.places)


def spark_lines(result: TableResult, limit: int) -> Iterator[str]:
    """Yield the lines of the report about one Spark table.

    Args:
        result: the result.
        limit: the number of differences to show.
    """
    name, counts = result.path or result.topic, f"{result.topic_rows:,} rows in the topic, {result.table_rows:,} in the"
    if result.outcome == "undecided":
        yield f"  table {name}: not decided: {result.reason}"
        return
    if result.outcome == "equal":
        yield f"  table {name}: equal, {counts} table"
    else:
        number = f"{'at least ' * result.more}{len(result.differences):,}"
        yield f"  table {name}: different, {number} differences, {counts} table"
    version = "" if result.version is None else f"version {result.version}, "
    ends = ", ".join(f"offset {offset} of partition {number}" for number, offset in sorted(result.offsets.items()))
    yield f"    {version}compared at {ends}; {result.behind:,} offsets behind the topic"
    for other in result.others:
        yield f"    {other} is not of rowtide tables"
    for column, rows in result.not_compared.items():
        yield f"    column {column} was not compared in {rows:,} rows: the last record, or the table, lacks its value"
    for one in result.differences[:limit]:
        yield from _spark_difference_lines(one)
    if len(result.differences) > limit:
        yield f"    … and {len(result.differences) - limit:,} more (--limit, --json)"


_IN_TABLE: Mapping[str, Callable[[TableDifference], str]] = {
    "lost": lambda _one: "the table lacks the row",
    "stale": lambda one: f"the table has other values of {', '.join(one.columns)}",
    "not applied": lambda one: (
        f"the table has the row as of offset {one.applied.offset if one.applied else '?'}: later changes were read, "
        "but not applied"
    ),
    "extra": lambda _one: "the topic does not have the row",
    "doubled": lambda one: f"the table has the row {one.copies} times",
    "column": lambda _one: "the table lacks the column, or it has another type",
}


def _spark_difference_lines(one: TableDifference) -> Iterator[str]:
    key = shown_values(one.key) or ", ".join(one.columns)
    copies = f" ({one.copies} copies)" if one.copies > 1 and one.kind != "doubled" else ""
    yield f"    {one.kind}: {key}{copies}: {_IN_TABLE[one.kind](one)}"
    names = one.columns or [name for name in (one.topic or one.table or {}) if name not in one.key]
    for side, row in (("topic", one.topic), ("table", one.table)):
        if row is not None and names:
            yield f"      {side}: " + ", ".join(f"{name}={shown(row[name])}" for name in names if name in row)
    yield from (f"  {line}" for line in _place_lines(one.places))


def _place_lines(places: Sequence[RecordPlace]) -> Iterator[str]:
    for place in places:
        at = "a snapshot" if place.snapshot else ", ".join(filter(None, (f"{place.file}:{place.pos}", place.gtid)))
        yield f"    record: partition {place.partition}, offset {place.offset}, op {place.op}, from {at}"


def summary(results: Sequence[Found]) -> str:
    """Return the last line of the report."""
    line = _numbers([result for result, _ in results])
    tables = [one for _, found in results for one in found]
    return f"topics: {line}; tables: {_numbers(tables)}" if tables else line


def _numbers(results: Sequence[Result | TableResult]) -> str:
    numbers = {kind: sum(result.outcome == kind for result in results) for kind in ("equal", "different", "undecided")}
    return ", ".join(f"{number} {kind}" for kind, number in numbers.items() if number)
