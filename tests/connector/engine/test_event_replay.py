"""Dead letters of events: replayed, they give the records that the stream would have made."""

from __future__ import annotations

import io
import itertools
import json
import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine import replay as binlog_replay
from rowtide.connector.engine.event_replay import RecordedStructures, event_batches
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay
from rowtide.connector.errors import EngineError, ProtocolError, UnsupportedEvent
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.row_writer import RowWriter
from rowtide.connector.protocol.binlog_file import binlog_packets
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import ROWS_TYPES, EventType
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.codecs import rows as codecs_rows
from rowtide.connector.records.codecs.rows import RowsCodec
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.transforms import Transformer
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.model import TableId
from rowtide.schema_history.server.query_event import Flavor, QueryEvent, Server
from tests.support.recordings.golden import Case, Written, by_topic, written

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from rowtide.connector.records.settings import PipelineSettings

LETTERS = {
    "event.processing.failure.handling.mode": "skip",
    "errors.deadletterqueue.topic.name": "letters",
}
HEADER = "rowtide.dead.letter."
Fail = Callable[[pytest.MonkeyPatch, list[Pipeline]], None]
Letter = tuple[bytes, dict[str, str], Tables]
"""The value, the headers and the structures at its position."""


def settings_of(name: str, **more: str) -> PipelineSettings:
    return pipeline_settings(from_properties(Case(name).properties() | LETTERS | more), "run")


def letters_of(name: str, monkeypatch: pytest.MonkeyPatch, fail: Fail, **more: str) -> list[Letter]:
    """The dead letters of a case, some of whose events cannot be handled."""
    found: list[Letter] = []
    with monkeypatch.context() as patch:
        made: list[Pipeline] = []

        def make(*arguments: Any, **named: Any) -> Pipeline:
            made.append(Pipeline(*arguments, **named))
            return made[-1]

        patch.setattr(binlog_replay, "Pipeline", make)
        fail(patch, made)
        case = Case(name)
        for output in replay(case.binlog, settings_of(name, **more), case.start):
            for piece in output.destinations() if isinstance(output, Batch) else ():
                if piece.topic == "letters":
                    ((key, value, headers),) = piece.messages
                    assert key is None
                    texts = {header.removeprefix(HEADER): (text or b"").decode() for header, text in headers}
                    found.append((value or b"", texts, made[0].tables.copy()))
    assert all(texts["stage"] == "TASK_POLL" for _, texts, _ in found)
    return found


def replayed(letters: Iterable[Letter], settings: PipelineSettings) -> dict[str, list[Written]]:
    batches = [
        batch
        for value, texts, tables in letters
        for batch in event_batches(value, texts["offset"], settings, lambda _offset, _version, to=tables: to.copy())
    ]
    transforms = settings.transforms
    return by_topic(written(batches if transforms is None else Transformer(transforms).outputs(batches)))


def expected(name: str, **more: str) -> dict[str, list[Written]]:
    """The records of rows that the stream makes."""
    case = Case(name)
    topics = by_topic(written(replay(case.binlog, settings_of(name, **more), case.start)))
    return {
        topic: found
        for topic, found in topics.items()
        if topic not in (case.properties()["topic.prefix"], "letters") and not topic.endswith(".transaction")
    }


def uncounted(topics: dict[str, list[Written]]) -> dict[str, list[Written]]:
    """Records without their numbers in a transaction: each is the next one after those that were sent."""
    return {
        topic: [replace(one, value=one.value and _ORDER.sub("", one.value)) for one in found]
        for topic, found in topics.items()
    }


_ORDER = re.compile(r'"total_order":\d+,"data_collection_order":\d+')


def every_row(patch: pytest.MonkeyPatch, _: list[Pipeline]) -> None:
    """No row can be written, such as by a version with a fault."""

    def write(*_: Any) -> None:
        raise ValueError("this version cannot write it")

    patch.setattr(RowWriter, "write", write)


def every_event(patch: pytest.MonkeyPatch, made: list[Pipeline]) -> None:
    """No row event can be decoded, such as by a version that does not know its type."""
    decode = EventDecoder.decode

    def unknown(self: EventDecoder, packet: bytes, offset: int = 0) -> Any:
        if made and packet[4] in ROWS_TYPES:
            raise UnsupportedEvent("this version does not know it")
        return decode(self, packet, offset)

    patch.setattr(EventDecoder, "decode", unknown)


UNWRAP = {"transforms": "u", "transforms.u.type": "io.debezium.transforms.ExtractNewRecordState"}
CASES: Sequence[tuple[str, dict[str, str]]] = (
    ("numeric-types", {}),
    ("keys", {}),
    ("keys", UNWRAP),
    ("transaction-compression", {}),
    ("json-partial-update", {}),
    ("row-metadata-full-and-query", {}),
    ("ddl-stream", {}),
    ("gtid-off", {}),
    ("xa-rolled-back", {}),
    ("mariadb-types", {}),
    ("mariadb-compressed-binlog", {}),
)


@pytest.mark.parametrize("fail", [every_row, every_event])
@pytest.mark.parametrize(("name", "more"), CASES)
def test_a_replayed_event_gives_the_records_of_the_stream(
    name: str, more: dict[str, str], fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    letters = letters_of(name, monkeypatch, fail, **more)
    assert uncounted(replayed(letters, settings_of(name, **more))) == uncounted(expected(name, **more)) != {}


class OneRowEvent:
    """Only one row event of the stream cannot be written."""

    def __init__(self, number: int) -> None:
        self.number, self.seen = number, 0

    def __call__(self, patch: pytest.MonkeyPatch, _: list[Pipeline]) -> None:
        write = RowWriter.write

        def fails_once(writer: RowWriter, *arguments: Any) -> Any:
            self.seen += 1
            if self.seen == self.number:
                raise ValueError("this version cannot write it")
            return write(writer, *arguments)

        patch.setattr(RowWriter, "write", fails_once)


@pytest.mark.parametrize("name", ["transaction-compression", "gtid-off", "mariadb-compressed-binlog"])
def test_a_replayed_event_has_the_number_in_its_transaction(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = {one for found in expected(name).values() for one in found}
    for number in itertools.count(1):
        fail = OneRowEvent(number)
        letters = letters_of(name, monkeypatch, fail)
        assert {one for found in replayed(letters, settings_of(name)).values() for one in found} <= stream
        if not letters:
            break
    assert 5 < fail.seen < number


def test_rows_that_were_sent_before_the_failure_are_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(codecs_rows, "_MAX_ROWS", 1)
    whole, first_rows = expected("transactions"), []
    batch = RowsCodec.batch

    def fail(patch: pytest.MonkeyPatch, _: list[Pipeline]) -> None:
        def only_first(self: Any, event: Any, rows: Any, skip: int, *rest: Any) -> Any:
            if skip:
                raise ValueError("this version cannot write the second row of an event")
            first_rows.append(made := batch(self, event, rows, skip, *rest))
            return made

        patch.setattr(RowsCodec, "batch", only_first)

    letters = letters_of("transactions", monkeypatch, fail)
    again = replayed(letters, settings_of("transactions"))
    sent = by_topic(written(one for one in first_rows if one is not None))
    assert letters
    for topic, found in uncounted(whole).items():
        parts = [*uncounted(sent).get(topic, []), *uncounted(again).get(topic, [])]
        assert sorted(map(repr, parts)) == sorted(map(repr, found))


def test_the_letter_is_a_binlog_file_of_the_event_and_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    (value, texts, _), *_ = letters_of("row-metadata-full-and-query", monkeypatch, every_row)
    kinds = [EventType(packet[4]).name for packet in binlog_packets(io.BytesIO(value), "letter")]
    assert kinds == ["FORMAT_DESCRIPTION", "GTID", "QUERY", "ROWS_QUERY", "TABLE_MAP", "WRITE_ROWS"]
    assert texts["table"].count(".") == 1


def test_an_event_that_is_still_not_understood_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    letters = letters_of("keys", monkeypatch, every_row)
    every_row(monkeypatch, [])
    with pytest.raises(ProtocolError, match="this version cannot write it"):
        replayed(letters[:1], settings_of("keys"))


def test_an_event_alone_cannot_be_replayed() -> None:
    with pytest.raises(ValueError, match="an earlier version of rowtide wrote it: read the table again"):
        event_batches(bytes(40), "", settings_of("keys"), lambda *_: pytest.fail("no structures are needed"))


def test_structures_are_those_at_the_position_unless_others_are_given(tmp_path: Path) -> None:
    case, history = Case("keys"), tmp_path / "history"
    changes = (json.dumps(json.loads(one["value"])) for one in case.records if one["topic"] == "history")
    history.write_text("".join(f"{change}\n" for change in changes))
    given = {name: text for name, text in case.properties().items() if not name.startswith("schema.history.internal.k")}
    file = {
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": str(history),
    }
    config = from_properties({**given, **file})
    assert case.start is not None
    structures = RecordedStructures(config)
    assert structures(case.start, "9.7.0").table("k", "late") is None  # created in the stream
    assert structures(replace(case.start, gtids=f"{case.start.gtids}00"), "9.7.0").table("k", "late") is not None
    other = Tables(Server(Flavor.MYSQL))
    other.apply(QueryEvent("CREATE TABLE func (a INT, z INT)", database="k"))
    found = RecordedStructures(config, other)(case.start, "9.7.0")
    columns = {table.id.table: [column.name for column in table.columns] for table in found}
    assert (columns["func"], "comp" in columns) == (["a", "z"], True)


def test_a_history_in_memory_has_no_structures() -> None:
    memory = {"schema.history.internal": "io.debezium.relational.history.MemorySchemaHistory"}
    given = {n: text for n, text in Case("keys").properties().items() if not n.startswith("schema.history.internal.k")}
    with pytest.raises(EngineError, match="the schema history of the connector is in memory only"):
        RecordedStructures(from_properties({**given, **memory}))(SourceOffset("b.000001", 4), "9.7.0")


@pytest.mark.parametrize("fail", [every_row, every_event])
@pytest.mark.parametrize("name", ["keys", "transaction-compression"])
def test_an_incremental_snapshot_is_told_of_each_dead_letter(
    name: str, fail: Fail, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would emit older rows after the dead letter, which would then count as newer."""
    told: list[str] = []

    class Observer:
        watched = None

        def changed(self, table: TableId) -> None: ...

        def renamed(self, former: TableId, now: TableId) -> None: ...

        def omitted(self, table: TableId | None) -> None:
            told.append("" if table is None else f"{table.database}.{table.table}")

    init = CapturedTables.__init__

    def observed(self: CapturedTables, *arguments: Any, **named: Any) -> None:
        init(self, *arguments, **named)
        self.observer = Observer()  # type: ignore[assignment]

    monkeypatch.setattr(CapturedTables, "__init__", observed)
    letters = letters_of(name, monkeypatch, fail)
    assert told == [texts["table"] for _, texts, _ in letters] != []
