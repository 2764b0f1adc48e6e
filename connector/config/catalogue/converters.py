"""Properties of the converters of keys, values and headers, with the names of the classes in Kafka Connect."""

from dataclasses import dataclass, fields
from typing import Any

from rowtide.connector.config.catalogue.kinds import boolean, choice, integer, java_class, names, optional, secret, text
from rowtide.connector.config.catalogue.property import Family, Property, Status
from rowtide.connector.config.choices import (
    ConverterClass,
    DecimalFormat,
    HeaderConverterClass,
    NameAdjustment,
    Serializer,
)
from rowtide.envelope.converters.registry import SchemaIds, SubjectNames
from rowtide.envelope.transforms.record import Side

TITLE = "Converters"

_CACHE = "rowtide caches each schema once per version of its table"
_SAME = "Debezium's records are the same either way"


@dataclass(frozen=True, slots=True)
class ConverterProperties:
    """The properties of the converter of keys or of values."""

    converter: Property[ConverterClass]
    schemas: Property[bool]
    decimals: Property[DecimalFormat]
    nulls: Property[bool]
    encoding: Property[str]
    serializer: Property[Serializer]
    data_serializer: Property[Serializer]
    extensions: Property[bool]
    tracing: Property[bool]
    event_names: Property[NameAdjustment]
    event_name: Property[str | None]
    data_name_in_header: Property[bool]
    metadata: Property[tuple[str, ...]]
    delegate: Property[ConverterClass | None]
    urls: Property[tuple[str, ...]]
    credentials_source: Property[str]
    user_info: Property[Any]
    token_source: Property[str]
    token: Property[Any]
    auto_register: Property[bool]
    latest_version: Property[bool]
    normalize: Property[bool]
    subjects: Property[SubjectNames]
    ids: Property[SchemaIds]
    meta_data: Property[bool]
    scrub: Property[bool]
    discard_defaults: Property[bool]
    ignore_defaults: Property[bool]
    optional_nullables: Property[bool]
    wrapped_nullables: Property[bool]
    timeout: Property[int]
    apicurio_url: Property[tuple[str, ...]]
    apicurio_register: Property[bool]
    apicurio_latest: Property[bool]
    apicurio_confluent: Property[bool]
    apicurio_id: Property[str]
    apicurio_headers: Property[bool]
    cache: Property[int]

    def of(self, converter: ConverterClass) -> tuple[Property[Any], ...]:
        """Return the settings of a class of converter."""
        match converter:
            case ConverterClass.JSON:
                return self.schemas, self.decimals, self.nulls
            case ConverterClass.AVRO:
                of_protobuf = (self.optional_nullables, self.wrapped_nullables)
                return tuple(one for one in self._of_registry() if one not in of_protobuf)
            case ConverterClass.APICURIO_AVRO:
                entries = self.entries()
                of_apicurio = entries[entries.index(self.apicurio_url) : entries.index(self.cache)]
                return (*of_apicurio, self.meta_data, self.scrub, self.discard_defaults, self.ignore_defaults)
            case ConverterClass.PROTOBUF:
                of_avro = (self.latest_version, self.meta_data, self.discard_defaults)
                return tuple(one for one in self._of_registry() if one not in of_avro)
            case ConverterClass.CLOUD_EVENTS:
                entries = self.entries()
                return entries[entries.index(self.serializer) : entries.index(self.delegate)]
            case ConverterClass.BINARY:
                return (self.delegate,)
            case ConverterClass.STRING:
                return (self.encoding,)
            case _:
                return ()

    def _of_registry(self) -> tuple[Property[Any], ...]:
        entries = self.entries()
        return entries[entries.index(self.urls) : entries.index(self.apicurio_url)]

    def entries(self) -> tuple[Property[Any], ...]:
        """Return all of them, in order."""
        return tuple(getattr(self, field.name) for field in fields(self))


def _properties(side: Side) -> ConverterProperties:
    prefix, what = f"{side}.converter", f"{side}s"
    return ConverterProperties(
        converter=Property(
            prefix,
            java_class(ConverterClass),
            ConverterClass.JSON,
            f"The converter of {what}. Its settings apply only if this class is set.",
            Status.PARTLY,
            "JsonConverter, StringConverter, ByteArrayConverter, BinaryDataConverter, AvroConverter (Confluent's and "
            "Apicurio's), ProtobufConverter, CloudEventsConverter",
        ),
        schemas=Property(f"{prefix}.schemas.enable", boolean(), True, f"Include the schema in each {side} (JSON)."),
        decimals=Property(
            f"{prefix}.decimal.format",
            choice(DecimalFormat),
            DecimalFormat.BASE64,
            f"The format of exact decimals in {what} (JSON): Base64 of their bytes, or numbers (NUMERIC).",
        ),
        nulls=Property(
            f"{prefix}.replace.null.with.default",
            boolean(),
            True,
            f"Write a column's default in place of a NULL in {what} (JSON).",
            exact=False,
        ),
        encoding=Property(
            f"{prefix}.converter.encoding",
            text("(?i)utf-?8", "is not supported: StringConverter writes UTF-8"),
            "UTF-8",
            "The encoding of StringConverter.",
        ),
        serializer=Property(
            f"{prefix}.serializer.type",
            choice(Serializer),
            Serializer.JSON,
            "The format of CloudEvents: json or avro. Settings of the two have the prefixes "
            f"`{prefix}.json.` and `{prefix}.avro.`.",
        ),
        data_serializer=Property(
            f"{prefix}.data.serializer.type",
            choice(Serializer),
            Serializer.JSON,
            "The format of the data in CloudEvents: json, or avro.",
        ),
        extensions=Property(
            f"{prefix}.extension.attributes.enable",
            boolean(),
            True,
            "Write `op`, `source` and `transaction` as extension attributes of CloudEvents.",
        ),
        tracing=Property(
            f"{prefix}.opentelemetry.tracing.attributes.enable",
            boolean(),
            False,
            "Write the header `traceparent` as an attribute of CloudEvents.",
        ),
        event_names=Property(
            f"{prefix}.schema.name.adjustment.mode",
            choice(NameAdjustment),
            NameAdjustment.AVRO,
            "How the name of the schema of CloudEvents is adjusted.",
        ),
        event_name=Property(
            f"{prefix}.schema.cloudevents.name",
            optional(text()),
            None,
            "The name of the schema of CloudEvents, instead of `<topic.prefix>.<database>.CloudEvents.Envelope`.",
        ),
        data_name_in_header=Property(
            f"{prefix}.schema.data.name.source.header.enable",
            boolean(),
            False,
            "Let `metadata.source` take the name of the data's schema from a header.",
        ),
        metadata=Property(
            f"{prefix}.metadata.source",
            names(),
            ("value", "id:generate", "type:generate", "traceparent:header", "dataSchemaName:generate"),
            "Where the metadata of CloudEvents comes from: `value` or `header`, and after that, for single attributes, "
            "`header` or `generate`.",
        ),
        delegate=Property(
            f"{prefix}.delegate.converter.type",
            optional(java_class(ConverterClass)),
            None,
            "The converter of BinaryDataConverter for everything that is not bytes. Its settings have the prefix "
            f"`{prefix}.delegate.converter.type.`.",
            Status.PARTLY,
            "JsonConverter",
        ),
        urls=Property(
            f"{prefix}.schema.registry.url",
            names(),
            (),
            "The schema registry of Avro and Protobuf: one URL, or several of one registry, which are tried in order.",
        ),
        credentials_source=Property(
            f"{prefix}.basic.auth.credentials.source",
            text("URL|USER_INFO", "must be URL or USER_INFO"),
            "URL",
            "Where user and password of the schema registry are: in its URL, or in `basic.auth.user.info`.",
        ),
        user_info=Property(
            f"{prefix}.basic.auth.user.info",
            optional(secret()),
            None,
            "User and password of the schema registry, `user:password`, with `…credentials.source=USER_INFO`.",
        ),
        token_source=Property(
            f"{prefix}.bearer.auth.credentials.source",
            text("STATIC_TOKEN", "must be STATIC_TOKEN"),
            "STATIC_TOKEN",
            "Where the bearer token of the schema registry is: in `bearer.auth.token`.",
        ),
        token=Property(
            f"{prefix}.bearer.auth.token", optional(secret()), None, "The bearer token of the schema registry."
        ),
        auto_register=Property(
            f"{prefix}.auto.register.schemas",
            boolean(),
            True,
            "Register new schemas. Otherwise each must be registered before its first record, or the connector stops.",
        ),
        latest_version=Property(
            f"{prefix}.use.latest.version",
            boolean(),
            False,
            "Write with the subject's latest version, with `auto.register.schemas=false`. It must have all fields.",
        ),
        normalize=Property(
            f"{prefix}.normalize.schemas", boolean(), False, "Let the schema registry normalize schemas."
        ),
        subjects=Property(
            f"{prefix}.{side}.subject.name.strategy",
            java_class(SubjectNames),
            SubjectNames.TOPIC,
            f"The names of subjects. By the topic it is `<topic>-{side}`.",
        ),
        ids=Property(
            f"{prefix}.{side}.schema.id.serializer",
            java_class(SchemaIds),
            SchemaIds.PREFIX,
            f"Where a record has the id of the {side}'s schema: before its bytes, or in a header.",
        ),
        meta_data=Property(
            f"{prefix}.connect.meta.data",
            boolean(),
            True,
            "Keep the names, versions, parameters and defaults of Connect's schemas in Avro schemas.",
        ),
        scrub=Property(
            f"{prefix}.scrub.invalid.names",
            boolean(),
            False,
            "Replace characters that names in Avro and Protobuf cannot have.",
        ),
        discard_defaults=Property(
            f"{prefix}.discard.type.doc.default",
            boolean(),
            False,
            "Write the comments of columns (doc) to the fields in Avro schemas, too, not only to their types.",
        ),
        ignore_defaults=Property(
            f"{prefix}.ignore.default.for.nullables",
            boolean(),
            False,
            f"Write NULL as null, and not as the column's default, in {what} in Avro and Protobuf.",
            exact=True,
        ),
        optional_nullables=Property(
            f"{prefix}.optional.for.nullables",
            boolean(),
            False,
            f"Distinguish NULL from zero and an empty text in {what} in Protobuf by marking their fields `optional`.",
            exact=True,
        ),
        wrapped_nullables=Property(
            f"{prefix}.wrapper.for.nullables",
            boolean(),
            False,
            f"Distinguish NULL from zero and an empty text in {what} in Protobuf by Google's wrapper messages.",
        ),
        timeout=Property(
            f"{prefix}.http.read.timeout.ms",
            integer(1),
            10_000,
            "How long to wait for an answer of the schema registry, in milliseconds.",
        ),
        apicurio_url=Property(
            f"{prefix}.apicurio.registry.url",
            names(),
            (),
            "The URL of Apicurio's registry for its AvroConverter, such as `http://host:8080/apis/registry/v2`.",
        ),
        apicurio_register=Property(
            f"{prefix}.apicurio.registry.auto-register", boolean(), False, "Register new schemas (Apicurio)."
        ),
        apicurio_latest=Property(
            f"{prefix}.apicurio.registry.find-latest",
            boolean(),
            False,
            "Write with the latest version of the artifact (Apicurio).",
        ),
        apicurio_confluent=Property(
            f"{prefix}.apicurio.registry.as-confluent",
            boolean(),
            False,
            "Write the id of a schema as Confluent's converters do, with four bytes. Must be `true`.",
        ),
        apicurio_id=Property(
            f"{prefix}.apicurio.registry.use-id",
            text("globalId|contentId|none", "must be globalId, contentId or none"),
            "globalId",
            "Which id of a schema is written. Must be `contentId`.",
        ),
        apicurio_headers=Property(
            f"{prefix}.apicurio.registry.headers.enabled",
            boolean(),
            True,
            "Write the id of a schema in headers of Apicurio. Must be `false`.",
        ),
        cache=Property(
            f"{prefix}.schemas.cache.size",
            integer(0),
            1000,
            "The number of cached schemas.",
            Status.WITHOUT_EFFECT,
            _CACHE,
        ),
    )


KEY = _properties("key")
VALUE = _properties("value")
REGISTRY_TLS = Family(
    "<key, value>.converter.schema.registry.ssl.…",
    r"(?:key|value)\.converter\.schema\.registry\.ssl\."
    r"(?:truststore|keystore|key)\.(?:location|password|type|certificates|certificate\.chain|key)",
    "TLS to the schema registry, as for Kafka's clients: trust store, key store and their passwords.",
)
NESTED = Family(
    "<key, value>.converter.<delegate.converter.type, json, avro>.…",
    r"(?:key|value)\.converter\.(?:delegate\.converter\.type|json|avro)\..+",
    "Settings of the converter that BinaryDataConverter or CloudEventsConverter uses, by their names without "
    "`<key, value>.converter.`.",
)
WITHOUT_EFFECT = Family(
    "<key, value>.converter.enhanced.avro.schema.support …",
    r"(?:key|value)\.converter\.(?:enhanced\.(?:avro|protobuf)\.schema\.support|schemas\.cache\.config"
    r"|flatten\.singleton\.unions|allow\.optional\.map\.keys|generalized\.sum\.type\.support|max\.schemas\.per\.subject"
    r"|optional\.for\.proto2|wrapper\.for\.raw\.primitives|reference\.lookup\.only|skip\.known\.types|int\.for\.enums"
    r"|latest\.compatibility\.strict|latest\.cache\.(?:size|ttl\.sec)|http\.connect\.timeout\.ms|avro\.remove\.java\.properties)",
    "Other settings of Confluent's converters.",
    Status.WITHOUT_EFFECT,
    _SAME,
)
HEADER_CONVERTER = Property(
    "header.converter",
    java_class(HeaderConverterClass),
    HeaderConverterClass.SIMPLE,
    "The converter of headers.",
    Status.PARTLY,
    ", ".join(one.value.rpartition(".")[2] for one in HeaderConverterClass),
)
HEADER_SCHEMAS = Property(
    "header.converter.schemas.enable", boolean(), True, "Include the schema in each header (JsonConverter)."
)
HEADER_DECIMAL = Property(
    "header.converter.decimal.format", choice(DecimalFormat), DecimalFormat.BASE64, "The format of decimals in headers."
)
HEADER_NULLS = Property(
    "header.converter.replace.null.with.default",
    boolean(),
    True,
    "Write defaults in place of nulls in headers (JsonConverter).",
    exact=False,
)
