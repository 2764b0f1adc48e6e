"""Canal's metrics of instances, and rowtide's own."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from rowtide.canal.instance.base import InstanceState
from rowtide.canal.metrics import MetricsServer, render
from rowtide.canal.server.destination import Passed, Traffic
from rowtide.connector.delivery.counters import DeliveryCounters
from rowtide.connector.delivery.event_store import StoreUse
from rowtide.connector.engine.stream_attempts import ReaderStatus

USE = StoreUse(0, 16384, 4, 700, 1 << 24, 0, 0, 1.5, 0.0)
STATUS = ReaderStatus(connected=True, transactions=3, event_ts_ms=9_000, received_bytes=4096, reconnects=1)
TRAFFIC = Traffic(Passed(10, 20, 1700, 9_000), Passed(8, 16, 1300, 8_000), Passed(6, 12, 1000, 7_000), 2)
CLIENTS = InstanceState("a", True, "MEMSIZE", 16384, STATUS, USE, TRAFFIC)
KAFKA = InstanceState(
    "b", False, "ITEMSIZE", 8, None, None, delivery=DeliveryCounters(messages=5, committed_ts_ms=4_000)
)


def samples(*states: InstanceState) -> dict[str, str]:
    lines = [line for line in render(states, 10_000).splitlines() if not line.startswith("#")]
    return dict(line.rsplit(" ", 1) for line in lines)


def test_the_metrics_of_canal() -> None:
    found = samples(CLIENTS)
    assert found['canal_instance{destination="a",mode="spring"}'] == "1"
    assert found['canal_instance_store{destination="a",batchMode="MEMSIZE",size="16384"}'] == "1"
    assert found['canal_instance_received_binlog_bytes{destination="a",parser="a"}'] == "4096"
    expected = {
        "subscriptions": 2,
        "store_produce_seq": 9,
        "store_consume_seq": 5,
        "store_produce_mem": 1700,
        "store_consume_mem": 1000,
        "put_rows": 20,
        "get_rows": 16,
        "ack_rows": 12,
        "put_delay": 1000,
        "get_delay": 2000,
        "ack_delay": 3000,
        "traffic_delay": 1000,
        "transactions": 3,
        "sink_blocking_time": 1500,
    }
    assert {name: float(found[f'canal_instance_{name}{{destination="a"}}']) for name in expected} == expected


def test_a_counter_of_bytes_has_what_was_acknowledged_whatever_waits_for_room() -> None:
    found = samples(replace(CLIENTS, store=replace(USE, bytes=5_000)))
    assert found['canal_instance_store_consume_mem{destination="a"}'] == "1000"


def test_the_metrics_of_the_kafka_mode() -> None:
    found = samples(CLIENTS, KAFKA)
    assert found['rowtide_canal_messages_total{destination="b"}'] == "5"
    assert found['canal_instance_ack_delay{destination="b"}'] == "6000"
    assert found['rowtide_canal_reading{destination="b"}'] == "0"
    assert found['rowtide_canal_reading{destination="a"}'] == "1"
    assert 'canal_instance_subscriptions{destination="b"}' not in found


def test_every_request_gets_the_metrics() -> None:
    async def requested() -> bytes:
        server = MetricsServer(lambda: [CLIENTS])
        host, port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        await server.close()
        return answer

    head, _, body = asyncio.run(requested()).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\ncanal_instance_subscriptions{" in body
    assert f"Content-Length: {len(body)}".encode() in head


def test_a_stop_before_a_request_is_complete_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        server = MetricsServer(lambda: [CLIENTS])
        host, port = await server.start("127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(host, port)
        writer.write(b"GET /metrics HTTP/1.1\r\n")
        await asyncio.sleep(0.05)
        await server.close()
        assert await reader.read() == b""
        writer.close()

    asyncio.run(run())
    assert not caplog.records
