"""Telemetry: traces and metrics for OpenTelemetry. Its libraries are imported only if a connector uses it."""

from collections.abc import Callable
from dataclasses import dataclass

from rowtide.connector.config import Configuration
from rowtide.connector.delivery.delivery_loop import Sent
from rowtide.connector.errors import ConnectorError

__all__ = ["TelemetryError", "Tracing", "tracing"]


class TelemetryError(ConnectorError):
    """Telemetry that is configured in a way that rowtide does not support, or whose packages are not installed."""


@dataclass(frozen=True, slots=True)
class Tracing:
    """The traces of a connector.

    Attributes:
        acknowledged: takes records, and when the sink has acknowledged them.
        flush: sends what is left; returns after at most two seconds.
    """

    acknowledged: Callable[[Sent, float], None] | None = None
    flush: Callable[[], None] = lambda: None


def tracing(config: Configuration) -> Tracing:
    """Return what makes the traces of a connector; it does nothing without ``rowtide.opentelemetry.enabled``.

    Raises:
        TelemetryError: a package is not installed, or an environment variable of OpenTelemetry has a value that rowtide
            does not support.
    """
    if not config.telemetry.opentelemetry:
        return Tracing()
    try:
        from rowtide.connector.telemetry.spans import Spans, flush  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as missing:
        raise TelemetryError(
            f"rowtide.opentelemetry.enabled=true needs the package {missing.name}, which is not installed: pip install "
            "'rowtide[otel]'"
        ) from missing
    return Tracing(Spans(config).acknowledged, flush)
