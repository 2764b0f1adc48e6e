"""Rules about the channels of signals: a signal that is not read is lost silently; pure."""

import re
from collections.abc import Iterator, Mapping

from rowtide.connector.check.facts import TableFact
from rowtide.connector.check.findings import Finding
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import capture, topics

_COLUMNS = 3


def signal_findings(
    config: Configuration, tables: tuple[TableFact, ...] | None, existing: Mapping[str, int] | None
) -> Iterator[Finding]:
    """Yield findings about missing signal tables and signal topics, and channels that rowtide does not have.

    Args:
        config: the configuration.
        tables: the tables that the account can see; ``None`` if they were not queried.
        existing: the partitions of all topics; ``None`` if they were not looked up.
    """
    same = "bootstrap.servers"
    if config.signals.consumer.get(same) != config.kafka.consumer.get(same):
        existing = None  # those of another cluster
    if "jmx" in re.split(r"\s*,\s*", config.properties.get(topics.SIGNAL_CHANNELS.name, "").strip()):
        message = f"jmx does not exist here: send the signal by POST /connectors/{config.name}/signals"
        yield Finding.warning(topics.SIGNAL_CHANNELS.name, message)
    topic = config.signals.topic
    if topic is not None and existing is not None and topic not in existing:
        message = (
            f"topic {topic} does not exist, or the account may not see it: create it, with one partition, before the "
            "first signal is sent to it, or grant the account READ"
        )
        yield Finding.warning(topics.SIGNAL_TOPIC.name, message)
    elif topic is not None and existing is not None and existing[topic] > 1:
        message = f"topic {topic} has {existing[topic]} partitions, and signals are read from partition 0 only"
        yield Finding.warning(topics.SIGNAL_TOPIC.name, message)
    if tables is not None and config.signals.source:
        for database, table in sorted(config.capture.tables.always):
            yield from _about_table(database, table, tables)


def _about_table(database: str, table: str, tables: tuple[TableFact, ...]) -> Iterator[Finding]:
    wanted = f"{database}.{table}"
    found = next((one for one in tables if (one.database, one.name) == (database, table)), None)
    if found is not None and len(found.columns) >= _COLUMNS:
        return
    if found is not None:
        message = f"table {wanted} has {len(found.columns)} columns: a signal needs the columns id, type and data"
    elif alike := [one for one in tables if f"{one.database}.{one.name}".lower() == wanted.lower()]:
        names = " or ".join(f"{_part(one.database)}.{_part(one.name)}" for one in alike)
        message = f"table {wanted} does not exist, so its signals are not read: write {names}, as the server does"
    else:
        message = (
            f"table {wanted} does not exist, so no signal can be inserted. Create it (id VARCHAR(64) PRIMARY KEY, "
            "type VARCHAR(32) NOT NULL, data TEXT), correct the name, or grant the account SELECT on it"
        )
    yield Finding.warning(capture.SIGNAL_COLLECTION.name, message)


def _part(name: str) -> str:
    """Return a part of a qualified name, quoted if it contains a dot."""
    return f"`{name}`" if "." in name else name
