"""Schema registries of commands that read topics."""

import time

from rowtide.connector.config.model import (
    AvroConverterConfig,
    CloudEventsConverterConfig,
    Configuration,
    ConverterConfig,
    ProtobufConverterConfig,
    RegistryConfig,
)
from rowtide.decoder.errors import DecodeError, RegistryUnavailable
from rowtide.decoder.readers import SchemaSource, registered_schema, registry_client
from rowtide.spark_consumers.errors import RegistryError

__all__ = ["RetryingRegistry", "registry_of", "registry_source"]

_WAITS_S = (0.5, 1, 2, 4)
"""Seconds before each further request to a registry that does not answer."""


def registry_of(configuration: Configuration) -> RegistryConfig | None:
    """Return the schema registry of a connector; ``None`` if its records use none."""
    converters = configuration.converters
    return _registry(converters.value) or _registry(converters.key)


def _registry(chosen: ConverterConfig) -> RegistryConfig | None:
    if isinstance(chosen, CloudEventsConverterConfig):
        return None if chosen.avro is None else chosen.avro.registry
    return chosen.registry if isinstance(chosen, AvroConverterConfig | ProtobufConverterConfig) else None


def registry_source(url: str, config: RegistryConfig | None) -> SchemaSource:
    """Return the client of a registry.

    Args:
        url: its URL; empty for that of the connector.
        config: the registry of the connector.
    """
    if url or config is None:
        client: SchemaSource = registry_client(url)
        return client
    from rowtide.connector.schema_registry import SchemaRegistry  # noqa: PLC0415 - needs the extra avro

    return SchemaRegistry(config).client


class RetryingRegistry:
    """The schema registry of ``rowtide tables``: waits a moment for a registry that does not answer.

    Args:
        source: its client.
        place: its URL, for errors.
    """

    def __init__(self, source: SchemaSource, place: str) -> None:
        self._source, self.place = source, place

    def __call__(self, number: int | bytes) -> tuple[str, str]:
        """Return the kind and the text of a schema.

        Raises:
            RegistryError: the registry lacks it, or does not answer.
        """
        for wait in (*_WAITS_S, None):
            try:
                return registered_schema(self._source, number)
            except DecodeError as error:
                raise RegistryError(str(error)) from error
            except RegistryUnavailable as error:
                if wait is None:
                    raise RegistryError(
                        f"{self.place}: {error}. The table is as it was: run the command again when the registry "
                        f"answers, or check --registry and the registry in --config"
                    ) from error
                time.sleep(wait)
        raise AssertionError
