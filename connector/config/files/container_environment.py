"""Reads environment files of containers: of Kafka Connect's images, and of Debezium Server; pure.

Kafka Connect's images turn every variable that starts with ``CONNECT_`` into a property, and a few without a prefix.
Debezium Server reads ``DEBEZIUM_SOURCE_DATABASE_HOSTNAME`` as ``debezium.source.database.hostname``.
"""

import re
from collections.abc import Iterable, Mapping

from rowtide.connector.config.files.layers import Layer, listed

_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]*")
_WITHOUT_PREFIX = frozenset(
    {
        "BOOTSTRAP_SERVERS",
        "CONFIG_STORAGE_TOPIC",
        "GROUP_ID",
        "KEY_CONVERTER",
        "OFFSET_FLUSH_INTERVAL_MS",
        "OFFSET_FLUSH_TIMEOUT_MS",
        "OFFSET_STORAGE_TOPIC",
        "STATUS_STORAGE_TOPIC",
        "VALUE_CONVERTER",
    }
)
"""Properties that Debezium's image of Kafka Connect also takes without a prefix."""
_PREFIXES = ("DEBEZIUM_", "QUARKUS_")


def is_environment(properties: Mapping[str, str]) -> bool:
    """Return whether all names are those of variables, and some belong to such a container."""
    return all(map(_VARIABLE.fullmatch, properties)) and any(
        name in _WITHOUT_PREFIX or name.startswith(("CONNECT_", "DEBEZIUM_")) for name in properties
    )


def translate(variables: Mapping[str, str], known: Iterable[str]) -> Layer:
    """Translate variables to properties; all others are omitted.

    Args:
        variables: the variables.
        known: names of properties, whose upper-case letters are restored.
    """
    spelling = {name.lower(): name for name in known}
    found: dict[str, str] = {}
    skipped: set[str] = set()
    for variable, text in variables.items():
        if variable in _WITHOUT_PREFIX or variable.startswith(_PREFIXES):
            plain = variable
        elif variable.startswith("CONNECT_") and not variable.startswith("CONNECT_LOG4J"):
            plain = variable.removeprefix("CONNECT_")
        else:
            skipped.add(variable)
            continue
        name = plain.lower().replace("_", ".")
        found[spelling.get(name, name)] = text.strip()
    notes = ["the variables of a container are translated to properties"]
    if skipped:
        notes.append(f"skipped, because they concern the container: {listed(skipped)}")
    return Layer(found, tuple(notes))


def parse_environment_file(text: str) -> dict[str, str]:
    """Return the variables of a file for ``docker run --env-file`` or Compose: ``NAME=value``, optionally in quotes.

    Raises:
        ValueError: a line has a different form.
    """
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        plain = line.strip().removeprefix("export ")
        if not plain or plain.startswith("#"):
            continue
        name, equals, value = plain.partition("=")
        if not equals:
            raise ValueError(f"line {number}: it must have the form NAME=value")
        quoted = re.fullmatch(r"(['\"])(.*)\1", value.strip())
        found[name.strip()] = quoted[2] if quoted else value.strip()
    return found
