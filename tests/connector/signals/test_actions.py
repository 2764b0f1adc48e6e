"""The actions that concern no snapshot: log, set-binlog-position, and users' own."""

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from rowtide.cli.connectors.signal import TYPES
from rowtide.connector.engine.start.included_tables import SET_INCLUDE_LIST
from rowtide.connector.errors import SignalError
from rowtide.connector.pipeline.captured_tables import CapturedTables
from rowtide.connector.pipeline.resume_position import Progress
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.records.settings import PipelineSettings
from rowtide.connector.signals.actions import SignalHook, Signals
from rowtide.connector.signals.binlog_position import next_start, restart_position, start_of
from rowtide.connector.signals.signal import Signal, SignalContext
from rowtide.connector.signals.snapshots import NoSnapshots
from rowtide.schema_history.catalog.tables import Tables
from rowtide.schema_history.server.query_event import Flavor, Server
from rowtide.topics.naming import StandardNaming

UUID = "70506b22-e621-11f1-b9cd-02fc00000001"
OFFSET = SourceOffset("binlog.000001", 4, f"{UUID}:1", carried={"rowtide_signal_kafka": 5})
TAGGED = "70506b22-e621-11f1-b9cd-02fc00000001:1-10:tagged:1-3"


class Connector:
    """The actions of a connector, and its position."""

    def __init__(
        self, hooks: Mapping[str, SignalHook] | None = None, *, mariadb: bool = False, channel: str = "file"
    ) -> None:
        self.notified: list[Mapping[str, Any]] = []
        self._channel = channel
        connector = "mariadb" if mariadb else "mysql"
        settings = PipelineSettings(
            connector,  # type: ignore[arg-type]
            "shop",
            StandardNaming("shop"),
            on_notification=self.notified.append,
        )
        offset = replace(OFFSET, gtids="0-0-0") if mariadb else OFFSET
        self.progress = Progress(offset)
        self._signals = Signals(settings, lambda: 5_000_000, NoSnapshots(), hooks)
        tables = Tables(Server(Flavor(connector)))
        captured = CapturedTables(settings, tables, lambda: 0)
        self._context = SignalContext(offset, offset, self.progress, tables, captured)

    def send(self, kind: str, signal_id: str = "1", /, **data: Any) -> None:
        assert self._signals.execute(Signal(signal_id, kind, data, self._channel), self._context) == []

    @property
    def error(self) -> str:
        value = self.notified[-1]
        assert (value["id"], value["aggregate_type"], value["type"]) == ("1", "Signal", "FAILED")
        return str(value["additional_data"]["error"])

    def start(self) -> SourceOffset:
        return start_of(SourceOffset.from_json(self.progress.offset(None).to_json()))


def test_the_command_has_the_types_of_signals() -> None:
    connector = Connector()
    connector.send("none")
    assert connector.error.partition("; the types are ")[2].split(", ") == sorted({*TYPES} - {SET_INCLUDE_LIST})


def test_log_writes_the_message_with_the_position(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    connector = Connector()
    connector.send("log", message="here {}, not {}")
    position = replace(OFFSET, carried=None).to_json()
    assert f"here {position}, not {{}}" in caplog.messages
    connector.send("log")
    assert connector.error == "'message' is missing from the data"
    assert any("signal '1' of type log, received through channel file" in message for message in caplog.messages)


def test_a_position_takes_effect_at_the_next_start() -> None:
    connector = Connector()
    connector.send("set-binlog-position", binlog_filename="mysql-bin.000003", binlog_position=1234)
    assert [one["type"] for one in connector.notified] == ["COMPLETED"]
    assert connector.notified[0]["additional_data"]["next_start"].startswith(
        "the next start reads from mysql-bin.000003:1234 on"
    )
    assert connector.progress.offset(None).pos == 4, "the stream goes on meanwhile"
    start = connector.start()
    carried = {"rowtide_signal_kafka": 5, "rowtide_signal_moved_by": "1"}
    assert start == SourceOffset("mysql-bin.000003", 1234, carried=carried)
    assert start_of(start) is start, "it counts once"


@pytest.mark.parametrize(
    ("connector", "behind", "data", "answer"),
    [
        (
            "mysql",
            SourceOffset("b.000003", 500),
            {"binlog_filename": "b.000002", "binlog_position": 900},
            (
                "the next start reads from b.000002:900 on; of what was read so far, everything from there to "
                "b.000003:500 is sent again"
            ),
        ),
        (
            "mysql",
            SourceOffset("b.000003", 500),
            {"binlog_filename": "b.000003", "binlog_position": 900},
            (
                "the next start reads from b.000003:900 on; everything from b.000003:500 to there is never read, "
                "unless the connector reads it before it stops"
            ),
        ),
        (
            "mysql",
            SourceOffset("b.000003", 500),
            {"binlog_filename": "b.000003", "binlog_position": 500},
            "the next start reads from b.000003:500 on",
        ),
        (
            "mysql",
            SourceOffset("b.000003", 500, f"{UUID}:1-8"),
            {"gtid_set": f"{UUID}:1-5:12"},
            (
                f"the next start reads the transactions that are not in {UUID}:1-5:12; of what was read so far, "
                f"{UUID}:6-8 is sent again; {UUID}:12 is never read, unless the connector reads it before it stops"
            ),
        ),
        (
            "mysql",
            SourceOffset("b.000003", 500),
            {"gtid_set": f"{UUID}:1-5"},
            f"the next start reads the transactions that are not in {UUID}:1-5",
        ),
        (
            "mariadb",
            SourceOffset("b.000003", 500, "0-1-8,1-1-4"),
            {"gtid_set": "0-1-5,1-1-9"},
            (
                "the next start reads the transactions that are not in 0-1-5,1-1-9; of what was read so far, "
                "everything after the set up to 0-1-8 is sent again; everything up to 1-1-9 is never read, unless the "
                "connector reads it before it stops"
            ),
        ),
    ],
)
def test_the_answer_says_what_the_next_start_reads(
    connector: str, behind: SourceOffset, data: dict[str, Any], answer: str
) -> None:
    found = restart_position(Signal("1", "set-binlog-position", data, "http"), connector, behind)
    assert next_start(found, behind, connector) == answer


def test_a_signal_that_moves_back_before_its_own_row_counts_once() -> None:
    connector = Connector(channel="source")
    connector.send("set-binlog-position", binlog_filename="b.000001", binlog_position=4)
    connector.progress.carried = connector.start().carried
    connector.send("set-binlog-position", binlog_filename="b.000001", binlog_position=4)
    start = connector.start()
    assert (start.file, start.pos) == (OFFSET.file, OFFSET.pos), "no signal waits for a start"


def test_two_signals_that_move_back_before_their_own_rows_count_once() -> None:
    connector = Connector(channel="source")
    signals = [("1", 50), ("2", 60)]
    for signal_id, position in signals:
        connector.send("set-binlog-position", signal_id, binlog_filename="b.000001", binlog_position=position)
    start = connector.start()
    assert start.pos == 60
    connector.progress.carried = start.carried
    for signal_id, position in signals:  # both rows are read again
        connector.send("set-binlog-position", signal_id, binlog_filename="b.000001", binlog_position=position)
    assert connector.start().pos == OFFSET.pos, "no signal waits for a start"


def test_a_gtid_set_takes_effect_at_the_next_start() -> None:
    connector = Connector()
    connector.send("set-binlog-position", gtid_set=TAGGED)
    assert connector.start().gtids == TAGGED
    mariadb = Connector(mariadb=True)
    mariadb.send("set-binlog-position", gtid_set="0-1-15")
    assert mariadb.start().gtids == "0-1-15"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "the data must have 'binlog_filename' and 'binlog_position', or 'gtid_set'"),
        ({"binlog_filename": "b.000001"}, "the data must have 'binlog_filename' and 'binlog_position', or 'gtid_set'"),
        ({"binlog_filename": "b.000001", "binlog_position": 4, "gtid_set": "x"}, "the data must have either"),
        (
            {"binlog_filename": "../b.000001", "binlog_position": 4},
            "'binlog_filename' must be the name of a binlog file",
        ),
        ({"binlog_filename": "binlog", "binlog_position": 4}, "'binlog_filename' must be the name of a binlog file"),
        ({"binlog_filename": "b.000001", "binlog_position": 3}, "'binlog_position' must be a whole number"),
        ({"binlog_filename": "b.000001", "binlog_position": 2**32}, "'binlog_position' 4.29e+09 is beyond 4 GiB"),
        ({"binlog_filename": "b.000001", "binlog_position": "4"}, "'binlog_position' must be a whole number"),
        ({"binlog_filename": "b.000001", "binlog_position": True}, "'binlog_position' must be a whole number"),
        ({"gtid_set": "no set"}, "'gtid_set' is not a GTID set"),
        ({"gtid_set": ""}, "'gtid_set' is empty"),
    ],
)
def test_a_wrong_position_is_refused(data: dict[str, Any], message: str) -> None:
    connector = Connector()
    connector.send("set-binlog-position", **data)
    assert connector.error.startswith(message)
    assert connector.progress.carried == OFFSET.carried


def test_a_table_change_without_a_type_of_its_column_is_refused() -> None:
    column = {"name": "id", "jdbcType": 4, "typeName": "", "typeExpression": "INT", "position": 1, "optional": False}
    table = {"defaultCharsetName": "utf8mb4", "primaryKeyColumnNames": ["id"], "columns": [column]}
    change = {"type": "ALTER", "id": '"shop"."t"', "table": table}
    connector = Connector()
    connector.send("schema-changes", database="shop", schema="", changes=[change])
    assert connector.error.startswith("an item of 'changes' is not a table change")


def test_users_add_actions_and_replace_built_in_ones() -> None:
    called: list[Signal] = []
    connector = Connector({"refill-cache": called.append, "log": called.append})
    connector.send("refill-cache", name="x")
    connector.send("log")
    assert [(signal.type, dict(signal.data)) for signal in called] == [("refill-cache", {"name": "x"}), ("log", {})]
    assert [one["type"] for one in connector.notified] == ["COMPLETED", "COMPLETED"]


def test_an_action_that_fails_stops_nothing() -> None:
    def fails(signal: Signal) -> None:
        raise RuntimeError(f"no {signal.id}")

    connector = Connector({"refill-cache": fails})
    connector.send("refill-cache")
    assert connector.error == "its action has failed: RuntimeError('no 1')"


def test_an_action_may_refuse_its_signal() -> None:
    def refuses(_signal: Signal) -> None:
        raise SignalError("'name' is missing")

    connector = Connector({"refill-cache": refuses})
    connector.send("refill-cache")
    assert connector.error == "'name' is missing"
