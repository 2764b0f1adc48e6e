"""The catalogue has every property of Debezium, with Debezium's defaults."""

import dataclasses
import enum
import inspect
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rowtide.connector.config import ConfigurationError, from_properties, model
from rowtide.connector.config.catalogue import FAMILIES, PROPERTIES, SECTIONS, entries
from rowtide.connector.config.catalogue.property import Property, Status
from rowtide.connector.config.property_reference import default_of, describe, markdown, name_of
from rowtide.connector.config.sections.property_reader import family_of
from rowtide.topics.filters import Patterns

DEBEZIUM: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("debezium_properties.json").read_text())[
    "properties"
]
OTHER_DEFAULTS = {
    # the two servers differ, or the default is a class that rowtide does not use
    "database.ssl.mode",
    "sourceinfo.struct.maker",
    # Debezium's implementation sets a default that the declaration does not have
    "topic.naming.strategy",
    "signal.file",
    "internal.custom.retriable.exception",
    # the parser has Debezium's list
    "internal.schema.history.internal.ddl.filter",
    # former names, which apply only if they are set
    "event.deserialization.failure.handling.mode",
    "heartbeat.topics.prefix",
    # rows are always streamed
    "snapshot.fetch.size",
}


@pytest.mark.parametrize("name", DEBEZIUM)
def test_every_property_of_debezium_is_known(name: str) -> None:
    assert name in PROPERTIES or family_of(name)


def as_text(value: object) -> str | None:
    if isinstance(value, enum.Enum):
        return str(value.value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return ",".join(value) or None
    if isinstance(value, Patterns):
        return ",".join(value.sources)
    return None if value in (None, "") else str(value)


@pytest.mark.parametrize("name", sorted(DEBEZIUM.keys() - OTHER_DEFAULTS))
def test_the_default_is_debeziums(name: str) -> None:
    property_, theirs = PROPERTIES[name], DEBEZIUM[name]
    if property_.required:
        assert theirs.get("required")
    else:
        assert (as_text(property_.default) or "").lower() == (theirs.get("default") or "").lower()


@pytest.mark.parametrize("name", [name for name, theirs in DEBEZIUM.items() if theirs.get("values")])
def test_every_value_of_debezium_is_accepted_or_refused_with_a_reason(name: str) -> None:
    property_ = PROPERTIES[name]
    for value in DEBEZIUM[name]["values"]:
        if value not in property_.refused:
            property_.kind.parse(value)


@pytest.mark.parametrize("name", [name for name, theirs in DEBEZIUM.items() if len(theirs["servers"]) == 1])
def test_properties_exist_for_the_same_servers(name: str) -> None:
    newer = {
        "gtid.ignore.on.recovery",
        "schema.history.internal.kafka.buffer.batch.size",
        "statistics.metrics.enabled",
        "memory.management.schemas.class",
        "memory.management.tables.class",
        "queue.provider.type",
        "topic.heartbeat.name",
        "legacy.snapshot.max.threads",
        "internal.legacy.snapshot.max.threads",
    }  # the MySQL connector was newer when both were asked
    if name not in newer:
        assert {flavor.value for flavor in PROPERTIES[name].flavors} == set(DEBEZIUM[name]["servers"])


@pytest.mark.parametrize("property_", PROPERTIES.values(), ids=PROPERTIES)
def test_every_default_may_be_set_explicitly(property_: Property[Any], valid: dict[str, str]) -> None:
    """Setting all defaults explicitly configures the same connector."""
    text = as_text(property_.default)
    if text is None or property_.required:
        return
    if not {"mysql"} & {flavor.value for flavor in property_.flavors}:
        return
    from_properties(valid | {property_.name: text})


def test_every_entry_has_a_description_and_a_reason_if_it_has_no_effect() -> None:
    for section in SECTIONS:
        assert section.TITLE
        for entry in entries(section):
            assert re.search(r"[.)]$", entry.doc), name_of(entry)
            assert (entry.status is Status.SUPPORTED) == (not entry.reason), name_of(entry)
            assert describe(entry)


def test_the_reference_has_every_property() -> None:
    text = markdown()
    for name in [*PROPERTIES, *(family.form for family in FAMILIES)]:
        assert f"| `{name.replace('|', chr(92) + '|')}` |" in text
    assert "| `topic.prefix` | **required** |" in text
    assert default_of(PROPERTIES["max.queue.size"]) == "8192"


def test_no_family_hides_another() -> None:
    """A name belongs to the most specific family."""
    for family in FAMILIES:
        example = {
            "producer.*": "producer.linger.ms",
            "admin.*": "admin.retries",
            "consumer.*": "consumer.fetch.min.bytes",
        }.get(family.form)
        if example is not None:
            assert family_of(example) is family


def test_a_property_that_is_not_supported_yet_must_have_its_default(valid: dict[str, str]) -> None:
    waiting = [p for p in PROPERTIES.values() if p.status is Status.NOT_YET and isinstance(p.default, bool)]
    assert waiting
    for property_ in waiting:
        from_properties(valid | {property_.name: as_text(property_.default) or ""})
        with pytest.raises(ConfigurationError, match="does not support yet"):
            from_properties(valid | {property_.name: str(not property_.default)})


WAITING = {  # properties of these are not supported yet, or have no effect: the catalogue says so
    "gtid_filter_dml",
    "max_batch_size",
    "poll_interval_ms",
    "recovery_poll_interval_ms",
    "recovery_attempts",
    "ddl_filter",
    "metric_tags",
}


def test_every_value_of_the_tree_is_used() -> None:
    """A property that is parsed but never used would be ignored silently."""
    root = Path(__file__).parents[4]
    sources = [
        path.read_text()
        for folder in (
            "connector",
            "envelope",
            "topics",
            "schema_history",
            "rowtide/canal",
            "rowtide/cli",
            "rowtide/databus",
        )
        for path in (root / folder).rglob("*.py")
        if "config" not in path.parts
    ]
    fields = {
        field.name
        for value in vars(model).values()
        if inspect.isclass(value) and value.__module__ == model.__name__ and dataclasses.is_dataclass(value)
        for field in dataclasses.fields(value)
    }
    used = {name for name in fields if any(re.search(rf"\.{name}\b", source) for source in sources)}
    shown = {"properties", "sanitizer"}  # by the tree's own method
    assert fields - used - shown <= WAITING
