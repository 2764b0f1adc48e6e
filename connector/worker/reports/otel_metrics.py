"""Sends the metrics of connectors to OpenTelemetry's collector: those of ``/metrics``, in OTLP.

Names are ``rowtide.lag_seconds`` instead of ``rowtide_lag_seconds``, and counters have no ``_total``: a collector that
writes to Prometheus makes the names of ``/metrics`` of them.
"""

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from mode import Service

from rowtide._version import __version__
from rowtide.connector.config import Configuration
from rowtide.connector.delivery.counters import AGES_S
from rowtide.connector.telemetry import TelemetryError
from rowtide.connector.telemetry.exporters import Outages, exports, silence
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web.metrics import Metric, metrics

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics import export as otel

log = logging.getLogger(__name__)

_INTERVAL = "OTEL_METRIC_EXPORT_INTERVAL"
_DEFAULT_INTERVAL_MS = 60_000
_UNITS = {"seconds": "s", "bytes": "By"}
"""By words of names. Others have none: from gauges with the unit 1, a collector makes ``…_ratio`` for Prometheus."""
_RESTARTS = "restarts_total"
"""The counter that continues when the connector starts again; the others begin at 0."""
_NS = 1_000_000_000


class Source(Protocol):
    """A connector."""

    config: Configuration

    async def status(self) -> Status:
        """Return its status."""
        ...


class OtelMetrics(Service):
    """Sends the metrics of the connectors with ``rowtide.opentelemetry.enabled``, at each interval.

    Args:
        sources: returns the connectors, which may change.
        environ: the environment, for ``OTEL_METRIC_EXPORT_INTERVAL`` in milliseconds.
    """

    logger = logging.getLogger("mode.rowtide")

    def __init__(
        self, sources: Callable[[], Collection[Source]], environ: Mapping[str, str] = os.environ, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self._sources = sources
        given = environ.get(_INTERVAL, "").strip()
        self._interval_s = (int(given) if given.isdecimal() and int(given) else _DEFAULT_INTERVAL_MS) / 1000
        self._exporter: otel.MetricExporter | None = None
        self._outages = Outages("metrics")

    @Service.task
    async def _send_regularly(self) -> None:
        while not self.should_stop:
            await self.sleep(self._interval_s)
            sources = [source for source in self._sources() if source.config.telemetry.opentelemetry]
            if sources and not self.should_stop:
                try:
                    await self._send(sources)
                except TelemetryError as error:
                    log.warning("no metrics are sent to OpenTelemetry's collector: %s", error)
                    return

    async def _send(self, sources: Sequence[Source]) -> None:
        if not exports("METRICS"):
            return
        statuses = await asyncio.gather(*(source.status() for source in sources))
        await asyncio.to_thread(self._export, statuses)

    def _export(self, statuses: Sequence[Status]) -> None:
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415 - an extra
        from opentelemetry.sdk.metrics.export import MetricExportResult  # noqa: PLC0415

        silence()
        data, sent = metrics_data(statuses, time.time()), MetricExportResult.FAILURE
        with contextlib.suppress(Exception):  # whatever it raises: the connectors run without it
            self._exporter = self._exporter or OTLPMetricExporter()
            sent = self._exporter.export(data)
        if sent is MetricExportResult.SUCCESS:
            self._outages.succeeded()
        else:
            self._outages.failed()


def metrics_data(statuses: Sequence[Status], now: float) -> "otel.MetricsData":
    """Return the metrics of connectors as OpenTelemetry's exporters take them.

    Args:
        statuses: of the connectors.
        now: seconds since the epoch.
    """
    from opentelemetry.sdk.metrics import export as otel  # noqa: PLC0415 - an extra
    from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415

    from rowtide.connector.telemetry.spans import resource  # noqa: PLC0415

    first: dict[str, Metric] = {}
    points: dict[str, list[Any]] = {}
    for status in statuses:
        for metric in metrics(status):
            first.setdefault(metric.name, metric)
            points.setdefault(metric.name, []).extend(_points(metric, status, int(now * _NS)))
    found = [
        otel.Metric(_name(metric), metric.help, _unit(metric), _data(metric, points[name]))
        for name, metric in first.items()
        if points[name]
    ]
    scope = otel.ScopeMetrics(InstrumentationScope("rowtide", __version__), found, "")
    return otel.MetricsData([otel.ResourceMetrics(resource(), [scope], "")])


def _name(metric: Metric) -> str:
    return f"rowtide.{metric.name.removesuffix('_total')}"


def _unit(metric: Metric) -> str:
    unit = next((unit for word, unit in _UNITS.items() if word in metric.name.split("_")), "")
    return f"{unit}/s" if unit and metric.name.endswith("_per_second") else unit


def _points(metric: Metric, status: Status, now: int) -> Iterator[Any]:
    from opentelemetry.sdk.metrics import export as otel  # noqa: PLC0415 - an extra

    common: Mapping[str, str] = {**status.tags, "connector": status.name}
    start = int((status.started_at if metric.name == _RESTARTS else status.run_started_at) * _NS)
    if metric.ages is not None:
        counts, sum_s = metric.ages
        unset: Any = None
        yield otel.HistogramDataPoint(common, start, now, sum(counts), sum_s, counts, AGES_S, min=unset, max=unset)
    for labels, value in metric.samples:
        yield otel.NumberDataPoint({**common, **labels}, start, now, value)


def _data(metric: Metric, points: Iterable[Any]) -> "otel.Sum | otel.Gauge | otel.Histogram":
    from opentelemetry.sdk.metrics import export as otel  # noqa: PLC0415 - an extra

    cumulative = otel.AggregationTemporality.CUMULATIVE
    if metric.kind == "histogram":
        return otel.Histogram(list(points), cumulative)
    return (
        otel.Sum(list(points), cumulative, is_monotonic=True) if metric.kind == "counter" else otel.Gauge(list(points))
    )
