"""The converters of keys, values and headers; pure."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rowtide.connector.config.catalogue import connect, converters
from rowtide.connector.config.catalogue.converters import ConverterProperties
from rowtide.connector.config.catalogue.property import Property
from rowtide.connector.config.choices import ConverterClass, ErrorsTolerance, HeaderConverterClass, Serializer
from rowtide.connector.config.kafka import clients
from rowtide.connector.config.kafka.clients import ClientKind, ClientSettings
from rowtide.connector.config.model import (
    AvroConverterConfig,
    CloudEventsConverterConfig,
    ConverterConfig,
    ConvertersConfig,
    JsonConverterConfig,
    PlainConverterConfig,
    ProtobufConverterConfig,
    RegistryConfig,
)
from rowtide.connector.config.sections.property_reader import PropertyReader
from rowtide.envelope.avro.schemas import AvroFormat
from rowtide.envelope.converters.registry import SchemaIds, SubjectNames
from rowtide.envelope.protobuf.messages import ProtobufFormat
from rowtide.topics.addresses import url_problem

T = TypeVar("T")


def converters_config(reader: PropertyReader) -> ConvertersConfig:
    """Return the converters of keys, values and headers."""
    return ConvertersConfig(
        _converter(_Settings(reader, converters.KEY)),
        _converter(_Settings(reader, converters.VALUE)),
        _header_converter(reader),
        reader[connect.ERRORS_TOLERANCE] is ErrorsTolerance.ALL,
    )


@dataclass(frozen=True, slots=True)
class _Settings:
    """The settings of one converter, or of a converter within it, whose names have an additional prefix.

    Attributes:
        reader: reads properties.
        given: the properties of the converter of keys or of values.
        inner: the prefix of a converter within it: ``json.``.
    """

    reader: PropertyReader
    given: ConverterProperties
    inner: str = ""

    def __getitem__(self, one: Property[T]) -> T:
        if not self.inner:
            return self.reader[one]
        name = self.name(one)
        text = self.reader.properties.get(name)
        if text is None:
            return one.default_for(exact=self.reader.exact)
        try:
            return one.kind.parse(text)
        except ValueError as error:
            self.problem(one, f"{error}{f', not {text!r}' if one.kind.shown else ''}")
            return one.default

    @property
    def prefix(self) -> str:
        """``key.converter.`` or ``value.converter.``, and the prefix of an inner converter."""
        return f"{self.given.converter.name}.{self.inner}"

    def name(self, one: Property[Any]) -> str:
        """Return the name of a property."""
        return self.prefix + one.name.removeprefix(f"{self.given.converter.name}.")

    def problem(self, one: Property[Any], message: str) -> None:
        """Report a problem."""
        self.reader.problem(self.name(one), message)

    def within(self, inner: str, known: Sequence[Property[Any]]) -> "_Settings":
        """Return the settings of a converter within this one; report names that it does not have."""
        found = _Settings(self.reader, self.given, inner)
        names = {found.name(one) for one in known}
        for name in self.reader.with_prefix(found.prefix):
            if found.prefix + name not in names and not name.startswith("schema.registry.ssl."):
                self.reader.problem(found.prefix + name, "is not a known property")
        return found

    def differs(self, one: Property[Any]) -> bool:
        """Return whether a property has a value other than its default."""
        return self[one] not in (one.default, one.default_for(exact=self.reader.exact))


def _converter(settings: _Settings) -> ConverterConfig:
    """Return a converter. Its settings apply only if its class is set, as in Kafka Connect."""
    reader, given = settings.reader, settings.given
    chosen = settings[given.converter]
    if not reader.is_set(given.converter):
        return _default_converter(settings)
    _without_effect(settings, chosen)
    if chosen is ConverterClass.JSON:
        return _json(settings)
    _needs_kafka(settings)
    if chosen is ConverterClass.AVRO:
        return _avro(settings)
    if chosen is ConverterClass.APICURIO_AVRO:
        return _apicurio(settings)
    if chosen is ConverterClass.PROTOBUF:
        return _protobuf(settings)
    if chosen is ConverterClass.CLOUD_EVENTS:
        return _cloud_events(settings)
    delegate = _delegate(settings) if chosen is ConverterClass.BINARY else None
    if chosen is not ConverterClass.STRING and delegate is None and not reader[connect.TRANSFORMS]:
        reader.problem(
            given.converter.name,
            "writes bytes only, and without transforms every record is a struct: set another converter, or transforms "
            "that make bytes of it, such as the outbox's EventRouter",
        )
    return PlainConverterConfig(chosen, delegate)


def _default_converter(settings: _Settings) -> JsonConverterConfig:
    reader, given = settings.reader, settings.given
    side, schemas, decimals, nulls = given.converter.name, given.schemas, given.decimals, given.nulls
    if any(map(settings.differs, given.of(ConverterClass.AVRO))):
        reader.problem(
            side,
            "is required with the settings of a schema registry: the worker of Kafka Connect may have one for Avro. "
            f"Give the worker's file as well, or set {side}, for example {side}={ConverterClass.AVRO.value}",
        )
    # Exact values do not depend on a converter's class.
    replaces = reader[nulls] if reader.exact else nulls.default
    standard = JsonConverterConfig(schemas.default, decimals.default, replaces)
    if _json(settings) != standard:
        without = (schemas, decimals) if reader.exact else (schemas, decimals, nulls)
        names = ", ".join(one.name for one in without if reader.properties.get(one.name))
        reader.warnings.append(
            f"{names} has no effect without {side}={ConverterClass.JSON.value}: Kafka Connect applies a converter's "
            "settings only together with its class"
        )
    return standard


def _json(settings: _Settings) -> JsonConverterConfig:
    given = settings.given
    return JsonConverterConfig(settings[given.schemas], settings[given.decimals], settings[given.nulls])


def _avro(settings: _Settings) -> AvroConverterConfig:
    given = settings.given
    return AvroConverterConfig(
        _registry(settings), _avro_format(settings), settings[given.subjects], settings[given.ids]
    )


def _avro_format(settings: _Settings) -> AvroFormat:
    given = settings.given
    return AvroFormat(
        connect_meta_data=settings[given.meta_data],
        scrub_invalid_names=settings[given.scrub],
        discard_type_doc_default=settings[given.discard_defaults],
        replace_null_with_default=not settings[given.ignore_defaults],
    )


def _apicurio(settings: _Settings) -> AvroConverterConfig:
    """Return Apicurio's converter as Confluent's, which uses the Confluent-compatible API of Apicurio's registry."""
    given = settings.given
    form: tuple[tuple[Property[Any], object], ...] = (
        (given.apicurio_confluent, True),
        (given.apicurio_id, "contentId"),
        (given.apicurio_headers, False),
    )
    for one, wanted in form:
        if settings[one] != wanted:
            text = str(wanted).lower() if isinstance(wanted, bool) else wanted
            settings.problem(one, f"must be {text}: Apicurio's own forms of the id of a schema are not supported")
    urls = settings[given.apicurio_url]
    if not urls:
        settings.problem(given.apicurio_url, f"is required. {given.apicurio_url.doc}")
    _check_urls(settings, given.apicurio_url)
    register = settings[given.apicurio_register]
    registry = RegistryConfig(
        urls=tuple(re.sub(r"/apis/registry/v\d+/?$", "/apis/ccompat/v7", url) for url in urls),
        user_info=None,
        token=None,
        tls=ClientSettings(),
        auto_register=register,
        latest_version=settings[given.apicurio_latest] and not register,
        normalize=False,
        timeout_s=settings[given.timeout] / 1000,
        prefix=settings.prefix,
    )
    return AvroConverterConfig(registry, _avro_format(settings), SubjectNames.TOPIC, SchemaIds.PREFIX)


def _check_urls(settings: _Settings, one: Property[tuple[str, ...]]) -> None:
    for url in settings[one]:
        problem = url_problem(url)
        if problem is not None:
            settings.problem(one, problem)


def _protobuf(settings: _Settings) -> ProtobufConverterConfig:
    given = settings.given
    form = ProtobufFormat(
        optional_for_nullables=settings[given.optional_nullables]
        and not (settings[given.wrapped_nullables] and not settings.reader.is_set(given.optional_nullables)),
        wrapper_for_nullables=settings[given.wrapped_nullables],
        scrub_invalid_names=settings[given.scrub],
        replace_null_with_default=not settings[given.ignore_defaults],
    )
    registry = replace(_registry(settings), latest_version=False)  # fields are numbered in the order of the table
    return ProtobufConverterConfig(registry, form, settings[given.subjects], settings[given.ids])


def _registry(settings: _Settings) -> RegistryConfig:
    reader, given = settings.reader, settings.given
    urls, user_info, token = settings[given.urls], settings[given.user_info], settings[given.token]
    if not urls:
        settings.problem(given.urls, f"is required. {given.urls.doc}")
    _check_urls(settings, given.urls)
    if user_info is not None:
        if ":" not in user_info.reveal():
            settings.problem(given.user_info, "must be of the form user:password")
        if settings[given.credentials_source] != "USER_INFO":
            settings.problem(given.user_info, f"needs {settings.name(given.credentials_source)}=USER_INFO")
        if token is not None:
            settings.problem(given.token, f"cannot be used together with {settings.name(given.user_info)}")
    elif settings[given.credentials_source] == "USER_INFO":
        settings.problem(given.user_info, f"is required. {given.user_info.doc}")
    register, latest = settings[given.auto_register], settings[given.latest_version]
    if latest and register:
        names = settings.name(given.latest_version), settings.name(given.auto_register)
        reader.warnings.append(f"{names[0]} has no effect without {names[1]}=false")
    prefix = f"{settings.prefix}schema.registry."
    tls, problems = clients.translate(
        ClientKind.ADMIN, prefix, {n: text for n, text in reader.with_prefix(prefix).items() if n.startswith("ssl.")}
    )
    for name, message in problems:
        reader.problem(name, message)
    if "ssl.keystore.location" in tls:
        reader.problem(
            f"{prefix}ssl.keystore.location", "must be a PEM file with the certificate and its key, or a JKS"
        )
    return RegistryConfig(
        urls=urls,
        user_info=user_info,
        token=token,
        tls=tls,
        auto_register=register,
        latest_version=latest and not register,
        normalize=settings[given.normalize],
        timeout_s=settings[given.timeout] / 1000,
        prefix=settings.prefix,
    )


def _cloud_events(settings: _Settings) -> CloudEventsConverterConfig:
    given = settings.given
    serializer, data_serializer = settings[given.serializer], settings[given.data_serializer]
    if serializer is Serializer.AVRO and data_serializer is Serializer.JSON:
        settings.problem(given.data_serializer, f"must be avro with {given.serializer.name}=avro")
    json = _json(settings.within("json.", given.of(ConverterClass.JSON)))
    avro = None
    if Serializer.AVRO in (serializer, data_serializer):
        within = settings.within("avro.", given.of(ConverterClass.AVRO))
        avro = _avro(within)
        if avro.ids is not SchemaIds.PREFIX:
            within.problem(given.ids, "cannot be used in a CloudEvent: its data have no headers. Remove it")
    source, fields = _metadata(settings)
    return CloudEventsConverterConfig(
        serializer,
        data_serializer,
        json,
        settings[given.extensions],
        settings[given.tracing],
        settings[given.event_names],
        settings[given.event_name],
        source,
        fields,
        avro,
    )


def _metadata(settings: _Settings) -> tuple[str, dict[str, str]]:
    """Return ``metadata.source``: ``value`` or ``header``, followed by ``<attribute>:header`` or ``:generate``."""
    given = settings.given
    source, *others = settings[given.metadata] or ("value",)
    if source not in ("value", "header"):
        settings.problem(given.metadata, f"must begin with value or header, not {source!r}")
    fields = dict.fromkeys(("id", "type", "traceparent", "dataSchemaName"), source)
    for one in others:
        name, _, where = one.partition(":")
        if name not in fields or where not in ("header", "generate"):
            settings.problem(given.metadata, f"{one!r} is not <{', '.join(fields)}>:<header, generate>")
        else:
            fields[name] = where
    if not settings[given.data_name_in_header]:
        fields["dataSchemaName"] = "generate"
    if settings[given.tracing] and fields["traceparent"] != "header":
        settings.problem(given.metadata, f"must have traceparent:header with {given.tracing.name}=true")
    return source, fields


def _delegate(settings: _Settings) -> JsonConverterConfig | None:
    """Return the converter of everything that is not bytes."""
    given = settings.given
    chosen = settings[given.delegate]
    if chosen is None:
        return None
    if chosen is not ConverterClass.JSON:
        settings.problem(given.delegate, f"must be {ConverterClass.JSON.value}")
    return _json(settings.within("delegate.converter.type.", given.of(ConverterClass.JSON)))


def _header_converter(reader: PropertyReader) -> JsonConverterConfig | HeaderConverterClass:
    chosen = reader[converters.HEADER_CONVERTER]
    if chosen is not HeaderConverterClass.JSON:
        return chosen
    return JsonConverterConfig(
        reader[converters.HEADER_SCHEMAS], reader[converters.HEADER_DECIMAL], reader[converters.HEADER_NULLS]
    )


def _without_effect(settings: _Settings, chosen: ConverterClass) -> None:
    """Warn about settings of other converters."""
    given = settings.given
    own = (given.converter, given.cache, *given.of(chosen))
    names = [one.name for one in given.entries() if one not in own and settings.differs(one)]
    if names:
        simple = chosen.value.rpartition(".")[2]
        settings.reader.warnings.append(f"{', '.join(names)} has no effect with {given.converter.name}={simple}")


def _needs_kafka(settings: _Settings) -> None:
    """Report a sink that writes JSON."""
    name, sink = settings.given.converter.name, settings.reader[connect.SINK]
    if sink not in ("kafka", "python"):
        settings.reader.problem(
            name, f"{connect.SINK.name}={sink} (--sink) writes JSON: set {name}={ConverterClass.JSON.value}"
        )
