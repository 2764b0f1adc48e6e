"""The first requests of a connection, which find out the broker's versions and log in."""

from dataclasses import dataclass

from rowtide.connector.kafka_producer.wire.schema import (
    Request,
    boolean,
    data,
    int16,
    int32,
    int64,
    many,
    of,
    one,
    text,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsRequest(Request["ApiVersionsAnswer"]):
    """Requests the versions of each API that the broker has."""

    client_software_name: str = of(text, since=3, default="", ignorable=True)
    client_software_version: str = of(text, since=3, default="", ignorable=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRange:
    """The versions of an API that a broker has."""

    api_key: int = of(int16)
    min_version: int = of(int16)
    max_version: int = of(int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedFeature:
    """The versions of a feature that a broker could have."""

    name: str = of(text)
    min_version: int = of(int16)
    max_version: int = of(int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class FinalizedFeature:
    """The versions of a feature that is enabled in the cluster."""

    name: str = of(text)
    max_version_level: int = of(int16)
    min_version_level: int = of(int16)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiVersionsAnswer:
    """The versions of each API that the broker supports, and the cluster's features."""

    error: int = of(int16)
    api_keys: tuple[ApiRange, ...] = of(many(one(ApiRange)))
    throttle_time_ms: int = of(int32, since=1, default=0)
    supported_features: tuple[SupportedFeature, ...] = of(many(one(SupportedFeature)), since=3, tag=0, default=())
    finalized_features_epoch: int = of(int64, since=3, tag=1, default=-1)
    finalized_features: tuple[FinalizedFeature, ...] = of(many(one(FinalizedFeature)), since=3, tag=2, default=())
    zk_migration_ready: bool = of(boolean, since=3, tag=3, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeRequest(Request["SaslHandshakeAnswer"]):
    """Chooses the SASL mechanism."""

    mechanism: str = of(text)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslHandshakeAnswer:
    """The mechanisms that the broker has."""

    error: int = of(int16)
    mechanisms: tuple[str, ...] = of(many(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateRequest(Request["SaslAuthenticateAnswer"]):
    """A message of the client's side of the mechanism; not shown in ``repr``, since it may hold a password."""

    auth_bytes: bytes = of(data, shown=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaslAuthenticateAnswer:
    """A message of the broker's side.

    Attributes:
        session_lifetime_ms: after this time the broker needs a new authentication; 0 for never (KIP-368).
    """

    error: int = of(int16)
    error_message: str | None = of(text, null_since=0)
    auth_bytes: bytes = of(data)
    session_lifetime_ms: int = of(int64, since=1, default=0)
