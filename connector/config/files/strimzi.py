"""Translates the Kubernetes resources of Strimzi, ``KafkaConnector`` and ``KafkaConnect``, to properties; pure."""

from collections.abc import Mapping
from typing import Any

CONNECTOR, WORKER = "KafkaConnector", "KafkaConnect"

_OFFSETS_TOPIC = "connect-cluster-offsets"
"""Strimzi's default of ``offset.storage.topic``, which differs from Kafka Connect's."""
_NAMES = {
    CONNECTOR: {"class": "connector.class", "tasksMax": "tasks.max"},
    WORKER: {
        "bootstrapServers": "bootstrap.servers",
        "groupId": "group.id",
        "offsetStorageTopic": "offset.storage.topic",
        "configStorageTopic": "config.storage.topic",
        "statusStorageTopic": "status.storage.topic",
    },
}
_NOT_TRANSLATED = {
    "tls": "the certificates of the brokers: set ssl.truststore.location and security.protocol",
    "authentication": "the log-in to Kafka: set security.protocol and sasl.* or ssl.keystore.location",
    "pause": "start or stop the process instead",
    "state": "start or stop the process instead",
}


def is_resource(document: Any) -> bool:
    """Return whether a document is one of these resources."""
    return (
        isinstance(document, Mapping) and document.get("kind") in _NAMES and isinstance(document.get("spec"), Mapping)
    )


def properties_of(resource: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the properties of a resource, and notes about properties that are not translated.

    Raises:
        ValueError: ``spec.config`` is not a map of properties.
    """
    kind, spec = resource["kind"], resource["spec"]
    config = spec.get("config") or {}
    if not isinstance(config, Mapping):
        raise ValueError("spec.config must be a map of properties")  # noqa: TRY004 - the file is wrong
    found: dict[str, Any] = {} if kind == CONNECTOR else {"offset.storage.topic": _OFFSETS_TOPIC}
    found |= config
    found |= {name: spec[field] for field, name in _NAMES[kind].items() if field in spec}
    metadata = resource.get("metadata")
    if kind == CONNECTOR and isinstance(metadata, Mapping) and "name" in metadata:
        found["name"] = metadata["name"]
    notes = [
        f"spec.{field} of the {kind} is not translated: {reason}"
        for field, reason in _NOT_TRANSLATED.items()
        if field in spec
    ]
    return found, notes
