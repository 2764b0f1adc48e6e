"""The recorded cases in databus' form: positions ascend, rows are those of the changes, processes make the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import pytest

from rowtide.connector.config import from_properties
from rowtide.connector.engine.decoding import parallel_pipeline, processes
from rowtide.connector.engine.decoding.forms import RecordForm
from rowtide.connector.engine.decoding.processes import DecoderProcesses
from rowtide.connector.engine.pipeline_settings import pipeline_settings
from rowtide.connector.engine.replay import replay_as
from rowtide.connector.errors import ConnectorError
from rowtide.connector.records.batch import Batch
from rowtide.connector.records.settings import PipelineSettings
from rowtide.databus.events import KafkaKey, QueryEvent, RowsEvent, decode_message
from rowtide.databus.server.record_form import DatabusForm
from rowtide.databus.tables import Table
from tests.support.processes.decoder_threads import DecoderThread
from tests.support.recordings.golden import Case, cases


class Result(NamedTuple):
    """What a replay has made until its error, if it had one."""

    batches: list[Batch]
    error: str


def settings_of(case: Case) -> PipelineSettings:
    """The settings of a case without what databus has not."""
    made = pipeline_settings(from_properties(case.properties()), "run", form=DatabusForm("shop"))
    return replace(made, transforms=None, transaction_metadata=False, skip_unchanged=False)


def replayed(case: Case, settings: PipelineSettings, decoders: DecoderProcesses | None = None) -> Result:
    found: list[Batch] = []
    try:
        for made in replay_as(RecordForm(), case.binlog, settings, case.start, int, decoders):
            found += [output for output in made if isinstance(output, Batch)]
    except ConnectorError as error:
        return Result(found, str(error))
    return Result(found, "")


def messages(batches: Sequence[Batch]) -> list[tuple[KafkaKey, RowsEvent | QueryEvent]]:
    found = [message for batch in batches for message in batch.messages if batch.topic == "shop"]
    return [decode_message("shop", place, key, value) for place, (key, value, _) in enumerate(found)]


@pytest.mark.parametrize("name", cases())
def test_a_case(name: str) -> None:
    case = Case(name)
    settings = settings_of(case)
    found = replayed(case, settings)
    made = messages(found.batches)
    positions = [(key.position.number, key.position.pos) for key, _ in made]
    assert positions == sorted(set(positions))
    known: dict[str, Table] = {}
    for _, event in made:
        if isinstance(event, QueryEvent):
            known[str(event.table)] = event.table
        else:
            assert known.get(str(event.table), event.table) == event.table
    if not found.error:
        changes = replayed(case, replace(settings, form=None, changes=True))
        rows = sum(
            1 if change.before is None or change.after is None else 2
            for batch in changes.batches
            for change in batch.changes
        )
        assert sum(len(event.rows) for _, event in made if isinstance(event, RowsEvent)) == rows


@pytest.mark.parametrize(
    "name", ["keys", "ddl-stream", "transaction-compression", "mariadb-compressed-binlog", "mariadb-system-versioned"]
)
def test_decoder_processes_make_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = Case(name)
    settings = settings_of(case)
    monkeypatch.setattr(processes, "start_process", DecoderThread)
    for limit in ("_FIRST_LIMIT", "_MIN_LIMIT", "_MAX_LIMIT"):
        monkeypatch.setattr(parallel_pipeline, limit, 400)
    decoders = DecoderProcesses(2, settings, RecordForm(), int)
    try:
        decoders.start()
        decoders.wait_until_ready()
        assert replayed(case, settings, decoders) == replayed(case, settings)
    finally:
        decoders.close()


@pytest.mark.parametrize("only_captured", [False, True])
def test_statements_that_change_nothing_but_indexes_have_messages(only_captured: bool) -> None:
    """Debezium does not report them."""
    case = Case("ddl-and-filters")
    settings = replace(settings_of(case), only_captured_tables_ddl=only_captured)
    found = [event for _, event in messages(replayed(case, settings).batches) if isinstance(event, QueryEvent)]
    assert [event.query for event in found if " index " in event.query and not event.query.startswith("alter")] == [
        "create index ix on `pd`.t (n)",
        "drop index ix on `pd`.t",
        "create unique index uq on `pd`.t2 (txt)",
    ]
