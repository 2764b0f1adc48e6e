"""Who runs when, and with which history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["REFERENCE", "SCENARIOS", "SERVERS", "Scenario", "ServerKind", "properties"]

_HISTORY = "schema.history.internal"
_FILE = "io.debezium.storage.file.history.FileSchemaHistory"


@dataclass(frozen=True)
class ServerKind:
    """A server that the scenarios are run with.

    Attributes:
        name: for people and for names of topics.
        connector_class: Debezium's.
        options: of mysqld.
    """

    name: str
    connector_class: str
    options: Mapping[str, str] = field(default_factory=dict)


SERVERS = (
    ServerKind("mysql", "io.debezium.connector.mysql.MySqlConnector"),
    ServerKind(
        "mysql-without-gtids",
        "io.debezium.connector.mysql.MySqlConnector",
        {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"},
    ),
    ServerKind("mariadb", "io.debezium.connector.mariadb.MariaDbConnector"),
)


@dataclass(frozen=True)
class Scenario:
    """One connector that is moved from one side to the other.

    Attributes:
        name: for people, and the connector's name.
        sides: who runs in each stage: ``D`` or ``R``.
        file: whether its history is a file.
        more: further properties.
        rowtide: properties that only rowtide has.
        reference: the scenario whose answer must be the same.
    """

    name: str
    sides: str
    file: bool = False
    more: Mapping[str, str] = field(default_factory=dict)
    rowtide: Mapping[str, str] = field(default_factory=dict)
    reference: str = "alone"


REFERENCE = Scenario("alone", "DDDDD")
_CAPTURED = {f"{_HISTORY}.store.only.captured.databases.ddl": "true"}
_REPARSED = {f"{_HISTORY}.prefer.ddl": "true"}
_TRANSACTIONS = {"provide.transaction.metadata": "true"}
SCENARIOS = (
    REFERENCE,
    Scenario("from-debezium", "DRRRR"),
    Scenario("from-rowtide", "RDDDD"),
    Scenario("back-and-forth", "DRDRD"),
    Scenario("forth-and-back", "RDRDR"),
    Scenario("exactly-once", "DRDRD", rowtide={"exactly.once.source.support": "enabled"}),
    Scenario("reparsed", "DRDRD", more=_REPARSED),
    Scenario("reparsed-from-rowtide", "RDRDR", more=_REPARSED),
    Scenario("file", "DRDRD", file=True),
    Scenario("file-from-rowtide", "RDRDR", file=True),
    Scenario("captured-alone", "DDDDD", more=_CAPTURED, reference="captured-alone"),
    Scenario("captured", "DRDRD", more=_CAPTURED, reference="captured-alone"),
    Scenario("captured-from-rowtide", "RDRDR", more=_CAPTURED, reference="captured-alone"),
    Scenario("transactions-alone", "DDDDD", more=_TRANSACTIONS, reference="transactions-alone"),
    Scenario("transactions", "DRDRD", more=_TRANSACTIONS, reference="transactions-alone"),
    Scenario("transactions-from-rowtide", "RDRDR", more=_TRANSACTIONS, reference="transactions-alone"),
)


def properties(
    scenario: Scenario, server: ServerKind, prefix: str, connection: Mapping[str, str], bootstrap: str, folder: Path
) -> dict[str, str]:
    """The connector's properties, which both sides get."""
    history = (
        {_HISTORY: _FILE, f"{_HISTORY}.file.filename": str(folder / f"{prefix}.history")}
        if scenario.file
        else {f"{_HISTORY}.kafka.bootstrap.servers": bootstrap, f"{_HISTORY}.kafka.topic": f"history.{prefix}"}
    )
    return {
        "connector.class": server.connector_class,
        "tasks.max": "1",
        **connection,
        "topic.prefix": prefix,
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        **history,
        **scenario.more,
    }
