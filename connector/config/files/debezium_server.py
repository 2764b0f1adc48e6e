"""Translates the configuration of Debezium Server (``application.properties``); pure.

``debezium.source.*`` are the connector's properties, ``debezium.format.*`` those of its converters, and
``debezium.sink.*`` define the destination of records. The names and their precedence are those of Debezium Server 3.
"""

import re
from collections.abc import Mapping

from rowtide.connector.config.files.layers import Layer, listed, prefixed

_JSON = "org.apache.kafka.connect.json.JsonConverter"
_JSON_FORMATS = frozenset({"json", "jsonbytearray"})
_SIDES = ("key", "value", "header")
_PRODUCER = "sink.kafka.producer."
_ALL_CLIENTS = re.compile(r"security\..+|sasl\..+|ssl\..+|client\.dns\.lookup")
"""Settings of the producer that rowtide's other clients also need to reach the same brokers."""
_TRANSLATED = re.compile(r"(?:source|sink|format|transforms|predicates)(?:\..*|$)")
_OF_THE_PROCESS = re.compile(
    r"debezium\.(?:threads|termination\.wait|engine\.factory|api\..+|sink\.kafka\.wait\..+)"
    r"|(?:quarkus|mp|smallrye)\..+|%\w+\..+"
    r"|debezium\.sink\.kafka\.producer\.(?:key|value)\.serializer"
)


def is_debezium_server(properties: Mapping[str, str]) -> bool:
    """Return whether the properties are those of Debezium Server."""
    return any(name.startswith(("debezium.source.", "debezium.sink.")) for name in properties)


def translate(properties: Mapping[str, str]) -> Layer:
    """Translate a configuration; a property without a counterpart becomes a note or a problem."""
    skipped = {name for name in properties if _OF_THE_PROCESS.fullmatch(name)}
    kept = {name: text for name, text in properties.items() if name not in skipped}
    given = prefixed(kept, "debezium.")
    problems = [
        (f"debezium.{name}", "is not known as a property of Debezium Server")
        for name in given
        if not _TRANSLATED.fullmatch(name)
    ]
    found = {name: text for name, text in kept.items() if not name.startswith("debezium.")}
    found |= {name: text for name, text in given.items() if name.startswith(("transforms", "predicates"))}
    found |= prefixed(given, "source.")
    found |= _converters(given, problems)
    found |= _sink(given, problems)
    note = (
        "the configuration of Debezium Server (debezium.source.*, debezium.format.*, debezium.sink.*) is translated. "
        f"The connector's name is {found['name']}, as in the offsets of Debezium Server. Headers are written as plain "
        "text, not as JSON"
    )
    if skipped:
        note += f". Skipped, because they concern its process: {listed(skipped)}"
    return Layer(found, (note,), tuple(problems))


def _converters(given: Mapping[str, str], problems: list[tuple[str, str]]) -> dict[str, str]:
    formats = prefixed(given, "format.")
    common = {name: text for name, text in formats.items() if name.partition(".")[0] not in _SIDES}
    for side in _SIDES:
        kind = formats.get(side, "json").strip().lower()
        if kind not in _JSON_FORMATS:
            problems.append((f"debezium.format.{side}", f"{kind} is not supported; only json is"))
    found: dict[str, str] = {}
    for side in ("key", "value"):
        found[f"{side}.converter"] = _JSON
        found |= {f"{side}.converter.{name}": text for name, text in common.items()}
        found |= {f"{side}.converter.{name}": text for name, text in prefixed(formats, f"{side}.").items()}
    return found


def _sink(given: Mapping[str, str], problems: list[tuple[str, str]]) -> dict[str, str]:
    kind = given.get("sink.type", "").strip() or "kafka"
    found = {"name": kind}
    if kind != "kafka":
        problems.append(("debezium.sink.type", f"{kind} is not supported; only kafka is. rowtide.sink has other sinks"))
        return found
    for name, text in given.items():
        setting = name.removeprefix(_PRODUCER)
        if setting != name and (setting == "bootstrap.servers" or _ALL_CLIENTS.fullmatch(setting)):
            found[setting] = text
        elif setting != name:
            found[f"producer.override.{setting}"] = text
        elif name.startswith("sink.") and name != "sink.type":
            problems.append((f"debezium.{name}", "is not translated; debezium.sink.kafka.producer.* are"))
    return found
