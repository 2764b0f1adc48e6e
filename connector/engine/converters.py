"""Makes the converters of keys, values and headers from their configuration."""

from collections.abc import Mapping
from typing import cast

from rowtide.connector.config.choices import ConverterClass, HeaderConverterClass
from rowtide.connector.config.model import (
    AvroConverterConfig,
    CloudEventsConverterConfig,
    ConverterConfig,
    JsonConverterConfig,
    ProtobufConverterConfig,
    RegistryConfig,
)
from rowtide.connector.errors import ConnectorError
from rowtide.envelope.converters.cloud_events import CloudEventsConverter, CloudEventsFormat, MetadataSource
from rowtide.envelope.converters.converter import Converter, HeaderConverter
from rowtide.envelope.converters.json import JsonConverter
from rowtide.envelope.converters.plain import (
    BinaryDataConverter,
    ByteArrayConverter,
    SimpleHeaderConverter,
    StringConverter,
)
from rowtide.envelope.converters.protobuf import ProtobufConverter
from rowtide.envelope.converters.registry import Registry
from rowtide.envelope.json.text import JsonFormat
from rowtide.envelope.name_adjustment import schema_name_adjuster
from rowtide.envelope.settings import JsonSettings


def converter(config: ConverterConfig) -> Converter:
    """Make the converter of keys or of values.

    Raises:
        ConnectorError: a package that it needs is not installed.
    """
    if isinstance(config, JsonConverterConfig):
        return JsonConverter(json_settings(config))
    if isinstance(config, AvroConverterConfig):
        try:
            from rowtide.envelope.converters.avro import AvroConverter  # noqa: PLC0415 - needs the extra avro

            return AvroConverter(_registry(config.registry), config.format, config.subjects, config.ids)
        except ModuleNotFoundError as error:
            raise _missing(ConverterClass.AVRO, error) from error
    if isinstance(config, ProtobufConverterConfig):
        try:
            return ProtobufConverter(_registry(config.registry), config.format, config.subjects, config.ids)
        except ModuleNotFoundError as error:
            raise _missing(ConverterClass.PROTOBUF, error) from error
    if isinstance(config, CloudEventsConverterConfig):
        return _cloud_events(config)
    if config.converter is ConverterClass.STRING:
        return StringConverter()
    if config.converter is ConverterClass.BYTES:
        return ByteArrayConverter()
    return BinaryDataConverter(None if config.delegate is None else JsonConverter(json_settings(config.delegate)))


def header_converter(config: JsonConverterConfig | HeaderConverterClass, *, exact_values: bool) -> HeaderConverter:
    """Make the converter of headers."""
    if isinstance(config, JsonConverterConfig):
        return JsonConverter(json_settings(config))
    if config is HeaderConverterClass.STRING:
        return StringConverter()
    if config is HeaderConverterClass.BYTES:
        return ByteArrayConverter()
    return SimpleHeaderConverter(replace_null_with_default=not exact_values)


def json_settings(config: JsonConverterConfig) -> JsonSettings:
    """Return the settings of ``JsonConverter``."""
    return JsonSettings(
        config.schemas_enable, JsonFormat(config.decimal_format.value, config.replace_null_with_default)
    )


def _cloud_events(config: CloudEventsConverterConfig) -> CloudEventsConverter:
    sources = cast("Mapping[str, MetadataSource]", config.fields)
    avro, urls = config.avro, () if config.avro is None else config.avro.registry.urls
    settings = CloudEventsFormat(
        serializer=config.serializer.value,
        data_serializer=config.data_serializer.value,
        json=json_settings(config.json),
        extensions=config.extensions,
        tracing=config.tracing,
        adjust_schema_name=schema_name_adjuster(config.schema_names.value),
        schema_name=config.schema_name,
        metadata=cast("MetadataSource", config.metadata),
        fields=sources,
        registry_url=",".join(urls),
    )
    return CloudEventsConverter(settings, None if avro is None else converter(avro))


def _registry(config: RegistryConfig) -> Registry:
    from rowtide.connector.schema_registry import SchemaRegistry  # noqa: PLC0415 - needs the extra avro

    return SchemaRegistry(config)


def _missing(chosen: ConverterClass, error: ModuleNotFoundError) -> ConnectorError:
    return ConnectorError(f"{chosen.value} needs the package {error.name}: pip install 'rowtide[avro]'")
