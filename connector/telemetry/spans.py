"""Traces of records from the commit on the server to the acknowledgement of Kafka. Needs opentelemetry-sdk.

Records that the producer got together have one trace with three spans: the whole way, and in it the time until delivery
took them (``read``) and the time in Kafka (``send``). OpenTelemetry's sampler decides which of them have one
(``OTEL_TRACES_SAMPLER``).
"""

import functools
import threading
from collections.abc import Sequence
from itertools import islice

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.trace import SpanKind, set_span_in_context

from rowtide._version import __version__
from rowtide.connector.config import Configuration
from rowtide.connector.delivery.delivery_loop import SentRecords
from rowtide.connector.telemetry.exporters import Outages, exports, silence

_FLUSH_S = 2.0
_MOST_TOPICS = 10
"""Topics that a span names, at most."""
_NS = 1_000_000_000


def resource() -> Resource:
    """Return the resource that sends telemetry: ``OTEL_SERVICE_NAME`` and ``OTEL_RESOURCE_ATTRIBUTES``."""
    found = Resource.create({"service.version": __version__})
    named = not str(found.attributes.get("service.name", "")).startswith("unknown_service")
    return found if named else found.merge(Resource({"service.name": "rowtide"}))


class _Exporter(SpanExporter):
    """Sends spans; see ``exporters``."""

    def __init__(self) -> None:
        silence()
        self._exporter = OTLPSpanExporter()
        self._outages = Outages("traces")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send spans; waits for the answer."""
        result = self._exporter.export(spans)
        if result is SpanExportResult.SUCCESS:
            self._outages.succeeded()
        else:
            self._outages.failed()
        return result

    def shutdown(self) -> None:
        """Stop retrying."""
        self._exporter.shutdown()  # type: ignore[no-untyped-call]  # it has no annotations


@functools.cache
def _provider() -> TracerProvider:
    """Return the provider of this process. It has one thread, which sends the spans of all connectors."""
    made = TracerProvider(resource=resource(), shutdown_on_exit=False)  # it would wait for a collector that is away
    if exports("TRACES"):
        made.add_span_processor(BatchSpanProcessor(_Exporter()))
    return made


def flush() -> None:
    """Send all spans; returns after at most two seconds."""
    sending = threading.Thread(target=_provider().force_flush, name="rowtide/telemetry", daemon=True)
    sending.start()
    sending.join(_FLUSH_S)


class Spans:
    """Makes the spans of a connector.

    Args:
        config: the connector's configuration.

    Raises:
        TelemetryError: an environment variable has a value that rowtide does not support.
    """

    def __init__(self, config: Configuration) -> None:
        self._tracer = _provider().get_tracer("rowtide", __version__)
        self._sends_to = "kafka" if config.delivery.sink == "kafka" else "the sink"
        self._source: dict[str, str | int] = {
            "rowtide.connector": config.name,
            "db.system.name": config.flavor.value,
            "server.address": config.database.hostname,
            "server.port": config.database.port,
        }

    def acknowledged(self, sent: SentRecords, at_s: float) -> None:
        """Make the spans of records that the sink has acknowledged.

        Args:
            sent: the records.
            at_s: when the sink had acknowledged them, in seconds since the epoch.
        """
        end, taken = int(at_s * _NS), int(sent.taken_s * _NS)
        taken = min(taken, end)
        begin = min(sent.ts_ms * 1_000_000, taken) if sent.ts_ms else taken  # the clock of the server may be ahead
        whole = self._tracer.start_span("rowtide change", start_time=begin)
        if whole.is_recording():
            topics = list(islice(sent.topics, _MOST_TOPICS))
            numbers = {"messaging.batch.message_count": sent.records, "rowtide.bytes": sent.size}
            position: dict[str, str | int] = {
                "rowtide.binlog.file": sent.offset.file,
                "rowtide.binlog.position": sent.offset.pos,
            }
            whole.set_attributes({**self._source, **numbers, **position, "rowtide.topics": topics})
            within = set_span_in_context(whole)
            self._tracer.start_span("rowtide read", within, SpanKind.CONSUMER, start_time=begin).end(taken)
            send = self._tracer.start_span("rowtide send", within, SpanKind.PRODUCER, start_time=taken)
            send.set_attributes({"messaging.system": self._sends_to, "messaging.operation.type": "send", **numbers})
            if len(sent.topics) == 1:
                send.set_attribute("messaging.destination.name", topics[0])
            send.end(end)
        whole.end(end)
