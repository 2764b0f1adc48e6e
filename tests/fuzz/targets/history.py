"""Schema histories with damaged records, and damaged summaries: to the schemas of all tables."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from functools import cache
from random import Random

from rowtide.connector.errors import ConnectorError
from rowtide.envelope.table import RecordRules, build_table_schema
from rowtide.schema_history.compaction.history_reader import StoredHistory, read_history
from rowtide.schema_history.compaction.summary import Summary, UnusableSummary
from rowtide.schema_history.errors import SchemaHistoryError
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.queries.information_schema import table_json
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.fuzz.mutators import HOSTILE, mutated, mutated_json
from tests.fuzz.recorded import history_texts
from tests.support.in_memory_summaries import InMemorySummaries

_FLAVORS = tuple(Flavor)
_PREFIX = "p"
_SUMMARISED = 20
_POSITIONS = (
    None,
    BinlogPosition("binlog.000009", 4),
    BinlogPosition("binlog.000009", 4, "aa7d5f2e-e591-11f1-904d-02fc00000001:1-5"),
    BinlogPosition("binlog.000009", 4, "0-1-42", snapshot=True),
)
_SESSION = {
    "db": "k",
    "sql_mode": 5,
    "charset": [45, 45, 45],
    "flags2": 0,
    "sql": "create table x (a int)",
    "error_code": 1,
}
_END = b"\0\n\0"


class History:
    """An input is the kind of server, the number of a position, and the records."""

    declared = (SchemaHistoryError, ConnectorError)

    def make(self, random: Random) -> bytes:
        """A few records of one table's history, one or more damaged."""
        flavor = random.randrange(2)
        texts = history_texts(_FLAVORS[flavor])
        first = random.randrange(len(texts))
        records = [json.loads(text) for text in texts[first : first + random.randint(1, 6)]]
        for record in records:
            record["source"]["server"] = _PREFIX
        if random.random() < 0.2:
            random.choice(records)["session"] = dict(random.sample(list(_SESSION.items()), 3))
        damaged = random.randrange(len(records))
        made = []
        for number, record in enumerate(records):
            if number != damaged:
                made.append(_dumped(record))
            elif random.random() < 0.8:
                changed = mutated_json(random, record)
                made.append(_dumped(changed))
            elif random.random() < 0.1:
                made.append(b'{"position":' * random.choice((1000, 100_000)))
            else:
                made.append(mutated(random, _dumped(record), _HOSTILE))
        return bytes((flavor, random.randrange(len(_POSITIONS)))) + _END.join(made)

    def run(self, data: bytes) -> None:
        """Read the history, and build every table and its schemas."""
        if len(data) < 2:
            return
        server = Server(_FLAVORS[data[0] % 2])
        texts = [text.decode("utf-8", "surrogateescape") for text in data[2:].split(_END)]
        history = StoredHistory(InMemorySchemaHistory(*texts), _PREFIX)
        tables = read_history(history, server, _POSITIONS[data[1] % len(_POSITIONS)]).tables()
        for table in tables:
            build_table_schema(table, "t", RecordRules(), "stream", lambda _table, _column: None)
            json.dumps(table_json(table, server.flavor))


class Summaries:
    """An input is the lines of a summary."""

    declared = (UnusableSummary, SchemaHistoryError)

    def make(self, random: Random) -> bytes:
        """A summary with damaged lines."""
        lines = _summary(random.randrange(20)).splitlines()
        at = random.choice((0, random.randrange(len(lines))))
        if random.random() < 0.8:
            lines[at] = _dumped(mutated_json(random, json.loads(lines[at])))
        else:
            lines[at] = mutated(random, lines[at], _HOSTILE)
        return b"\n".join(lines)

    def run(self, data: bytes) -> None:
        """Restore it, and build every table."""
        for table in Summary(zlib.compress(data, 1)).restore(None).tables(prefer_ddl=False):
            table_json(table, Flavor.MYSQL)


def _dumped(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


_HOSTILE: Sequence[bytes] = tuple(_dumped(value) for value in HOSTILE)


@cache
def _summary(number: int) -> bytes:
    """The summary of a part of the recorded histories, not compressed."""
    texts = history_texts(Flavor.MYSQL)
    first = number * _SUMMARISED % (len(texts) - _SUMMARISED)
    own = []
    for text in texts[first : first + _SUMMARISED]:
        record = json.loads(text)
        record["source"]["server"] = _PREFIX
        own.append(_dumped(record).decode())
    history = StoredHistory(InMemorySchemaHistory(*own), _PREFIX, InMemorySummaries())
    packed = read_history(history, Server(Flavor.MYSQL), None).summary()
    assert packed is not None
    return zlib.decompress(packed)
