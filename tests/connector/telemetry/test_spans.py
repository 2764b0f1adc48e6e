"""Traces from the commit to the acknowledgement, as an OTLP receiver gets them."""

from __future__ import annotations

import logging
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from rowtide_stack.ports import free_port

from rowtide.connector.config import Configuration, from_properties
from rowtide.connector.delivery.delivery_loop import SentRecords
from rowtide.connector.records.offset import SourceOffset
from rowtide.connector.telemetry import TelemetryError, spans, tracing
from rowtide.connector.telemetry.exporters import Outages, exports
from tests.support.configurations import PROPERTIES
from tests.support.network.http_receiver import Receiver, receiver
from tests.support.processes.worker_process import eventually

OFFSET = SourceOffset("binlog.000007", 1234)
SENT = SentRecords(1, 5, 3, 120, ["shop.a", "shop.b"], OFFSET, ts_ms=1_700_000_000_500, taken_s=1.7e9 + 2)
ACKNOWLEDGED = 1.7e9 + 2.25
OTEL = {"OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_SDK_DISABLED"}


@pytest.fixture(autouse=True)
def own_provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in OTEL:
        monkeypatch.delenv(name, raising=False)
    spans._provider.cache_clear()
    yield
    spans._provider.cache_clear()


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with receiver() as server:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.url)
        yield server


def config(**more: str) -> Configuration:
    return from_properties({**PROPERTIES, "rowtide.opentelemetry.enabled": "true", **more})


def attributes(span: Any) -> dict[str, Any]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value")) for one in span.attributes}


def test_records_have_one_trace_with_the_way_and_its_parts(collector: Receiver) -> None:
    made = tracing(config())
    assert made.acknowledged is not None
    made.acknowledged(SENT, ACKNOWLEDGED)
    made.flush()
    eventually(lambda: len(collector.spans()) == 3, "the spans")
    found = {span.name: span for span in collector.spans()}
    whole, read, send = (found[f"rowtide {name}"] for name in ("change", "read", "send"))
    assert {span.trace_id for span in found.values()} == {whole.trace_id}
    assert (read.parent_span_id, send.parent_span_id, whole.parent_span_id) == (whole.span_id, whole.span_id, b"")
    times = {name: (span.start_time_unix_nano / 1e9, span.end_time_unix_nano / 1e9) for name, span in found.items()}
    assert {name: (begin - 1.7e9, end - 1.7e9) for name, (begin, end) in times.items()} == {
        "rowtide change": pytest.approx((0.5, 2.25)),
        "rowtide read": pytest.approx((0.5, 2.0)),
        "rowtide send": pytest.approx((2.0, 2.25)),
    }
    about = attributes(whole)
    assert [one.string_value for one in about.pop("rowtide.topics").values] == ["shop.a", "shop.b"]
    assert about == {
        "rowtide.connector": "inventory",
        "db.system.name": "mysql",
        "server.address": "127.0.0.1",
        "server.port": 3306,
        "messaging.batch.message_count": 3,
        "rowtide.bytes": 120,
        "rowtide.binlog.file": "binlog.000007",
        "rowtide.binlog.position": 1234,
    }
    assert PROPERTIES["database.password"].encode() not in b"".join(body for _, body in collector.requests)


def test_the_clock_of_the_server_may_be_ahead(collector: Receiver) -> None:
    made = tracing(config())
    assert made.acknowledged is not None
    made.acknowledged(SENT._replace(ts_ms=1_700_009_999_000, topics=["shop.a"]), ACKNOWLEDGED)
    made.flush()
    eventually(lambda: len(collector.spans()) == 3, "the spans")
    assert all(span.start_time_unix_nano <= span.end_time_unix_nano for span in collector.spans())
    assert {attributes(span).get("messaging.destination.name") for span in collector.spans()} == {None, "shop.a"}


def test_the_sampler_of_the_environment_decides(collector: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_TRACES_SAMPLER", "traceidratio")
    monkeypatch.setenv("OTEL_TRACES_SAMPLER_ARG", "0.1")
    made = tracing(config())
    assert made.acknowledged is not None
    for _ in range(300):
        made.acknowledged(SENT, ACKNOWLEDGED)
    made.flush()
    eventually(collector.spans, "some spans")
    found = collector.spans()
    assert 0 < len(found) < 300
    assert len(found) == 3 * len({span.trace_id for span in found}), "a trace is complete or is not there"


def test_a_collector_that_is_away_costs_a_line_in_the_log(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    caplog.set_level(logging.INFO)
    made = tracing(config())
    assert made.acknowledged is not None
    for _ in range(3):
        made.acknowledged(SENT, ACKNOWLEDGED)
        made.flush()
    eventually(lambda: caplog.records, "a line")
    [line] = {record.getMessage().partition(" (")[0] for record in caplog.records}
    assert line == "traces cannot be sent to OpenTelemetry's collector"
    assert len(caplog.records) == 1


def test_spans_that_cannot_be_made_do_not_end_delivery(
    collector: Receiver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a sampler of another package")

    monkeypatch.setattr(spans.Spans, "acknowledged", fail)
    made = tracing(config())
    assert made.acknowledged is not None
    for _ in range(3):
        made.acknowledged(SENT, ACKNOWLEDGED)
    assert [record.getMessage() for record in caplog.records if record.name.startswith("rowtide")] == [
        "spans cannot be made; the connector is not affected, and further failures are not logged"
    ]
    assert collector.requests == []


def test_outages_are_reported_seldom() -> None:
    now = [0.0]
    said: list[str] = []
    logger = logging.getLogger("rowtide.connector.telemetry.exporters")
    handler = logging.Handler()
    handler.emit = lambda record: said.append(record.getMessage())  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        outages = Outages("metrics", clock=lambda: now[0])
        for now[0] in (0, 10, 299, 301, 302):
            outages.failed()
        outages.succeeded()
        outages.succeeded()
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)
    assert [text.partition(" failures")[0][-1] for text in said[:2]] == ["1", "4"]
    assert said[2:] == ["metrics are sent to OpenTelemetry's collector again"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("OTEL_TRACES_EXPORTER", "zipkin"), ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")],
)
def test_what_rowtide_cannot_send_is_an_error(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(TelemetryError, match=f"{name}={value} is not supported: set it to"):
        tracing(config())


def test_the_protocol_of_a_signal_counts_before_that_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf")
    assert exports("TRACES")


@pytest.mark.parametrize(("name", "value"), [("OTEL_SDK_DISABLED", "true"), ("OTEL_TRACES_EXPORTER", "none")])
def test_the_environment_switches_it_off(
    name: str, value: str, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    made = tracing(config())
    assert made.acknowledged is not None
    made.acknowledged(SENT, ACKNOWLEDGED)
    made.flush()
    assert collector.requests == []


def test_a_missing_package_is_an_error_that_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "rowtide.connector.telemetry.spans")
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.resources", None)
    with pytest.raises(TelemetryError, match=r"pip install 'rowtide\[otel\]'"):
        tracing(config())


def test_nothing_is_imported_or_called_without_the_property() -> None:
    assert tracing(from_properties(PROPERTIES)).acknowledged is None
    program = "import sys, rowtide.connector.worker; print(any(name.startswith('opentele') for name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
