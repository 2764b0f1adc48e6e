"""Transactions with damaged table maps, rows and statements, through Canal's pipeline to lines of a replay."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from rowtide.canal.entries.pipeline import EntryBatch, EntryPipeline
from rowtide.canal.replay import entry_line
from rowtide.connector.errors import ConnectorError
from rowtide.connector.protocol.header import HEADER_LENGTH
from rowtide.connector.records.offset import SourceOffset
from rowtide.topics.filters import TableFilter
from tests.fuzz.mutators import mutated
from tests.fuzz.recorded import single_events, transactions
from tests.fuzz.targets.packets import SERVERS
from tests.fuzz.targets.rows import FILE, RowEvents, events_of, framed, packet_of

_GTIDS, _LENIENT = 1, 4
_POSITION = re.compile(r":-?\d+")


class CanalEntries(RowEvents):
    """An input is that of `RowEvents`; its options say whether entries have GTIDs, and what is omitted."""

    def make(self, random: Random) -> bytes:
        """A damaged transaction, often with other events between its own."""
        data = super().make(random)
        events = events_of(data[3:])
        server = transactions(self.case(data[0]))[0].settings.connector
        for _ in range(random.choice((0, 0, 1, 3))):
            event = random.choice(single_events(server if server in SERVERS else SERVERS[0]))
            if random.random() < 0.7:
                event = event[:HEADER_LENGTH] + mutated(random, event[HEADER_LENGTH:])
            events.insert(random.randrange(len(events) + 1), event)
        return data[:3] + framed(events)

    def run(self, data: bytes) -> None:
        """Make the lines of the transaction."""
        if len(data) < 3 or (transaction := self.transaction(data)) is None:
            return
        settings = replace(transaction.settings, tables=TableFilter(ignore_builtin=False))
        if data[2] & _LENIENT:
            settings = replace(settings, inconsistent_schema="skip", skip_unparseable_ddl=True)
        start, gtids = SourceOffset(FILE, 4), bool(data[2] & _GTIDS)
        pipeline = EntryPipeline(settings, transaction.tables.copy(), start, lambda: 1, gtids=gtids)
        try:
            for packet in _packets(pipeline, transaction.format, data[3:]):
                for outputs in pipeline.receive(packet):
                    for output in outputs:
                        for entry in output.entries if isinstance(output, EntryBatch) else ():
                            entry_line(entry, 1, 1).encode("utf-8", "surrogatepass")
        except ConnectorError as error:
            _check_position(error)
            raise


def _check_position(error: ConnectorError) -> None:
    assert _POSITION.search(str(error)), f"no position: {error}"  # a ROTATE may name another file


def _packets(pipeline: EntryPipeline, head: bytes, events: bytes) -> Iterator[bytes]:
    yield head
    pipeline.decoder._verify = False
    for event in events_of(events):
        yield packet_of(event, pipeline.decoder)
