"""The metrics of connectors as an OTLP receiver gets them."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any

import pytest
from rowtide_stack.ports import free_port

from rowtide.connector.config import from_properties
from rowtide.connector.delivery.counters import AGES_S, Totals
from rowtide.connector.worker.reports.otel_metrics import OtelMetrics
from rowtide.connector.worker.status import Status
from rowtide.connector.worker.web.metrics import metrics
from tests.support.configurations import PROPERTIES
from tests.support.network.http_receiver import receiver
from tests.support.processes.made_statuses import status

COMMITS = "rowtide.commits"


def source(name: str, *, enabled: bool) -> Any:
    totals = Totals(0.0)
    totals.acknowledged(4, 0.3)

    async def now() -> Status:
        return status(name=name, delivery=totals.snapshot(1.0), tags={"team": "x"})

    properties = {**PROPERTIES, "name": name, "rowtide.opentelemetry.enabled": str(enabled).lower()}
    return SimpleNamespace(config=from_properties(properties), status=now)


def labels(point: Any) -> dict[str, str]:
    return {one.key: one.value.string_value for one in point.attributes}


def test_metrics_are_those_of_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = [source("a", enabled=True), source("b", enabled=False), source("c", enabled=True)]
    with receiver() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        asyncio.run(OtelMetrics(lambda: sources)._send([sources[0], sources[2]]))
        found = collector.metrics()
    [page] = [asyncio.run(one.status()) for one in sources[:1]]
    known = {metric.name for metric in metrics(page) if list(metric.samples) or metric.ages is not None}
    assert set(found) == {f"rowtide.{name.removesuffix('_total')}" for name in known}
    healthy = found["rowtide.healthy"].gauge.data_points
    assert [labels(point) for point in healthy] == [{"team": "x", "connector": name} for name in ("a", "c")]
    assert found["rowtide.restarts"].sum.is_monotonic
    assert found["rowtide.delivery_seconds"].unit == "s"
    assert found["rowtide.record_bytes_per_second"].unit == "By/s"
    starts = {name: found[name].sum.data_points[0].start_time_unix_nano / 1e9 for name in ("rowtide.restarts", COMMITS)}
    assert starts == {"rowtide.restarts": page.started_at, COMMITS: page.run_started_at}, "a start sets the latter to 0"
    assert "1" not in {one.unit for one in found.values()}  # Prometheus would have rowtide_healthy_ratio
    [ages, _] = found["rowtide.delivery_seconds"].histogram.data_points
    assert (ages.count, ages.sum, tuple(ages.explicit_bounds)) == (4, pytest.approx(1.2), AGES_S)
    assert dict(zip(ages.explicit_bounds, ages.bucket_counts, strict=False))[0.5] == 4
    assert len(ages.bucket_counts) == len(ages.explicit_bounds) + 1


def test_connectors_without_the_property_send_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    sources = [source("a", enabled=True), source("b", enabled=False)]

    async def run() -> None:
        service = OtelMetrics(lambda: sources, {"OTEL_METRIC_EXPORT_INTERVAL": "10"})

        async def send(found: Any) -> None:
            sent.extend(one.config.name for one in found)
            service._stopped.set()

        monkeypatch.setattr(service, "_send", send)
        await service.start()
        await service.wait_until_stopped()

    asyncio.run(run())
    assert set(sent) == {"a"}


def test_a_collector_that_is_away_costs_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    caplog.set_level(logging.INFO)
    service = OtelMetrics(list)
    for _ in range(2):
        asyncio.run(service._send([source("a", enabled=True)]))
    lines = [record.getMessage() for record in caplog.records if "asyncio" not in record.name]
    assert len(lines) == 1
    assert lines[0].startswith("metrics cannot be sent to OpenTelemetry's collector (1 failures so far)")


def test_an_exporter_that_raises_ends_nothing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise OSError("broken")

    monkeypatch.setattr("opentelemetry.exporter.otlp.proto.http.metric_exporter.OTLPMetricExporter.export", broken)
    asyncio.run(OtelMetrics(list)._send([source("a", enabled=True)]))
    assert "metrics cannot be sent to OpenTelemetry's collector" in caplog.text
