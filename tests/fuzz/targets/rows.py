"""Transactions with damaged table maps and rows, through the pipeline to records, in both forms."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from random import Random

from rowtide.connector.errors import ConnectorError
from rowtide.connector.pipeline.pipeline import Pipeline
from rowtide.connector.protocol.decoder import EventDecoder
from rowtide.connector.protocol.header import HEADER_LENGTH
from rowtide.connector.records.batch import Batch, Output
from rowtide.connector.records.change import Change
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from tests.fuzz.mutators import mutated
from tests.fuzz.recorded import Transaction, row_cases, transactions
from tests.fuzz.targets.packets import with_size

FILE = "binlog.000001"
_CHANGES, _MINIMAL, _LENIENT = 1, 2, 4


class RowEvents:
    """An input is the number of a case and of a transaction, options, and the events with their lengths."""

    declared = (ConnectorError,)

    def __init__(self, cases: tuple[str, ...] | None = None) -> None:
        self._cases = cases or row_cases()

    def make(self, random: Random) -> bytes:
        """A transaction of which at least one event is damaged."""
        while True:
            case = random.randrange(len(self._cases))
            found = transactions(self._cases[case])
            if found:
                break
        number = random.randrange(len(found))
        events = [event[:-4] for event in found[number].events]
        for _ in range(random.choice((1, 1, 2))):
            at = random.randrange(len(events))
            events[at] = events[at][:HEADER_LENGTH] + mutated(random, events[at][HEADER_LENGTH:])
        options = random.choice((0, 0, _CHANGES, _CHANGES, _MINIMAL, _CHANGES | _MINIMAL, _LENIENT))
        return bytes((case, number, options)) + framed(events)

    def case(self, number: int) -> str:
        """The name of a case."""
        return self._cases[number % len(self._cases)]

    def transaction(self, data: bytes) -> Transaction | None:
        """The recorded transaction of an input."""
        found = transactions(self.case(data[0]))
        return found[data[1] % len(found)] if found else None

    def run(self, data: bytes) -> None:
        """Make the records of the transaction, and read all values."""
        for output in self.outputs(data):
            for change in output.changes if isinstance(output, Batch) else ():
                _read(change)

    def outputs(self, data: bytes) -> Iterator[Output]:
        """What the pipeline makes of the transaction."""
        if len(data) < 3 or (transaction := self.transaction(data)) is None:
            return
        settings = _settings(self.case(data[0]), data[2])
        pipeline = Pipeline(settings, transaction.tables.copy(), SourceOffset(FILE, 4), lambda: 1)
        list(pipeline.receive(transaction.format))
        pipeline.decoder._verify = False
        for event in events_of(data[3:]):
            try:
                outputs = [output for step in pipeline.receive(packet_of(event, pipeline.decoder)) for output in step]
            except ConnectorError as error:
                _check_location(error)
                raise
            yield from outputs


def _check_location(error: ConnectorError) -> None:
    assert f"{FILE}:" in str(error), f"no position: {error}"


def framed(events: Iterable[bytes]) -> bytes:
    """Events with their lengths."""
    return b"".join(len(event).to_bytes(3, "little") + event for event in events)


def events_of(data: bytes) -> list[bytes]:
    """The events of an input, without those that are too short."""
    events, at = [], 0
    while at + 3 <= len(data):
        size = int.from_bytes(data[at : at + 3], "little")
        event = data[at + 3 : at + 3 + size]
        if len(event) >= HEADER_LENGTH:
            events.append(event)
        at += 3 + size
    return events


def packet_of(event: bytes, decoder: EventDecoder) -> bytes:
    """The event with the size that it has, and with room for a checksum if the events of the file have one."""
    if decoder.format is not None and decoder.format.checksum == "CRC32":
        return with_size(event)
    return event[:9] + len(event).to_bytes(4, "little") + event[13:]


def _read(change: Change) -> None:
    """Read all values: JSON documents are decoded when they are read."""
    for row in (change.before, change.after):
        if row is not None:
            dict(row)
    change.to_debezium()


@cache
def _settings(case: str, options: int) -> PipelineSettings:
    settings = transactions(case)[0].settings
    if options & _CHANGES:
        settings = replace(settings, changes=True, schema_changes=False)
    if options & _MINIMAL:
        values = replace(settings.rules.values, minimal_row_images=True)
        settings = replace(settings, rules=replace(settings.rules, values=values))
    return replace(settings, processing_failure="skip", inconsistent_schema="skip") if options & _LENIENT else settings
