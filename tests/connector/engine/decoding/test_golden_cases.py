"""The recorded cases through decoder processes: outputs, positions, errors and log entries are those of one process."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.decoding import memory, parallel_pipeline, processes, worker
from rowtide.connector.engine.decoding.chunks import EventChunk
from rowtide.connector.engine.decoding.forms import RecordForm
from rowtide.connector.engine.decoding.messages import ChunkRequest, ChunkState
from rowtide.connector.engine.decoding.processes import DecoderProcesses, Task
from rowtide.connector.engine.decoding.worker import DecoderWorker
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay_as
from rowtide.connector.errors import ConnectorError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.pipeline.row_writer import RowWriter
from rowtide.connector.protocol.events.classes import Rows
from rowtide.connector.protocol.events.log_events import FormatDescription
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.settings import PipelineSettings
from tests.support.processes.decoder_threads import DecoderThread
from tests.support.recordings.golden import Case, cases

IN_ONE_PROCESS = {"fails-statement-format"}
"""A case without row events after the first ones of their table: they stay in the parent."""


class Result(NamedTuple):
    """What a replay did."""

    outputs: list[Output]
    error: str
    logged: list[str]


class Logged(logging.Handler):
    """The messages of the thread that creates it."""

    def __init__(self) -> None:
        super().__init__()
        self._thread = threading.get_ident()
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread and record.levelno >= logging.INFO:
            self.messages.append(f"{record.levelname} {record.getMessage()}")


@pytest.fixture(autouse=True)
def logged() -> Iterator[Logged]:
    handler, logger = Logged(), logging.getLogger("rowtide")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler
    logger.setLevel(level)
    logger.removeHandler(handler)


def replayed(case: Case, settings: PipelineSettings, logged: Logged, decoders: DecoderProcesses | None) -> Result:
    logged.messages.clear()
    outputs: list[Output] = []
    error = ""
    try:
        for made in replay_as(RecordForm(), case.binlog, settings, case.start, int, decoders):
            outputs += [one._replace(schemas=None) if isinstance(one, Batch) else one for one in made]
    except ConnectorError as problem:
        error = repr(problem)
    return Result(outputs, error, list(logged.messages))


def make_chunks(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    """Let chunks have about as many bytes, and threads decode them."""
    monkeypatch.setattr(processes, "start_process", DecoderThread)
    for name in ("_FIRST_LIMIT", "_MIN_LIMIT", "_MAX_LIMIT"):
        monkeypatch.setattr(parallel_pipeline, name, limit)


def assert_same(case: Case, settings: PipelineSettings, logged: Logged, number: int) -> None:
    """A number of processes have the results of one process."""
    alone = replayed(case, settings, logged, None)
    decoders = DecoderProcesses(number, settings, RecordForm(), int)
    try:
        decoders.start()
        decoders.wait_until_ready()
        assert replayed(case, settings, logged, decoders) == alone
    finally:
        decoders.close()


@pytest.mark.parametrize("name", cases())
def test_chunks_of_few_events_have_the_results_of_one_process(
    name: str, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    make_chunks(monkeypatch, 400)
    chunks: list[EventChunk] = []
    submit = DecoderProcesses.submit

    def submitted(self: DecoderProcesses, chunk: EventChunk, form: FormatDescription) -> Task:
        chunks.append(chunk)
        return submit(self, chunk, form)

    monkeypatch.setattr(DecoderProcesses, "submit", submitted)
    case = Case(name)
    settings = pipeline_settings(from_properties(case.properties()), "run")
    assert_same(case, settings, logged, 2)
    assert bool(chunks) == (name not in IN_ONE_PROCESS)


@pytest.mark.timeout(60)
def test_a_process_that_fails_at_the_end_of_a_part_goes_on(monkeypatch: pytest.MonkeyPatch, logged: Logged) -> None:
    """Its slots become free; without one, it would wait forever, and its parent for it."""
    make_chunks(monkeypatch, 400)
    failures, state = [MemoryError] * (memory.SLOTS + 1), DecoderWorker._state

    def failing(self: DecoderWorker, pipeline: Pipeline) -> ChunkState:
        if failures:
            raise failures.pop()
        return state(self, pipeline)

    monkeypatch.setattr(DecoderWorker, "_state", failing)
    case = Case("keys")
    settings = pipeline_settings(from_properties(case.properties()), "run")
    assert_same(case, settings, logged, 1)
    assert not failures


def test_a_chunk_of_many_parts_has_the_results_of_one_process(monkeypatch: pytest.MonkeyPatch, logged: Logged) -> None:
    make_chunks(monkeypatch, 2000)
    monkeypatch.setattr(worker, "_PART_BYTES", 1)
    waits: list[DecoderWorker] = []
    wait = DecoderWorker._wait_until_read

    def waiting(self: DecoderWorker) -> None:
        waits.append(self)
        wait(self)

    monkeypatch.setattr(DecoderWorker, "_wait_until_read", waiting)
    case = Case("keys")
    settings = pipeline_settings(from_properties(case.properties()), "run")
    assert_same(case, settings, logged, 2)
    assert waits


def test_chunks_of_one_statement_share_a_pipeline(monkeypatch: pytest.MonkeyPatch, logged: Logged) -> None:
    make_chunks(monkeypatch, 1)
    requests: list[ChunkRequest] = []
    made: list[ChunkRequest] = []
    pipeline, new_pipeline = DecoderWorker._pipeline, DecoderWorker._new_pipeline

    def requested(self: DecoderWorker, request: ChunkRequest) -> Pipeline:
        requests.append(request)
        return pipeline(self, request)

    def newly_made(self: DecoderWorker, request: ChunkRequest) -> Pipeline:
        made.append(request)
        return new_pipeline(self, request)

    monkeypatch.setattr(DecoderWorker, "_pipeline", requested)
    monkeypatch.setattr(DecoderWorker, "_new_pipeline", newly_made)
    case = Case("transactions")
    settings = pipeline_settings(from_properties(case.properties()), "run")
    settings = replace(settings, transaction_metadata=False)  # with it, transactions are not cut
    assert_same(case, settings, logged, 1)
    shared = [request for request in requests if request not in made]
    assert shared
    assert all(request.head for request in shared)


@pytest.mark.parametrize("name", ["transactions", "gtid-off", "xa-rolled-back", "mariadb-compressed-binlog"])
def test_dead_letters_of_events_are_those_of_one_process(
    name: str, monkeypatch: pytest.MonkeyPatch, logged: Logged
) -> None:
    """Also where a chunk, and what a process gives back of it, begins within a transaction."""
    make_chunks(monkeypatch, 1)
    write = RowWriter.write

    def fails_sometimes(writer: RowWriter, event: Rows, *others: Any) -> Any:
        if event.header.log_pos % 3 == 0:
            raise ValueError("this version cannot write it")
        return write(writer, event, *others)

    monkeypatch.setattr(RowWriter, "write", fails_sometimes)
    case = Case(name)
    letters = {"event.processing.failure.handling.mode": "warn", "errors.deadletterqueue.topic.name": "letters"}
    settings = pipeline_settings(from_properties(case.properties() | letters), "run")
    settings = replace(settings, transaction_metadata=False)  # with it, transactions are not cut
    assert_same(case, settings, logged, 2)
    batches = [one for one in replayed(case, settings, logged, None).outputs if isinstance(one, Batch)]
    assert any(one.topic == "letters" for one in batches)
