"""``rowtide.values``: which defaults it selects, and what decides."""

import pytest

from rowtide.connector.config import ConfigurationError, from_properties
from rowtide.connector.config.catalogue import PROPERTIES
from rowtide.connector.config.choices import BigintUnsignedHandling, BoolHandling, FailureHandling, ZeroDateHandling
from rowtide.connector.config.model import Configuration
from rowtide.connector.engine.pipeline_settings import pipeline_settings

CANONICAL = {"rowtide.canonical.values": "true"}
MYSQL = {"connector.class": "io.debezium.connector.mysql.MySqlConnector"}
MARIADB = {"connector.class": "io.debezium.connector.mariadb.MariaDbConnector"}
JSON = "org.apache.kafka.connect.json.JsonConverter"


def chosen(config: Configuration) -> dict[str, object]:
    """The values that a configuration has of the properties with a default for exact values."""
    return {
        "skipped.operations": config.capture.skipped_operations,
        "bigint.unsigned.handling.mode": config.values.bigint_unsigned,
        "rowtide.bool.handling.mode": config.values.bool_handling,
        "zero.date.handling.mode": config.values.zero_date,
        "enable.time.adjuster": config.values.time_adjuster,
        "event.converting.failure.handling.mode": config.failure.event_converting,
        "key.converter.replace.null.with.default": config.converters.key.replace_null_with_default,
        "value.converter.replace.null.with.default": config.converters.value.replace_null_with_default,
    }


DEBEZIUM = {
    "skipped.operations": {"t"},
    "bigint.unsigned.handling.mode": BigintUnsignedHandling.LONG,
    "rowtide.bool.handling.mode": BoolHandling.BOOLEAN,
    "zero.date.handling.mode": ZeroDateHandling.EPOCH,
    "enable.time.adjuster": True,
    "event.converting.failure.handling.mode": FailureHandling.WARN,
    "key.converter.replace.null.with.default": True,
    "value.converter.replace.null.with.default": True,
}
EXACT = {
    "skipped.operations": frozenset(),
    "bigint.unsigned.handling.mode": BigintUnsignedHandling.LONG_EXACT,
    "rowtide.bool.handling.mode": BoolHandling.INT16,
    "zero.date.handling.mode": ZeroDateHandling.NULL,
    "enable.time.adjuster": False,
    "event.converting.failure.handling.mode": FailureHandling.FAIL,
    "key.converter.replace.null.with.default": False,
    "value.converter.replace.null.with.default": False,
}
TEXTS = {
    "skipped.operations": "t",
    "bigint.unsigned.handling.mode": "long",
    "rowtide.bool.handling.mode": "boolean",
    "zero.date.handling.mode": "epoch",
    "enable.time.adjuster": "true",
    "event.converting.failure.handling.mode": "warn",
    "key.converter.replace.null.with.default": "true",
    "value.converter.replace.null.with.default": "true",
}


@pytest.mark.parametrize(
    ("properties", "exact"),
    [
        ({}, True),
        ({"database.flavor": "mariadb"}, True),
        ({"connector.class": " "}, True),
        (MYSQL, False),
        (MARIADB, False),
        ({"connector.class": MYSQL["connector.class"].upper()}, False),
        ({"rowtide.values": "debezium"}, False),
        (MYSQL | {"rowtide.values": "exact"}, True),
        (MARIADB | {"rowtide.values": "EXACT"}, True),
        (MYSQL | {"rowtide.values": "debezium"}, False),
    ],
)
def test_the_class_decides_unless_the_property_does(
    properties: dict[str, str], exact: bool, valid: dict[str, str]
) -> None:
    config = from_properties(valid | properties)
    assert config.values.exact is exact
    assert chosen(config) == (EXACT if exact else DEBEZIUM)


def test_all_properties_with_a_default_for_exact_values_are_here() -> None:
    header = {"header.converter.replace.null.with.default"}  # see tests/connector/engine/test_nulls_with_defaults.py
    names = ("ignore.default.for.nullables", "optional.for.nullables")
    of_avro = {f"{side}.converter.{name}" for side in ("key", "value") for name in names}  # see test_converters
    assert {name for name, one in PROPERTIES.items() if one.exact is not None} == EXACT.keys() | of_avro | header


@pytest.mark.parametrize("name", TEXTS)
def test_each_property_wins(name: str, valid: dict[str, str]) -> None:
    config = from_properties(valid | {name: TEXTS[name]})
    assert chosen(config) == EXACT | {name: DEBEZIUM[name]}
    exact = {"true": "false", "t": "none", "long": "long_exact", "boolean": "int16", "epoch": "null", "warn": "fail"}
    json = {"key.converter": JSON, "value.converter": JSON}
    config = from_properties(valid | MYSQL | json | {name: exact[TEXTS[name]]})
    assert chosen(config) == DEBEZIUM | {name: EXACT[name]}


def test_debeziums_nulls_need_the_class_of_the_converter(valid: dict[str, str]) -> None:
    config = from_properties(valid | MYSQL | {"value.converter.replace.null.with.default": "false"})
    assert chosen(config) == DEBEZIUM
    assert ["value.converter.replace.null.with.default has no effect" in text for text in config.warnings] == [True]


@pytest.mark.parametrize(("properties", "canonical"), [(MYSQL, False), ({}, False), (MYSQL | CANONICAL, True)])
def test_one_form_of_each_value_can_be_had_with_debeziums(
    properties: dict[str, str], canonical: bool, valid: dict[str, str]
) -> None:
    config = from_properties(valid | properties)
    assert config.values.canonical is canonical
    assert config.values.exact is (not properties)
    assert chosen(config) == (DEBEZIUM if properties else EXACT)


def test_another_value_is_an_error(valid: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match=r"rowtide\.values: must be one of exact, debezium, not 'right'"):
        from_properties(valid | {"rowtide.values": "right"})


@pytest.mark.parametrize("properties", [{}, MYSQL])
def test_transforms_keep_nulls_with_exact_values(properties: dict[str, str], valid: dict[str, str]) -> None:
    transforms = {
        "transforms": "a,b",
        "transforms.a.type": "io.debezium.transforms.ExtractNewRecordState",
        "transforms.b.type": "org.apache.kafka.connect.transforms.ValueToKey",
        "transforms.b.fields": "id",
        "transforms.b.replace.null.with.default": "true",
    }
    settings = pipeline_settings(from_properties(valid | properties | transforms), "run")
    assert settings.transforms is not None
    replacing = [getattr(step.transform, "replace_null_with_default") for step in settings.transforms.chain.steps]  # noqa: B009
    assert replacing == [properties == MYSQL, True]
