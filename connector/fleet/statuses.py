"""The records of Kafka Connect's status topic (``status.storage.topic``). Pure.

Keys and values are those of Kafka Connect's ``KafkaStatusBackingStore``. A connector has one task, 0.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

Record = tuple[bytes, bytes | None]

_CONNECTOR = "status-connector-"
_TOPIC, _OF_CONNECTOR = "status-topic-", ":connector-"
_STATES = frozenset({"UNASSIGNED", "RUNNING", "PAUSED", "FAILED", "STOPPED", "RESTARTING"})


@dataclass(frozen=True, slots=True)
class ConnectorStatus:
    """The status of a connector as reported by a worker.

    Attributes:
        state: ``RUNNING``, ``PAUSED``, ``STOPPED``, ``FAILED``, ``RESTARTING`` or ``UNASSIGNED``.
        worker_id: the worker, as host and port of its web server.
        generation: the generation of the consumer group in which the worker reports it.
        trace: why it has failed, or no worker fits; empty otherwise.
        load: bytes per second that it reads and writes, if the fleet balances loads; ``None`` if that is not known.
        movable: whether it could currently move to another worker. Neither load nor movable counts when statuses are
            compared.
        checked: the digest of the configuration with which it runs; empty until its start has passed all checks.
    """

    state: str
    worker_id: str
    generation: int
    trace: str = ""
    load: int | None = field(default=None, compare=False)
    movable: bool = field(default=False, compare=False)
    checked: str = ""


class Statuses:
    """The newest statuses and the topics of connectors, from the records of the topic in their order."""

    def __init__(self) -> None:
        self._found: dict[str, ConnectorStatus] = {}
        self._topics: dict[str, set[str]] = {}

    def apply(self, key: bytes | None, value: bytes | None) -> str:
        """Apply the next record. An unreadable record is ignored; the next one with its key replaces it.

        Returns:
            The connector whose status the record is; empty for other records.
        """
        name = (key or b"").decode("utf-8", "replace")
        if name.startswith(_TOPIC):
            topic, _, connector = name.removeprefix(_TOPIC).partition(_OF_CONNECTOR)
            known = self._topics.setdefault(connector, set())
            (known.discard if value is None else known.add)(topic)
            return ""
        if not name.startswith(_CONNECTOR):
            return ""
        name = name.removeprefix(_CONNECTOR)
        if value is None:
            self._found.pop(name, None)
            return name
        try:
            fields = json.loads(value)
            state, worker = fields["state"], fields["worker_id"]
            generation, trace = int(fields["generation"]), fields.get("trace") or ""
            load, movable = fields.get("rowtide_load"), fields.get("rowtide_movable") is True
            checked = str(fields.get("rowtide_checked") or "")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return name
        if state in _STATES:
            rate = load if isinstance(load, int) else None
            self._found[name] = ConnectorStatus(state, str(worker), generation, str(trace), rate, movable, checked)
        return name

    @property
    def by_name(self) -> Mapping[str, ConnectorStatus]:
        """The statuses by name."""
        return self._found

    def topics(self, name: str) -> frozenset[str]:
        """Return the topics to which a connector has sent records since the last reset."""
        return frozenset(self._topics.get(name, ()))


def topic_record(topic: str, name: str, at_ms: int | None) -> Record:
    """Return the record that says that a connector has written to a topic, or a tombstone for it.

    Args:
        topic: the topic.
        name: of the connector.
        at_ms: when, in milliseconds since the epoch; ``None`` for the tombstone.
    """
    found = {"name": topic, "connector": name, "task": 0, "discoverTimestamp": at_ms}
    value = None if at_ms is None else json.dumps({"topic": found}, separators=(",", ":")).encode()
    return f"{_TOPIC}{topic}{_OF_CONNECTOR}{name}".encode(), value


def status_records(name: str, status: ConnectorStatus | None) -> Iterator[Record]:
    """Yield the records of a connector and its task; ``None`` deletes them. A stopped connector has no task."""
    value = None if status is None else _value(status)
    yield f"{_CONNECTOR}{name}".encode(), value
    yield f"status-task-{name}-0".encode(), None if status is None or status.state == "STOPPED" else value


def _value(status: ConnectorStatus) -> bytes:
    content: dict[str, object] = {
        "state": status.state,
        "trace": status.trace or None,
        "worker_id": status.worker_id,
        "generation": status.generation,
    }
    # Kafka Connect skips fields that it does not know
    if status.load is not None:
        content |= {"rowtide_load": status.load, "rowtide_movable": status.movable}
    if status.checked:
        content["rowtide_checked"] = status.checked
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
