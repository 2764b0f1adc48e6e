"""Settings of values, schemas and their JSON: the part of the configuration that the envelope depends on."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rowtide.envelope.json.text import DEFAULT_FORMAT, JsonFormat

DecimalMode = Literal["precise", "double", "string"]
BigintUnsignedMode = Literal["long", "long_exact", "precise", "string"]
BoolMode = Literal["boolean", "int16"]
TimePrecisionMode = Literal["adaptive_time_microseconds", "connect", "isostring", "microseconds", "nanoseconds"]
ZeroDateMode = Literal["epoch", "null"]
BinaryMode = Literal["bytes", "base64", "base64-url-safe", "hex"]
FailureMode = Literal["fail", "warn", "skip"]
Stage = Literal["snapshot", "stream"]


@dataclass(frozen=True, slots=True)
class ValueSettings:
    """Debezium's properties of values. Attributes are named after the properties, with ``_`` instead of dots.

    Attributes:
        decimal_handling_mode: ``decimal.handling.mode``.
        bigint_unsigned_handling_mode: ``bigint.unsigned.handling.mode``.
        time_precision_mode: ``time.precision.mode``.
        enable_time_adjuster: ``enable.time.adjuster``.
        binary_handling_mode: ``binary.handling.mode``.
        event_converting_failure_handling_mode: ``event.converting.failure.handling.mode``.
        unavailable_value_placeholder: ``unavailable.value.placeholder``, for columns that a row image omits.
        adjust_field_name: function of ``field.name.adjustment.mode``.
        adjust_schema_name: function of ``schema.name.adjustment.mode``.
        include_schema_comments: ``include.schema.comments``: write comments as ``doc``.
        zero_date_handling_mode: ``zero.date.handling.mode``, a property of rowtide.
        bool_handling_mode: ``rowtide.bool.handling.mode``, a property of rowtide.
        canonical_values: ``rowtide.canonical.values``, a property of rowtide.
        exact: ``rowtide.values=exact``, a property of rowtide, for what no other property covers.
        minimal_row_images: ``binlog.row.image.minimal.allowed``, a property of rowtide.
        connector: ``mysql`` or ``mariadb``, part of schema names.
    """

    decimal_handling_mode: DecimalMode = "precise"
    bigint_unsigned_handling_mode: BigintUnsignedMode = "long"
    time_precision_mode: TimePrecisionMode = "adaptive_time_microseconds"
    enable_time_adjuster: bool = True
    binary_handling_mode: BinaryMode = "bytes"
    event_converting_failure_handling_mode: FailureMode = "warn"
    unavailable_value_placeholder: bytes = b"__debezium_unavailable_value"
    adjust_field_name: Callable[[str], str] = str
    adjust_schema_name: Callable[[str], str] = str
    include_schema_comments: bool = False
    zero_date_handling_mode: ZeroDateMode = "epoch"
    bool_handling_mode: BoolMode = "boolean"
    canonical_values: bool = False
    exact: bool = False
    minimal_row_images: bool = False
    connector: Literal["mysql", "mariadb"] = "mysql"

    @property
    def canonical(self) -> bool:
        """Whether snapshots and the stream write each value in one form."""
        return self.exact or self.canonical_values


@dataclass(frozen=True, slots=True)
class JsonSettings:
    """Settings of Kafka Connect's ``JsonConverter`` for keys or for values.

    Attributes:
        schemas_enable: write ``{"schema":…,"payload":…}`` instead of the payload alone.
        json_format: the settings that affect values.
    """

    schemas_enable: bool = True
    json_format: JsonFormat = DEFAULT_FORMAT
