"""Checks that the packages of the extras that a configuration needs are installed."""

from collections.abc import Iterator
from importlib import import_module

from rowtide.connector.check.findings import Finding
from rowtide.connector.config import Configuration
from rowtide.connector.config.catalogue import connect, running
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.errors import needs_package


def package_findings(config: Configuration) -> Iterator[Finding]:
    """Yield an error for each property that needs a package which is not installed."""
    for name, extra, module in _extras(config):
        try:
            import_module(f"rowtide.connector.{module}")
        except (ModuleNotFoundError, DeliveryError) as error:
            missing = error.__cause__ or error  # a sink wraps the error
            if not isinstance(missing, ModuleNotFoundError):
                raise
            yield Finding.error(name, needs_package(missing, extra))


def _extras(config: Configuration) -> Iterator[tuple[str, str, str]]:
    """Yield properties, their extras and the modules that need these."""
    if config.telemetry.opentelemetry:
        yield running.OPENTELEMETRY.name, "otel", "telemetry.spans"
    if config.telemetry.lineage:
        yield running.LINEAGE.name, "openlineage", "telemetry.open_lineage"
    if config.delivery.tables is not None:
        extra = config.delivery.sink.partition(":")[0]
        yield connect.SINK.name, extra, f"delivery.tables.{extra}"
