"""The records of Kafka Connect's configuration topic (``config.storage.topic``). Pure.

Each key is the name of a setting, each value JSON without a schema, as Kafka Connect's ``KafkaConfigBackingStore``
writes them. Records of tasks, sessions and loggers are left unchanged, because a fleet does not need them.
"""

import enum
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

__all__ = [
    "BrokenRecord",
    "Configurations",
    "Connector",
    "ConnectorPlace",
    "Level",
    "Restart",
    "Target",
    "connector_record",
    "level_record",
    "place_record",
    "restart_record",
    "target_record",
]

Record = tuple[bytes, bytes | None]
"""A key and a value; ``None`` deletes."""

_CONNECTOR = "connector-"
_TARGET = "target-state-"
_RESTART = "restart-connector-"
_LEVEL = "logger-cluster-"
_PLACE = "rowtide-partition-"


class Target(enum.StrEnum):
    """The target state of a connector."""

    STARTED = "STARTED"
    PAUSED = "PAUSED"
    STOPPED = "STOPPED"


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector of the fleet.

    Attributes:
        name: its name.
        properties: its configuration as written, including references.
        target: its target state.
        revision: the offset of the record with its configuration. A larger one means a new configuration.
        place: the partition to which it was moved, and the time; ``None`` if it was not moved.
    """

    name: str
    properties: Mapping[str, str]
    target: Target
    revision: int
    place: "ConnectorPlace | None" = None


@dataclass(frozen=True, slots=True)
class ConnectorPlace:
    """The partition of a connector, instead of the one that follows from its name.

    Attributes:
        partition: the partition of the topic, whose owner runs the connector.
        moved_ms: when it was moved there, in milliseconds since the epoch.
    """

    partition: int
    moved_ms: int


@dataclass(frozen=True, slots=True)
class Restart:
    """A request to restart a connector.

    Attributes:
        name: its name.
        only_failed: restart it only if it has failed.
        offset: of the record.
    """

    name: str
    only_failed: bool
    offset: int


@dataclass(frozen=True, slots=True)
class Level:
    """A request to set the level of a logger on all workers.

    Attributes:
        logger: its name.
        level: the level.
    """

    logger: str
    level: str


class BrokenRecord(ValueError):
    """A record of the topic cannot be used. Earlier records stay valid."""


class Configurations:
    """The connectors of a configuration topic, from its records in their order."""

    def __init__(self) -> None:
        self._connectors: dict[str, Connector] = {}
        self._targets: dict[str, Target] = {}
        self._places: dict[str, ConnectorPlace] = {}

    def apply(self, key: bytes | None, value: bytes | None, offset: int) -> Restart | Level | None:
        """Apply the next record.

        Returns:
            The request, if the record is one.

        Raises:
            BrokenRecord: it cannot be read.
        """
        setting = (key or b"").decode("utf-8", "replace")
        if setting.startswith(_RESTART):
            name = setting.removeprefix(_RESTART)
            return None if value is None else Restart(name, _fields(value).get("only-failed") is True, offset)
        if setting.startswith(_LEVEL):
            level = None if value is None else _fields(value).get("level")
            return Level(setting.removeprefix(_LEVEL), level) if isinstance(level, str) else None
        if setting.startswith(_PLACE):
            self._place(setting.removeprefix(_PLACE), value)
        elif setting.startswith(_TARGET):
            self._aim(setting.removeprefix(_TARGET), value)
        elif setting.startswith(_CONNECTOR):
            self._configure(setting.removeprefix(_CONNECTOR), value, offset)
        return None

    def _configure(self, name: str, value: bytes | None, offset: int) -> None:
        if value is None:
            self._connectors.pop(name, None)
            return
        properties = _fields(value).get("properties")
        if not isinstance(properties, dict) or not all(
            isinstance(text, str) or text is None for text in properties.values()
        ):
            raise BrokenRecord('its "properties" are not an object of strings')
        given = {key: text for key, text in properties.items() if text is not None}
        target, place = self._targets.get(name, Target.STARTED), self._places.get(name)
        self._connectors[name] = Connector(name, given, target, offset, place)

    def _place(self, name: str, value: bytes | None) -> None:
        if value is None:
            self._places.pop(name, None)
        else:
            fields = _fields(value)
            partition, moved_ms = fields.get("partition"), fields.get("moved_ms")
            if not isinstance(partition, int) or not isinstance(moved_ms, int) or partition < 0:
                raise BrokenRecord("it has no partition and time")
            self._places[name] = ConnectorPlace(partition, moved_ms)
        if name in self._connectors:
            self._connectors[name] = replace(self._connectors[name], place=self._places.get(name))

    def _aim(self, name: str, value: bytes | None) -> None:
        if value is None:
            self._targets.pop(name, None)
            target = Target.STARTED
        else:
            fields = _fields(value)
            text = fields.get("state.v2") or fields.get("state")
            try:
                target = Target(str(text))
            except ValueError:
                raise BrokenRecord(f"its state {text!r} is not one of {', '.join(Target)}") from None
            self._targets[name] = target
        if name in self._connectors:
            self._connectors[name] = replace(self._connectors[name], target=target)

    @property
    def connectors(self) -> Mapping[str, Connector]:
        """The connectors by name."""
        return self._connectors


def connector_record(name: str, properties: Mapping[str, str] | None) -> Record:
    """Return the record that configures a connector, or deletes its configuration (``None``)."""
    return f"{_CONNECTOR}{name}".encode(), None if properties is None else _json({"properties": dict(properties)})


def target_record(name: str, target: Target | None) -> Record:
    """Return the record with the target state of a connector; ``None`` deletes it with the connector.

    Kafka Connect before 3.5 has no stopped connectors, and treats them as paused.
    """
    if target is None:
        return f"{_TARGET}{name}".encode(), None
    old = Target.PAUSED if target is Target.STOPPED else target
    return f"{_TARGET}{name}".encode(), _json({"state": old, "state.v2": target})


def place_record(name: str, place: ConnectorPlace | None) -> Record:
    """Return the record that moves a connector to another partition, or back to that of its name (``None``).

    Kafka Connect has no such records: it skips them, and logs that it does.
    """
    value = None if place is None else _json({"partition": place.partition, "moved_ms": place.moved_ms})
    return f"{_PLACE}{name}".encode(), value


def restart_record(name: str, *, only_failed: bool) -> Record:
    """Return the record that requests a restart."""
    return f"{_RESTART}{name}".encode(), _json({"include-tasks": True, "only-failed": only_failed})


def level_record(logger: str, level: str) -> Record:
    """Return the record that requests a level."""
    return f"{_LEVEL}{logger}".encode(), _json({"level": level})


def _fields(value: bytes) -> dict[str, Any]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError) as error:
        raise BrokenRecord(f"it is not JSON ({error})") from None
    if not isinstance(found, dict):
        raise BrokenRecord("it is not a JSON object")
    return found


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()
