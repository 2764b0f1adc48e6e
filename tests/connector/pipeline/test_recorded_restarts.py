"""Recorded cases with stops, on live servers: statements and changed properties while the connector is stopped."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from pymysql.constants import CLIENT

from rowtide.connector.records.batch import Batch, HistoryEntry, Output
from rowtide.schema_history.position.binlog_position import BinlogPosition
from rowtide.schema_history.recovery.recover import recover
from rowtide.schema_history.store.history_record import parse_record
from rowtide.schema_history.store.history_store import InMemorySchemaHistory
from tests.support.mysql.live_database import streamed
from tests.support.recordings.golden import GOLDEN, Case, Written, check_messages, normalised, written
from tests.support.recordings.live_snapshot import binlog_end, configuration, prepared, run

if TYPE_CHECKING:
    from rowtide_stack import MariaDB, MySQL, SqlServer

pytestmark = pytest.mark.servers

WITH_SIGNALS = {path.parent.name for path in GOLDEN.glob("*/*.signals.json")}
"""Cases whose signals come through Kafka or a file, which this test has not. Restarts among signals are in
``tests/connector/signals`` and ``tests/connector/worker``."""
CASES = sorted({path.parent.name for path in GOLDEN.glob("*/*.stopped.sql")} - WITH_SIGNALS)

_TIMES = re.compile(r'"(ts_ms|ts_us|ts_ns|ts_sec|pos)"( ?: ?)\d+')
_THREAD = re.compile(r'"thread":\d+')
_GTID = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}):(\d+)")
_FILE = re.compile(r'"(file)"( ?: ?)"binlog\.\d+"|"(gtids)"( ?: ?)"[^"]*"')


class Comparable:
    """Removes what differs between servers and times; GTIDs are counted from the first one."""

    def __init__(self) -> None:
        self._first: int | None = None

    def text(self, text: str) -> str:
        """A text without these differences."""
        text = _THREAD.sub('"thread":0', _TIMES.sub(r'"\1"\g<2>0', text))
        return _GTID.sub(self._counted, _FILE.sub(lambda m: f'"{m[1] or m[3]}"{m[2] or m[4]}""', text))

    def _counted(self, found: re.Match[str]) -> str:
        if self._first is None:
            self._first = int(found[2])
        return f"gtid:{int(found[2]) - self._first}"

    def messages(self, messages: Iterable[Written]) -> dict[str, list[Written]]:
        """Messages by topic; an END record that is repeated after a restart counts once."""
        topics: dict[str, list[Written]] = {}
        for message in messages:
            plain = normalised(message)
            key, value = (None if text is None else self.text(text) for text in (plain.key, plain.value))
            made = replace(plain, key=key, value=value)
            known = topics.setdefault(made.topic, [])
            if not (known and known[-1] == made and '"status":"END"' in str(value)):
                known.append(made)
        return topics


def recorded(case: Case) -> tuple[dict[str, list[Written]], list[str]]:
    """Messages by topic, transaction records first for their GTIDs, and the records of the schema history."""
    records = sorted(case.records, key=lambda record: not record["topic"].endswith(".transaction"))
    comparable = Comparable()
    messages = comparable.messages(
        Written(record["topic"], record["key"], record["value"], tuple((k, v) for k, v in record["headers"]))
        for record in records
        if record["topic"] not in ("history", "connect-offsets")
    )
    history = [comparable.text(record["value"]) for record in records if record["topic"] == "history"]
    return messages, history


def execute(server: SqlServer, sql: str) -> None:
    with server.connect(client_flag=CLIENT.MULTI_STATEMENTS) as connection, connection.cursor() as cursor:
        cursor.execute(sql)
        while cursor.nextset():
            pass


@pytest.mark.parametrize("name", CASES)
def test_the_stream_resumes_where_it_stopped(name: str, request: pytest.FixtureRequest) -> None:
    case = Case(name)
    server: MySQL | MariaDB = request.getfixturevalue(case.description.get("server", "mysql"))
    properties = case.properties()
    found: list[Output] = []
    with prepared(case, server):
        snapshot, outputs = run(configuration(properties, server))
        found += outputs
        offset, tables = snapshot.offset, snapshot.tables
        for stage in sorted(case.folder.glob("stream*.sql")):
            execute(server, stage.read_text())
            if stage.name.endswith(".stopped.sql"):
                change = stage.with_suffix(".config.json")
                properties |= json.loads(change.read_text()) if change.exists() else {}
                history = InMemorySchemaHistory(*(output.text for output in found if isinstance(output, HistoryEntry)))
                position = BinlogPosition.from_map(offset.to_map())
                tables = recover(history.replay(parse_record), tables.server, position)
            for step in streamed(configuration(properties, server), tables, offset, binlog_end(server)):
                found += step.outputs
            offset = [output.offset for output in found if isinstance(output, Batch)][-1]
    comparable = Comparable()
    messages = sorted(written(found), key=lambda message: not message.topic.endswith(".transaction"))
    texts = [output.text for output in found if isinstance(output, HistoryEntry)]
    wanted, wanted_history = recorded(case)
    check_messages(wanted, comparable.messages(messages), more=False)
    assert [comparable.text(text) for text in texts] == wanted_history
