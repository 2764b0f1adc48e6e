"""The common part of traces and metrics: OpenTelemetry's environment variables, and exporters that may fail.

An exporter that cannot send drops what it has. rowtide logs this from time to time; OpenTelemetry would log each
attempt.
"""

import logging
import os
import time
from collections.abc import Callable

from rowtide.connector.telemetry import TelemetryError

log = logging.getLogger(__name__)

_SILENCE_S = 300.0
"""The minimum time between two log lines about an exporter that cannot send."""
_PROTOCOL = "http/protobuf"


def exports(signal: str) -> bool:
    """Return whether telemetry is enabled.

    Args:
        signal: ``TRACES`` or ``METRICS``.

    Raises:
        TelemetryError: the configured exporter is not OTLP over HTTP.
    """
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    name = f"OTEL_{signal}_EXPORTER"
    exporter = os.environ.get(name, "").strip() or "otlp"
    if disabled or exporter == "none":
        return False
    if exporter != "otlp":
        raise TelemetryError(f"{name}={exporter} is not supported: set it to otlp or none")
    for name in (f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"):
        protocol = os.environ.get(name, "").strip()
        if protocol and protocol != _PROTOCOL:
            raise TelemetryError(
                f"{name}={protocol} is not supported: set it to {_PROTOCOL}, which collectors receive at port 4318"
            )
        if protocol:
            break
    return True


def silence() -> None:
    """Let OpenTelemetry's exporters not report each failure: ``Outages`` does."""
    for name in ("exporter.otlp", "sdk._shared_internal"):
        logging.getLogger(f"opentelemetry.{name}").setLevel(logging.CRITICAL)


class Outages:
    """Logs that an exporter cannot send, and that it can again.

    Args:
        what: what it sends.
        receiver: to whom.
        setting: what to check if it cannot be sent.
        clock: returns seconds of a monotonic clock.
    """

    def __init__(
        self,
        what: str,
        receiver: str = "OpenTelemetry's collector",
        setting: str = "OTEL_EXPORTER_OTLP_ENDPOINT",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._what, self._receiver, self._setting = what, receiver, setting
        self._clock = clock
        self._failures = 0
        self._said: float | None = None

    def failed(self) -> None:
        """Note that an export has failed."""
        self._failures += 1
        now = self._clock()
        if self._said is None or now - self._said >= _SILENCE_S:
            self._said = now
            log.warning(
                "%s cannot be sent to %s (%d failures so far), and are dropped; the connector is not affected. Check "
                "%s",
                self._what,
                self._receiver,
                self._failures,
                self._setting,
            )

    def succeeded(self) -> None:
        """Note that an export has succeeded."""
        if self._failures:
            log.info("%s are sent to %s again", self._what, self._receiver)
            self._failures, self._said = 0, None
