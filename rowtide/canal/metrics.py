"""Metrics of Canal's instances for Prometheus (``canal.metrics.pull.port``).

Names that begin with ``canal_`` are Canal's, with its labels and units, so that its dashboards work; those that begin
with ``rowtide_canal_`` are rowtide's own.
"""

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from rowtide.canal.instance.base import InstanceState
from rowtide.connector.worker.web import process_metrics
from rowtide.connector.worker.web.metrics import CONTENT_TYPE, Metric, one, rendered
from rowtide.tcp_server import TcpServer

_REQUEST_BYTES = 8192
_REQUEST_S = 10.0


def render(states: Sequence[InstanceState], now_ms: int) -> str:
    """Return the metrics of instances in Prometheus' text format.

    Args:
        states: of the instances.
        now_ms: the time, in milliseconds since the epoch.
    """
    sources = [({"destination": state.destination}, list(_metrics(state, now_ms))) for state in states]
    return rendered("", sources)


def _metrics(state: InstanceState, now_ms: int) -> Iterator[Metric]:
    yield Metric("canal_instance", "gauge", "Canal instance", [({"mode": "spring"}, 1)])
    yield from _of_store(state, now_ms)
    received = Metric("canal_instance_received_binlog_bytes", "counter", "Received binlog bytes", [])
    if state.status is not None:
        yield received._replace(samples=[({"parser": state.destination}, state.status.received_bytes)])
        count = one(state.status.transactions)
        yield Metric("canal_instance_transactions", "counter", "Transactions counter of canal instance", count)
        delay = one(_delay(state.status.event_ts_ms, now_ms))
        yield Metric("canal_instance_traffic_delay", "gauge", "Traffic delay of canal instance in milliseconds", delay)
    yield Metric("canal_instance_parser_mode", "gauge", "Parser mode of instance", [({"parallel": "false"}, 1)])
    yield Metric("rowtide_canal_reading", "gauge", "Whether the binlog is read.", one(int(state.reading)))
    reconnects = None if state.status is None else state.status.reconnects
    yield Metric("rowtide_canal_reconnects_total", "counter", "Streams that were opened again.", one(reconnects))
    if state.delivery is not None:
        yield from _of_delivery(state, now_ms)


def _of_store(state: InstanceState, now_ms: int) -> Iterator[Metric]:
    use, traffic = state.store, state.traffic
    if traffic is not None:
        subscriptions = one(traffic.subscriptions)
        yield Metric("canal_instance_subscriptions", "gauge", "Canal instance subscriptions", subscriptions)
        labels = {"batchMode": state.batch_mode, "size": str(state.buffer_size)}
        yield Metric("canal_instance_store", "gauge", "Canal instance info", [(labels, 1)])
        for name, samples in (
            ("store_produce_seq", traffic.put.entries - 1),
            ("store_consume_seq", traffic.acked.entries - 1),
            ("put_rows", traffic.put.rows),
            ("get_rows", traffic.got.rows),
            ("ack_rows", traffic.acked.rows),
        ):
            yield Metric(f"canal_instance_{name}", "counter", "Events or rows of canal instance", one(samples))
        if state.batch_mode == "MEMSIZE":
            for name, size in (("store_produce_mem", traffic.put.bytes), ("store_consume_mem", traffic.acked.bytes)):
                yield Metric(f"canal_instance_{name}", "counter", "Memory bytes of canal instance", one(size))
        for name, passed in (("put_delay", traffic.put), ("get_delay", traffic.got), ("ack_delay", traffic.acked)):
            samples_ms = one(_delay(passed.ts_ms, now_ms))
            yield Metric(f"canal_instance_{name}", "gauge", "Traffic delay of canal instance", samples_ms)
    if use is not None:
        blocked = one(use.put_blocked_s * 1000)
        help_ = "Total sink blocking time in milliseconds"
        yield Metric("canal_instance_sink_blocking_time", "counter", help_, blocked)
        help_ = "Entries or messages that are not acknowledged."
        yield Metric("rowtide_canal_unacknowledged", "gauge", help_, one(use.held_events))


def _of_delivery(state: InstanceState, now_ms: int) -> Iterator[Metric]:
    delivery = state.delivery
    assert delivery is not None
    yield Metric("rowtide_canal_messages_total", "counter", "Messages sent to Kafka.", one(delivery.messages))
    yield Metric("rowtide_canal_message_bytes_total", "counter", "Bytes sent to Kafka.", one(delivery.bytes))
    yield Metric("rowtide_canal_commits_total", "counter", "Positions stored.", one(delivery.commits))
    help_ = "Seconds since Kafka has acknowledged something; 0 if nothing waits."
    yield Metric("rowtide_canal_delivery_stuck_seconds", "gauge", help_, one(delivery.stuck_s))
    delay = one(_delay(delivery.committed_ts_ms, now_ms))
    yield Metric("canal_instance_ack_delay", "gauge", "Traffic delay of canal instance ack", delay)


def _delay(ts_ms: int, now_ms: int) -> int | None:
    """Return the milliseconds since a change; none before the first one."""
    return max(0, now_ms - ts_ms) if ts_ms else None


class MetricsServer(TcpServer):
    """Answers every HTTP request with the metrics.

    Args:
        states: the states of the instances.
    """

    def __init__(self, states: Callable[[], Sequence[InstanceState]]) -> None:
        super().__init__(line_limit=_REQUEST_BYTES)
        self._states = states

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request."""
        # The client may send something else than a request, or not read the answer.
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            async with asyncio.timeout(_REQUEST_S):
                await reader.readuntil(b"\r\n\r\n")
                text = render(self._states(), time.time_ns() // 1_000_000) + process_metrics.render()
                body = text.encode()
                head = f"HTTP/1.1 200 OK\r\nContent-Type: {CONTENT_TYPE}\r\nContent-Length: {len(body)}\r\n"
                writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
                await writer.drain()
