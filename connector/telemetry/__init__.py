"""Telemetry: OpenTelemetry's traces and metrics, OpenLineage's events. Their libraries are imported only if used."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from rowtide.connector.config import Configuration
from rowtide.connector.delivery.delivery_loop import SentRecords
from rowtide.connector.errors import ConnectorError
from rowtide.envelope.table import TableSchema
from rowtide.errors import needs_package

__all__ = ["Lineage", "TelemetryError", "Tracing", "lineage", "tracing"]

log = logging.getLogger(__name__)


class TelemetryError(ConnectorError):
    """Telemetry that is configured in a way that rowtide does not support, or whose packages are not installed."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """The traces of a connector.

    Attributes:
        acknowledged: takes records, and when the sink has acknowledged them.
        flush: sends the rest; returns after at most two seconds.
    """

    acknowledged: Callable[[SentRecords, float], None] | None = None
    flush: Callable[[], None] = lambda: None


def tracing(config: Configuration) -> Tracing:
    """Return the tracing of a connector; it does nothing without ``rowtide.opentelemetry.enabled``.

    Raises:
        TelemetryError: a package is not installed, or an environment variable of OpenTelemetry has a value that rowtide
            does not support.
    """
    if not config.telemetry.opentelemetry:
        return Tracing()
    try:
        from rowtide.connector.telemetry.spans import Spans, flush  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise TelemetryError(f"rowtide.opentelemetry.enabled=true {needs_package(missing, 'otel')}") from missing
    return Tracing(_contained(Spans(config).acknowledged), flush)


def _contained(make: Callable[[SentRecords, float], None]) -> Callable[[SentRecords, float], None]:
    """Return a function that makes spans, and reports its first failure: delivery continues without them."""
    failed = False

    def acknowledged(sent: SentRecords, at_s: float) -> None:
        nonlocal failed
        try:
            make(sent, at_s)
        except Exception:
            if not failed:
                failed = True
                log.exception(
                    "spans cannot be made; the connector is not affected, and further failures are not logged"
                )

    return acknowledged


class Lineage(Protocol):
    """Reports the tables and topics of a connector."""

    def started(self) -> None:
        """Report that the connector starts."""
        ...

    def running(self) -> None:
        """Report that it works."""
        ...

    def failed(self, error: BaseException) -> None:
        """Report an error that has stopped it."""
        ...

    def completed(self) -> None:
        """Report that it has stopped gracefully."""
        ...

    def tables(self, tables: Iterable[TableSchema], *, topics: bool) -> None:
        """Report captured tables whose structure is new; and their topics, too."""
        ...

    def topics(self, names: Iterable[str]) -> None:
        """Report topics whose schemas are not known, once each."""
        ...

    def close(self) -> None:
        """Send the waiting events."""
        ...


def lineage(config: Configuration, run_id: str) -> Lineage | None:
    """Return the reporter of a connector's lineage; ``None`` without ``openlineage.integration.enabled``.

    Args:
        config: the configuration.
        run_id: the run, a UUID.

    Raises:
        TelemetryError: a package is not installed, or the client's configuration cannot be used.
    """
    if not config.telemetry.lineage:
        return None
    try:
        from rowtide.connector.telemetry.open_lineage import OpenLineage  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise TelemetryError(
            f"openlineage.integration.enabled=true {needs_package(missing, 'openlineage')}"
        ) from missing
    return OpenLineage(config, run_id)
