"""Rows that cannot be handled: the failure modes fail, warn and skip, on recorded streams."""

import gzip
import io
import json
import logging
import shutil
import zlib
from pathlib import Path

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.errors import ColumnCountMismatch, ProtocolError, SchemaError, UnknownTable
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.structures.lookup import CurrentStructures
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.events.table_structure import TableStructure
from rowtide.connector.protocol.header import EventType
from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.connector.records.change import SourcePosition
from rowtide.connector.records.codecs.builder import Codec, Codecs
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import Table, TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.received import received
from tests.support.recordings.golden import Case, Written, by_topic, written


def settings_of(name: str, **more: str) -> PipelineSettings:
    return pipeline_settings(from_properties(Case(name).properties() | more), "run")


def replayed(name: str, folder: Path | None = None, **more: str) -> dict[str, list[Written]]:
    case = Case(name)
    return by_topic(written(replay(folder or case.binlog, settings_of(name, **more), case.start)))


def streamed(settings: PipelineSettings, tables: Tables) -> dict[str, list[Written]]:
    """The stream of the case ``keys``, with given structures, by topic."""
    return by_topic(written(stream_outputs(settings, tables)))


def stream_outputs(
    settings: PipelineSettings, tables: Tables, current: CurrentStructures | None = None
) -> list[Output]:
    """The stream of the case ``keys``, with given structures."""
    case = Case("keys")
    assert case.start is not None
    captured = CapturedTables(settings, tables, lambda: 1, current)
    pipeline = Pipeline(settings, tables, case.start, lambda: 1, captured)
    outputs: list[Output] = []
    with gzip.open(case.binlog / "binlog.000001.gz") as stream:
        for place, packet in enumerate(binlog_packets(stream, "binlog.000001")):
            if place == 0 or int.from_bytes(packet[13:17], "little") > case.start.pos:
                outputs += received(pipeline, packet)
    return outputs


def known_tables(*statements: str) -> Tables:
    tables = Tables(Server(Flavor.MYSQL))
    for statement in ("create database k", *statements):
        tables.apply(QueryEvent(statement, database="k"))
    return tables


ONLY_UNIQUE = {"table.include.list": "k\\.(func|late)"}
FUNC = "create table func (a int not null, b int, c int)"  # on the server it has no column c
INCONSISTENT = "inconsistent.schema.handling.mode"


def test_rows_that_do_not_fit_the_structure_stop_the_stream() -> None:
    with pytest.raises(ColumnCountMismatch, match=r"k\.func: the row events have 2 columns.*history has 3.*binlog"):
        streamed(settings_of("keys", **ONLY_UNIQUE), known_tables(FUNC))
    with pytest.raises(UnknownTable, match=r"k\.func, which is not in the schema history"):
        streamed(settings_of("keys", **ONLY_UNIQUE), known_tables())


@pytest.mark.parametrize("mode", ["warn", "skip"])
@pytest.mark.parametrize("known", [(FUNC,), ()])
def test_rows_that_do_not_fit_the_structure_are_omitted(
    mode: str, known: tuple[str, ...], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        topics = streamed(settings_of("keys", **ONLY_UNIQUE, **{INCONSISTENT: mode}), known_tables(*known))
    assert "keys.k.func" not in topics
    assert len(topics["keys.k.late"]) == 1  # its CREATE TABLE is in the stream
    assert any("rows are skipped: " in message for message in caplog.messages) == (mode == "warn")


class OnServer:
    """The structure of the table ``func`` on the server."""

    def statement(self, _table: TableId, _since: SourcePosition) -> str:
        return "CREATE TABLE `func` (`a` int NOT NULL, `b` int DEFAULT NULL)"

    def is_view(self, _name: TableId) -> bool:
        return False


def test_a_repaired_structure_is_recorded_also_if_the_rows_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next rows fit it and would not have it recorded."""

    def refused(_self: Codecs, _structure: TableStructure, table: Table) -> Codec:
        raise SchemaError(f"a converter fails for {table.id}")

    monkeypatch.setattr(Codecs, "codec", refused)
    settings = settings_of("keys", **{"table.include.list": "k\\.func", INCONSISTENT: "skip"})
    outputs = stream_outputs(settings, known_tables(), OnServer())
    changes = [json.loads(output.text)["tableChanges"] for output in outputs if isinstance(output, HistoryEntry)]
    assert ("CREATE", '"k"."func"') in [(one["type"], one["id"]) for change in changes for one in change]


def test_a_table_that_becomes_known_is_published_from_then_on() -> None:
    settings = settings_of("keys", **ONLY_UNIQUE, **{INCONSISTENT: "skip"})

    class Learning(Tables):
        """Lacks the table at its first rows."""

        def table(self, database: str, name: str) -> Table | None:
            asked.append(name)
            return super().table(database, name) if name != "func" or asked.count("func") > 1 else None

    asked: list[str] = []
    tables = Learning(Server(Flavor.MYSQL))
    for statement in ("create database k", "create table func (a int not null, b int)"):
        tables.apply(QueryEvent(statement, database="k"))
    asked.clear()
    assert "keys.k.func" in streamed(settings, tables)


def damaged(case: Case, folder: Path, columns: int = 0xFF) -> Path:
    """A copy of a case's binlog whose last row event has a different number of columns, with a correct checksum."""
    for path in case.binlog.iterdir():
        shutil.copy(path, folder)
    path = folder / "binlog.000001.gz"
    data = bytearray(gzip.decompress(path.read_bytes()))
    at, last, size = 4, 0, 0
    while at + 19 <= len(data):
        length = int.from_bytes(data[at + 9 : at + 13], "little")
        if data[at + 4] == EventType.WRITE_ROWS:
            last, size = at, length
        at += length
    data[last + 19 + 10] = columns
    data[last + size - 4 : last + size] = zlib.crc32(data[last : last + size - 4]).to_bytes(4, "little")
    path.write_bytes(gzip.compress(bytes(data)))
    return folder


@pytest.mark.parametrize("size", [0, 4, 18])
def test_an_event_that_is_shorter_than_its_header_stops_the_stream(size: int) -> None:
    pipeline = Pipeline(settings_of("keys"), known_tables(), SourceOffset("binlog.000001", 4), lambda: 1)
    with pytest.raises(ProtocolError, match=rf"an event of {size} bytes is shorter than its header"):
        list(pipeline.receive(bytes(size)))


def test_rows_with_other_columns_than_their_table_map_stop_the_stream(tmp_path: Path) -> None:
    with pytest.raises(
        ProtocolError, match=r"rows of table k\.\w+ with 8 columns, but the TABLE_MAP .* has \d \(at bin"
    ):
        replayed("keys", damaged(Case("keys"), tmp_path, 8))


PROCESSING = "event.processing.failure.handling.mode"


def test_a_damaged_row_event_stops_the_stream(tmp_path: Path) -> None:
    with pytest.raises(ProtocolError, match="number of columns starts with byte 0xff"):
        replayed("keys", damaged(Case("keys"), tmp_path))


@pytest.mark.parametrize("mode", ["warn", "skip"])
def test_a_damaged_row_event_is_omitted(mode: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    whole = replayed("keys")
    with caplog.at_level(logging.WARNING):
        found = replayed("keys", damaged(Case("keys"), tmp_path), **{PROCESSING: mode})
    lost = {topic: len(messages) - len(found.get(topic, [])) for topic, messages in whole.items()}
    assert max(lost.values()) == sum(lost.values()) > 0  # of one table
    assert any(f"skipped because of {PROCESSING}=warn" in message for message in caplog.messages) == (mode == "warn")


UNWRAP = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}


@pytest.mark.parametrize("mode", ["warn", "skip"])
@pytest.mark.parametrize("known", [(FUNC,), ()])
def test_rows_that_do_not_fit_the_structure_are_dead_letters(mode: str, known: tuple[str, ...]) -> None:
    given = {INCONSISTENT: mode, "errors.deadletterqueue.topic.name": "letters"}
    outputs = stream_outputs(settings_of("keys", **ONLY_UNIQUE, **given), known_tables(*known))
    batches = [one for one in outputs if isinstance(one, Batch)]
    assert "keys.k.func" not in {batch.topic for batch in batches}
    letters = [batch for batch in batches if batch.topic == "letters"]
    assert len(letters) == 2  # an INSERT and an UPDATE
    for letter in letters:
        assert b"k.func" in (dict(letter.messages[0][2])["rowtide.dead.letter.reason"] or b"")


@pytest.mark.parametrize("more", [{}, UNWRAP])
@pytest.mark.parametrize("columns", [0xFF, 8])  # neither decoded, nor does it fit its TABLE_MAP
def test_a_row_event_that_is_omitted_is_a_dead_letter(more: dict[str, str], columns: int, tmp_path: Path) -> None:
    letters = {PROCESSING: "warn", "errors.deadletterqueue.topic.name": "letters", **more}
    case = Case("keys")
    outputs = list(replay(damaged(case, tmp_path, columns), settings_of("keys", **letters), case.start))
    pieces = [piece for one in outputs if isinstance(one, Batch) for piece in one.destinations()]
    (letter,) = (piece for piece in pieces if piece.topic == "letters")
    ((key, value, headers),) = letter.messages
    with gzip.open(tmp_path / "binlog.000001.gz") as stream:
        *_, event = (packet for packet in binlog_packets(stream, "x") if packet[4] == EventType.WRITE_ROWS)
    assert key is None
    assert value is not None
    *needed, kept = binlog_packets(io.BytesIO(value), "letter")
    assert kept == event
    assert [EventType(packet[4]).name for packet in needed] == ["FORMAT_DESCRIPTION", "GTID", "QUERY", "TABLE_MAP"]
    assert dict(headers)["rowtide.dead.letter.stage"] == b"TASK_POLL"
    assert dict(headers)["rowtide.dead.letter.topic"] == b""
    assert b"columns" in (dict(headers)["rowtide.dead.letter.reason"] or b"")
    assert letter.size == len(value)
    before = [one for one in outputs if isinstance(one, Batch)]
    place = before.index(next(one for one in before if letter in one.destinations()))
    assert letter.offset.event > before[place - 1].offset.event or letter.offset.pos != before[place - 1].offset.pos
    others = by_topic(written([one for one in outputs if one is not before[place]]))
    del letters["errors.deadletterqueue.topic.name"]
    assert others == replayed("keys", tmp_path, **letters)


CONVERTING = "event.converting.failure.handling.mode"


@pytest.mark.parametrize("mode", ["fail", "warn", "skip"])
def test_a_value_that_cannot_be_converted(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    more = {CONVERTING: mode}
    if mode == "fail":
        with pytest.raises(SchemaError, match=r"column t3 \(time\(3\)\): .* cannot be converted.*" + CONVERTING):
            replayed("temporal-connect", **more)
        return
    with caplog.at_level(logging.WARNING):
        found = replayed("temporal-connect", **more)
    assert any("cannot be converted" in message for message in caplog.messages) == (mode == "warn")
    assert found == replayed("temporal-connect")


@pytest.mark.parametrize("show", ["false", "true"])
def test_literals_of_statements_are_hidden_unless_they_are_requested(show: str) -> None:
    case = Case("session-row-format-changes")
    settings = settings_of(case.name, **{"errors.log.include.messages": show})
    with pytest.raises(ProtocolError, match=r"changed rows by .insert into t values") as caught:
        list(replay(case.binlog, settings, case.start))
    assert ("stmt" in str(caught.value)) is (show == "true")
