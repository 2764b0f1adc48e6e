"""The scenarios: which connector runs in which stage, and with which kind of schema history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.support.connector_properties import history_topic

__all__ = ["REFERENCE", "SCENARIOS", "SERVERS", "Scenario", "ServerKind"]

_HISTORY = "schema.history.internal"
_FILE = "io.debezium.storage.file.history.FileSchemaHistory"


@dataclass(frozen=True)
class ServerKind:
    """A server with which the scenarios are run.

    Attributes:
        name: its name in reports and in topic names.
        options: options of mysqld.
    """

    name: str
    options: Mapping[str, str] = field(default_factory=dict)


SERVERS = (
    ServerKind("mysql"),
    ServerKind("mysql-without-gtids", {"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"}),
    ServerKind("mariadb"),
)


@dataclass(frozen=True)
class Scenario:
    """A connector that switches between the two sides.

    Attributes:
        name: its name in reports.
        sides: the side that runs in each stage: ``D`` (Debezium) or ``R`` (rowtide).
        file: whether its schema history is a file.
        more: further properties.
        rowtide: further properties of rowtide only.
        reference: the scenario whose output must be equal.
    """

    name: str
    sides: str
    file: bool = False
    more: Mapping[str, str] = field(default_factory=dict)
    rowtide: Mapping[str, str] = field(default_factory=dict)
    reference: str = "alone"

    def history(self, prefix: str, bootstrap: str, folder: Path) -> dict[str, str]:
        """The properties of the connector's schema history."""
        if self.file:
            return {_HISTORY: _FILE, f"{_HISTORY}.file.filename": str(folder / f"{prefix}.history")}
        return history_topic(bootstrap, f"history.{prefix}")


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
