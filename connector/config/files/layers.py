"""One configuration from several files: later files win, and converters are chosen as Kafka Connect does; pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from rowtide.connector.config.secret import masked_name

CONVERTERS = ("key.converter", "value.converter", "header.converter")

_OF_A_CONNECTOR = frozenset({"connector.class", "topic.prefix", "database.hostname"})


class Layer(NamedTuple):
    """The properties of one or several configuration files.

    Attributes:
        properties: the properties, by their names in a connector.
        notes: notes for the user on translated and omitted properties.
        problems: properties that cannot be translated, as (property, message).
    """

    properties: dict[str, str]
    notes: tuple[str, ...] = ()
    problems: tuple[tuple[str, str], ...] = ()


def merged(layers: Sequence[Layer]) -> Layer:
    """Merge files; each overrides those before it.

    A file without properties of a connector has those of a Kafka Connect worker. As in Kafka Connect, a connector with
    its own converter uses none of the worker's settings for it; otherwise, it uses all of them.
    """
    notes = [note for layer in layers for note in layer.notes]
    problems = tuple(problem for layer in layers for problem in layer.problems)
    connectors = [layer.properties for layer in layers if _is_connector(layer.properties)]
    workers = [layer.properties for layer in layers if not _is_connector(layer.properties)]
    ignored: list[tuple[bool, str]] = []  # of a connector's file or of a worker's, and the converter
    for converter in CONVERTERS if connectors and workers else ():
        if any(converter in properties for properties in connectors):
            ignored.append((False, converter))
        elif any(converter in properties for properties in workers):
            ignored.append((True, converter))
    found: dict[str, str] = {}
    overridden: set[str] = set()
    for layer in layers:
        own = _is_connector(layer.properties)
        out = {name for name in layer.properties for of, one in ignored if of is own and _belongs(name, one)}
        kept = {name: text for name, text in layer.properties.items() if name not in out}
        overridden |= {name for name, text in kept.items() if found.get(name, text) != text}
        found |= kept
        if out:
            whose, other = ("connector", "worker") if own else ("worker", "connector")
            notes.append(f"{listed(out)} of the {whose} has no effect: the {other}'s file sets the converter")
    if overridden:
        notes.append(f"{listed(overridden)}: the value of the last configuration file counts")
    return Layer(found, tuple(notes), problems)


def _is_connector(properties: Mapping[str, str]) -> bool:
    return not _OF_A_CONNECTOR.isdisjoint(properties)


def _belongs(name: str, converter: str) -> bool:
    return name == converter or name.startswith(f"{converter}.")


def listed(names: Iterable[str]) -> str:
    """Return the names of properties as text."""
    return ", ".join(masked_name(name) for name in sorted(names))


def prefixed(properties: Mapping[str, str], prefix: str) -> dict[str, str]:
    """Return the properties whose names start with a prefix, by the rest of their names."""
    return {name.removeprefix(prefix): text for name, text in properties.items() if name.startswith(prefix)}
