"""Decoder processes as they run in production: their start and end, a killed one, and lines of text."""

import errno
import logging
import os
import platform
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.decoding import parallel_pipeline, processes
from rowtide.connector.engine.decoding.forms import LineForm, RecordForm
from rowtide.connector.engine.decoding.processes import DecoderProcesses, decoder_processes, default_number
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay_as
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.settings import PipelineSettings
from tests.support.packed_lines import text_of
from tests.support.recordings.golden import Case

CASE = Case("keys")


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch) -> PipelineSettings:
    """The settings of the case, for chunks of few events."""
    for limit in ("_FIRST_LIMIT", "_MIN_LIMIT", "_MAX_LIMIT"):
        monkeypatch.setattr(parallel_pipeline, limit, 400)
    return pipeline_settings(from_properties(CASE.properties()), "run")


@pytest.fixture
def decoders(settings: PipelineSettings) -> Iterator[DecoderProcesses]:
    """One process, which is ready."""
    with_processes = DecoderProcesses(1, settings, RecordForm(), int)
    with_processes.start()
    with_processes.wait_until_ready()
    yield with_processes
    with_processes.close()


def outputs(settings: PipelineSettings, decoders: DecoderProcesses | None) -> Iterator[Output]:
    for made in replay_as(RecordForm(), CASE.binlog, settings, CASE.start, int, decoders):
        for one in made:
            yield one._replace(schemas=None) if isinstance(one, Batch) else one


def test_processes_make_the_records_and_end_with_the_connection(
    settings: PipelineSettings, decoders: DecoderProcesses
) -> None:
    (process,) = decoders._processes
    assert list(outputs(settings, decoders)) == list(outputs(settings, None))
    decoders.close()
    assert process._process.returncode == 0


def test_a_killed_process_loses_nothing_and_is_replaced(
    settings: PipelineSettings, decoders: DecoderProcesses, caplog: pytest.LogCaptureFixture
) -> None:
    pid = decoders.pids[0]
    found = []
    with caplog.at_level(logging.WARNING):
        for number, output in enumerate(outputs(settings, decoders)):
            found.append(output)
            if number == 10:
                os.kill(pid, signal.SIGKILL)
                decoders._processes[0]._process.wait()
    assert found == list(outputs(settings, None))
    assert f"decoder process {pid} ended unexpectedly with code -9" in caplog.text
    assert "starts another one" in caplog.text
    assert decoders.pids[0] != pid


def test_a_process_that_cannot_start_is_not_started_forever(
    settings: PipelineSettings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(processes, "_CHILD", "raise SystemExit(3)")
    decoders = DecoderProcesses(1, settings, RecordForm(), int)
    decoders.start()
    while decoders.pids:
        decoders.receive()
    assert list(outputs(settings, decoders)) == list(outputs(settings, None))
    assert "with code 3" in caplog.text
    assert "starts no further one" in caplog.text


def test_events_are_decoded_where_the_system_allows_no_process(
    settings: PipelineSettings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refused(*_: int) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))  # such as by the limit of a container

    monkeypatch.setattr(processes, "start_process", refused)
    decoders = DecoderProcesses(2, settings, RecordForm(), int)
    assert list(outputs(settings, decoders)) == list(outputs(settings, None))
    assert caplog.text.count("no further decoder process can be started") == 1


@pytest.mark.parametrize("number", [0, 1])
def test_lines_of_text_are_the_same_from_a_process(settings: PipelineSettings, number: int) -> None:
    form: LineForm = LineForm()
    decoders = DecoderProcesses(number, settings, form, int) if number else None
    if decoders is not None:
        decoders.start()
        decoders.wait_until_ready()
    lines = [
        (text_of(made.packed), made.records)
        for made in replay_as(form, CASE.binlog, settings, CASE.start, int, decoders)
    ]
    if decoders is not None:
        decoders.close()
    batches = [one for one in outputs(settings, None) if isinstance(one, Batch)]
    assert sum(records for _, records in lines) == sum(len(batch.messages) for batch in batches)
    assert b"".join(text for text, _ in lines) == text_of(form.direct(batches).packed)


def test_two_cores_or_fewer_have_no_processes(monkeypatch: pytest.MonkeyPatch, settings: PipelineSettings) -> None:
    for cores, expected in ((1, 0), (2, 0), (4, 3), (64, 8)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _pid, cores=cores: range(cores), raising=False)
        assert default_number() == expected
    assert decoder_processes(0, settings, RecordForm()) is None
    assert decoder_processes(1, replace(settings, changes=True), RecordForm()) is None


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc returns the memory of each event")
def test_messages_of_an_event_take_the_memory_of_those_before() -> None:
    code = """if True:
        import resource
        from rowtide.connector.engine.decoding.worker import keep_freed_memory

        def new_pages():
            before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
            for event in range(20):
                [bytes(4000) for message in range(400)]
            return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

        new_pages()
        keep_freed_memory()
        new_pages()
        print(new_pages())
    """
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 100
