"""The converters of keys, values and headers: their classes, their settings, and what is wrong with them."""

import pytest

from rowtide.connector.config import Configuration, ConfigurationError, from_properties
from rowtide.connector.config.choices import ConverterClass, HeaderConverterClass
from rowtide.connector.config.model import (
    AvroConverterConfig,
    CloudEventsConverterConfig,
    JsonConverterConfig,
    PlainConverterConfig,
    ProtobufConverterConfig,
)
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.converters.registry import SchemaIds, SubjectNames
from tests.support import configurations

JSON = "org.apache.kafka.connect.json.JsonConverter"
AVRO = "io.confluent.connect.avro.AvroConverter"
CLOUD_EVENTS = "io.debezium.converters.CloudEventsConverter"
BINARY = "io.debezium.converters.BinaryDataConverter"
MYSQL = "io.debezium.connector.mysql.MySqlConnector"
REGISTRY = {"value.converter": AVRO, "value.converter.schema.registry.url": "http://a:8081,http://b:8081"}


def configured(properties: dict[str, str]) -> Configuration:
    return from_properties(configurations.PROPERTIES | properties)


def problems_of(properties: dict[str, str]) -> dict[str, str]:
    with pytest.raises(ConfigurationError) as caught:
        configured(properties)
    return {problem.property: problem.message for problem in caught.value.problems}


def avro(properties: dict[str, str]) -> AvroConverterConfig:
    found = configured(REGISTRY | properties).converters.value
    assert isinstance(found, AvroConverterConfig)
    return found


def test_avro_has_its_settings() -> None:
    found = avro(
        {
            "value.converter.auto.register.schemas": "false",
            "value.converter.use.latest.version": "true",
            "value.converter.value.subject.name.strategy": SubjectNames.RECORD.value,
            "value.converter.value.schema.id.serializer": "HeaderSchemaIdSerializer",
            "value.converter.connect.meta.data": "false",
            "value.converter.scrub.invalid.names": "true",
            "value.converter.discard.type.doc.default": "true",
            "value.converter.http.read.timeout.ms": "1500",
        }
    )
    assert found.registry.urls == ("http://a:8081", "http://b:8081")
    assert found.registry.latest_version
    assert not found.registry.auto_register
    assert found.registry.timeout_s == 1.5
    assert found.format == AvroFormat(False, True, True, False)
    assert found.subjects is SubjectNames.RECORD
    assert found.ids is SchemaIds.HEADER


def test_settings_of_confluents_that_no_record_of_debezium_needs_change_nothing() -> None:
    """``flatten.singleton.unions`` is about Connect's structs of unions, which Debezium does not write."""
    others = {
        "flatten.singleton.unions": "false",
        "enhanced.avro.schema.support": "true",
        "generalized.sum.type.support": "true",
        "allow.optional.map.keys": "true",
    }
    assert avro({f"value.converter.{name}": value for name, value in others.items()}) == avro({})


def test_simple_names_of_classes_are_accepted_as_in_kafka_connect() -> None:
    found = configured({"key.converter": "StringConverter"}).converters.key
    assert found == PlainConverterConfig(ConverterClass.STRING)


def test_a_null_stays_null_with_exact_values_and_becomes_the_default_with_debeziums() -> None:
    assert not avro({}).replace_null_with_default
    assert avro({"connector.class": MYSQL}).replace_null_with_default
    name = "value.converter.ignore.default.for.nullables"
    assert not avro({"connector.class": MYSQL, name: "true"}).replace_null_with_default
    assert avro({name: "false"}).replace_null_with_default


@pytest.mark.parametrize(
    ("properties", "name", "message"),
    [
        ({"value.converter.schema.registry.url": ""}, "value.converter.schema.registry.url", "is required"),
        ({"value.converter.schema.registry.url": "a:8081"}, "value.converter.schema.registry.url", "not of the form"),
        (
            {"value.converter.basic.auth.user.info": "me:geheim"},
            "value.converter.basic.auth.user.info",
            "needs value.converter.basic.auth.credentials.source=USER_INFO",
        ),
        (
            {"value.converter.basic.auth.credentials.source": "USER_INFO"},
            "value.converter.basic.auth.user.info",
            "is required",
        ),
        (
            {"value.converter.value.subject.name.strategy": "com.example.Mine"},
            "value.converter.value.subject.name.strategy",
            "is not supported",
        ),
        ({"rowtide.sink": "stdout"}, "value.converter", "writes JSON"),
        (
            {"value.converter.schema.registry.ssl.truststore.location": "/nowhere/trust.jks"},
            "value.converter.schema.registry.ssl.truststore.location",
            "cannot be read",
        ),
    ],
)
def test_what_is_wrong_is_named(properties: dict[str, str], name: str, message: str) -> None:
    found = problems_of(REGISTRY | properties)
    assert found.keys() == {name}
    assert message in found[name]
    assert "geheim" not in found[name]


def test_the_password_in_a_url_is_not_shown() -> None:
    found = problems_of({"value.converter": AVRO, "value.converter.schema.registry.url": "ftp://me:geheim@a"})
    assert "geheim" not in str(found)


def test_a_registry_without_a_converter_asks_for_the_workers() -> None:
    found = problems_of({"value.converter.schema.registry.url": "http://registry:8081"})
    assert found.keys() == {"value.converter"}
    assert "Give the worker's file as well, or set value.converter" in found["value.converter"]


def test_settings_of_another_converter_have_no_effect() -> None:
    given = {"value.converter": JSON, "value.converter.schema.registry.url": "http://registry:8081"}
    (warning,) = configured(given).warnings
    assert warning == "value.converter.schema.registry.url has no effect with value.converter=JsonConverter"
    (warning,) = configured(REGISTRY | {"value.converter.schemas.enable": "false"}).warnings
    assert warning == "value.converter.schemas.enable has no effect with value.converter=AvroConverter"


def test_the_latest_version_needs_that_nothing_is_registered() -> None:
    (warning,) = configured(REGISTRY | {"value.converter.use.latest.version": "true"}).warnings
    assert "has no effect without value.converter.auto.register.schemas=false" in warning


def test_protobuf_is_never_written_with_another_version() -> None:
    given = {
        "value.converter": "io.confluent.connect.protobuf.ProtobufConverter",
        "value.converter.use.latest.version": "true",
        "value.converter.auto.register.schemas": "false",
    }
    config = configured(REGISTRY | given)
    found = config.converters.value
    assert isinstance(found, ProtobufConverterConfig)
    assert not found.registry.latest_version
    assert any("use.latest.version has no effect" in warning for warning in config.warnings)


def cloud_events(properties: dict[str, str]) -> CloudEventsConverterConfig:
    found = configured({"value.converter": CLOUD_EVENTS} | properties).converters.value
    assert isinstance(found, CloudEventsConverterConfig)
    return found


def test_cloud_events_have_settings_of_json_and_avro() -> None:
    found = cloud_events(
        {
            "value.converter.serializer.type": "avro",
            "value.converter.data.serializer.type": "avro",
            "value.converter.avro.schema.registry.url": "http://a:8081",
            "value.converter.json.schemas.enable": "false",
        }
    )
    assert not found.json.schemas_enable
    assert found.avro is not None
    assert found.avro.registry.urls == ("http://a:8081",)
    assert found.metadata == "value"
    assert found.fields == {"id": "generate", "type": "generate", "traceparent": "header", "dataSchemaName": "generate"}


@pytest.mark.parametrize(
    ("properties", "name", "message"),
    [
        ({"serializer.type": "avro"}, "data.serializer.type", "must be avro"),
        ({"data.serializer.type": "avro"}, "avro.schema.registry.url", "is required"),
        ({"json.schemas.enabled": "true"}, "json.schemas.enabled", "is not a known property"),
        ({"json.schemas.enable": "ja"}, "json.schemas.enable", "must be 'true' or 'false', not 'ja'"),
        ({"data.serializer.type": "avro", "avro.schema.registry.url": "http://a:8081",
          "avro.value.schema.id.serializer": "io.confluent.kafka.serializers.schema.id.HeaderSchemaIdSerializer"},
         "avro.value.schema.id.serializer", "cannot be used in a CloudEvent"),
        ({"metadata.source": "elsewhere"}, "metadata.source", "must begin with value or header"),
        ({"metadata.source": "value,id:value"}, "metadata.source", "'id:value' is not"),
        ({"metadata.source": "value,id:generate", "opentelemetry.tracing.attributes.enable": "true"},
         "metadata.source", "must have traceparent:header"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_cloud_events_is_named(properties: dict[str, str], name: str, message: str) -> None:
    given = {f"value.converter.{one}": text for one, text in properties.items()}
    found = problems_of({"value.converter": CLOUD_EVENTS} | given)
    assert message in found[f"value.converter.{name}"]


def test_binary_data_may_have_another_converter_for_the_rest() -> None:
    given = {
        "value.converter": BINARY,
        "value.converter.delegate.converter.type": JSON,
        "value.converter.delegate.converter.type.schemas.enable": "false",
    }
    found = configured(given).converters.value
    assert isinstance(found, PlainConverterConfig)
    assert found.delegate is not None
    assert not found.delegate.schemas_enable
    assert "must be" in problems_of(given | {"value.converter.delegate.converter.type": AVRO}).popitem()[1]


def test_headers_have_a_converter() -> None:
    assert configured({}).converters.header is HeaderConverterClass.SIMPLE
    found = configured({"header.converter": JSON, "header.converter.schemas.enable": "false"}).converters.header
    assert isinstance(found, JsonConverterConfig)
    assert not found.schemas_enable


APICURIO = {
    "value.converter": "io.apicurio.registry.utils.converter.AvroConverter",
    "value.converter.apicurio.registry.url": "http://a:8080/apis/registry/v2",
    "value.converter.apicurio.registry.auto-register": "true",
    "value.converter.apicurio.registry.as-confluent": "true",
    "value.converter.apicurio.registry.use-id": "contentId",
    "value.converter.apicurio.registry.headers.enabled": "false",
}


def test_apicurios_converter_writes_as_confluents_does() -> None:
    found = configured(APICURIO).converters.value
    assert isinstance(found, AvroConverterConfig)
    assert found.registry.urls == ("http://a:8080/apis/ccompat/v7",)
    assert found.registry.auto_register
    wrong = problems_of({name: text for name, text in APICURIO.items() if "registry.u" in name or name[-1] == "r"})
    assert wrong.keys() == {
        "value.converter.apicurio.registry.as-confluent",
        "value.converter.apicurio.registry.headers.enabled",
    }


def test_the_simple_name_of_two_classes_is_that_of_confluents() -> None:
    found = configured(REGISTRY | {"value.converter": "AvroConverter"}).converters.value
    assert isinstance(found, AvroConverterConfig)


def test_protobuf_tells_null_from_zero_with_exact_values() -> None:
    given = REGISTRY | {"value.converter": "io.confluent.connect.protobuf.ProtobufConverter"}
    found = configured(given).converters.value
    assert isinstance(found, ProtobufConverterConfig)
    assert found.format.optional_for_nullables
    debezium = configured(given | {"connector.class": MYSQL}).converters.value
    assert isinstance(debezium, ProtobufConverterConfig)
    assert not debezium.format.tells_null
    wrapped = configured(given | {"value.converter.wrapper.for.nullables": "true"}).converters.value
    assert isinstance(wrapped, ProtobufConverterConfig)
    assert not wrapped.format.optional_for_nullables
    assert wrapped.format.tells_null
    chosen = {f"value.converter.{name}.for.nullables": "true" for name in ("wrapper", "optional")}
    both = configured(given | chosen).converters.value
    assert isinstance(both, ProtobufConverterConfig)
    assert both.format.optional_for_nullables
    assert both.format.wrapper_for_nullables


@pytest.mark.parametrize("converter", [BINARY, "org.apache.kafka.connect.converters.ByteArrayConverter"])
@pytest.mark.parametrize("side", ["key", "value"])
def test_bytes_need_a_transform_that_makes_them(side: str, converter: str) -> None:
    given = {f"{side}.converter": converter}
    assert "without transforms every record is a struct" in problems_of(given)[f"{side}.converter"]
    router = {"transforms": "outbox", "transforms.outbox.type": "io.debezium.transforms.outbox.EventRouter"}
    configured(given | router)
