"""The server over TCP: waiting for batches, slow and silent clients, clients that go."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from rowtide.canal.entries import protobuf
from rowtide.canal.server.authentication import Credentials
from rowtide.canal.server.destination import Destination
from rowtide.canal.server.packets import MAX_FRAME, frame, messages, success
from rowtide.canal.server.stored_entry import BatchMode, LogPosition, StoredEntry
from rowtide.canal.server.tcp import CanalServer
from rowtide.connector.delivery.event_store import Store
from rowtide.connector.records.offset import SourceOffset
from rowtide.tcp_server import Address
from tests.support.canal.wire import recorded_destination

EMPTY = messages(-1, [])
WHO = protobuf.text(1, "example") + protobuf.text(2, "1001")


def packet(kind: int, body: bytes = b"") -> bytes:
    return frame(protobuf.integer(3, kind) + protobuf.data(5, body))


AUTHENTICATE, SUBSCRIBE = packet(2), packet(4, WHO)


def get(size: int, timeout_ms: int) -> bytes:
    return packet(6, WHO + protobuf.integer(3, size) + protobuf.integer(4, timeout_ms) + protobuf.integer(5, 2))


def entry(number: int, size: int = 10) -> StoredEntry:
    position = LogPosition("binlog.000001", number, 1, 0, "", SourceOffset("binlog.000001", number))
    return StoredEntry(b"x" * size, position, resumable=True, ddl=False, transaction=False)


def empty_destination(max_bytes: int = 0) -> Destination:
    store: Store[StoredEntry] = Store(max_bytes=max_bytes)
    return Destination("example", store, BatchMode(counts_entries=True, unit=1))


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def read(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def ask(self, request: bytes) -> bytes:
        self.writer.write(request)
        return await self.read()

    async def log_in(self) -> None:
        await self.read()
        assert await self.ask(AUTHENTICATE) == success()
        assert await self.ask(SUBSCRIBE) == success()


@asynccontextmanager
async def serving(destination: Destination, credentials: Credentials | None = None) -> AsyncIterator[Address]:
    server = CanalServer({destination.name: destination}, credentials or Credentials())
    address = await server.start("127.0.0.1", 0)
    try:
        yield address
    finally:
        await server.close()
        assert server.connections == 0


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Client]:
    reader, writer = await asyncio.open_connection(*address)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()


def test_a_get_without_a_timeout_waits_for_a_full_batch() -> None:
    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address, connected(address) as client:
            await client.log_in()
            asked = asyncio.ensure_future(client.ask(get(2, 0)))
            destination.store.put([entry(1)])
            await asyncio.sleep(0.05)
            assert not asked.done()
            thread = threading.Thread(target=destination.store.put, args=([entry(2)],))
            thread.start()
            assert await asked == messages(1, [entry(1).raw, entry(2).raw])
            thread.join()

    asyncio.run(run())


def test_after_the_timeout_a_get_has_what_is_there() -> None:
    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address, connected(address) as client:
            await client.log_in()
            assert await client.ask(get(2, 1)) == EMPTY
            assert await client.ask(get(2, -1)) == EMPTY
            destination.store.put([entry(1)])
            assert await client.ask(get(2, 1)) == messages(1, [entry(1).raw])

    asyncio.run(run())


def test_a_client_that_waits_and_goes_takes_nothing_with_it() -> None:
    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address:
            async with connected(address) as client:
                await client.log_in()
                client.writer.write(get(1, 0))
                await client.writer.drain()
                await asyncio.sleep(0.05)
            await asyncio.sleep(0.05)
            destination.store.put([entry(1)])
            async with connected(address) as other:
                await other.log_in()
                assert await other.ask(get(1, -1)) == messages(1, [entry(1).raw])

    asyncio.run(run())


def test_requests_that_come_together_are_answered_in_order() -> None:
    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address, connected(address) as client:
            await client.log_in()
            client.writer.write(get(1, 0) + packet(8, WHO + protobuf.integer(3, 1)) + get(1, 0))
            await asyncio.sleep(0.05)
            destination.store.put([entry(1)])
            assert await client.read() == messages(1, [entry(1).raw])
            destination.store.put([entry(2)])
            assert await client.read() == messages(2, [entry(2).raw])
            assert destination.store.use().held_events == 1

    asyncio.run(run())


def test_a_client_that_reads_nothing_holds_up_nobody() -> None:
    async def run() -> None:
        destination = empty_destination(max_bytes=1 << 28)
        destination.store.put([entry(number, 1 << 24) for number in range(3)])
        async with serving(destination) as address, connected(address) as deaf, connected(address) as other:
            await deaf.log_in()
            deaf.writer.write(get(3, -1))
            await other.log_in()
            assert await other.ask(get(1, -1)) in (EMPTY, messages(1, [entry(0, 1 << 24).raw]))
            assert len(await other.ask(packet(5, WHO))) == len(success())

    asyncio.run(run())


@pytest.mark.parametrize("sent", [b"\x7f\xff\xff\xff", frame(b"\xff\xff"), packet(2, protobuf.text(1, "canal"))])
def test_connections_that_end_at_once(sent: bytes) -> None:
    async def run() -> None:
        credentials = Credentials("canal", "e3619321c1a937c46a0d8bd1dac39f93b27d4458")
        destination = recorded_destination(counts_entries=False)
        async with serving(destination, credentials) as address, connected(address) as client:
            await client.read()
            client.writer.write(sent)
            rest = await client.reader.read()
            assert rest == b"" or b"auth failed for user:canal" in rest

    asyncio.run(run())


def test_a_silent_client_is_disconnected_after_its_own_timeout() -> None:
    async def run() -> None:
        async with serving(empty_destination()) as address, connected(address) as client:
            await client.read()
            assert await client.ask(packet(2, protobuf.integer(3, 50))) == success()
            assert await client.reader.read() == b""

    asyncio.run(run())


def test_a_negative_timeout_of_a_client_is_the_default() -> None:
    async def run() -> None:
        async with serving(empty_destination()) as address, connected(address) as client:
            await client.read()
            assert await client.ask(packet(2, protobuf.integer(3, -5))) == success()
            assert await client.ask(SUBSCRIBE) == success()
            await asyncio.sleep(0.05)
            assert await client.ask(get(1, -1)) == EMPTY

    asyncio.run(run())


@pytest.mark.parametrize("client", ["1001", "99999", "x"])
def test_a_get_without_a_subscription_fails_at_once(client: str) -> None:
    async def run() -> None:
        who = protobuf.text(1, "example") + protobuf.text(2, client)
        async with serving(empty_destination()) as address, connected(address) as other, asyncio.timeout(30):
            await other.read()
            assert await other.ask(AUTHENTICATE) == success()
            answer = await other.ask(packet(6, who + protobuf.integer(3, 1)))  # timeout 0: without limit
            assert protobuf.integer(1, 400) in answer
            assert (b"should subscribe first" in answer) is (client == "1001")

    asyncio.run(run())


def test_hundreds_of_clients_wait_at_once() -> None:
    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address:
            clients = [Client(*await asyncio.open_connection(*address)) for _ in range(300)]
            await asyncio.gather(*[client.log_in() for client in clients])
            asked = [asyncio.ensure_future(client.ask(get(1, 0))) for client in clients]
            await asyncio.sleep(0.1)
            for number in range(300):
                destination.store.put([entry(number)])
            answers = await asyncio.gather(*asked)
            assert EMPTY not in answers
            for client in clients:
                client.writer.close()

    asyncio.run(run())


def test_clients_that_wait_are_served_in_their_order() -> None:
    """A larger fetch size waits for more, and holds up nobody; who goes holds up nobody either."""

    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address:
            clients = [Client(*await asyncio.open_connection(*address)) for _ in range(5)]
            asked = []
            for client, size in zip(clients, (2, 1, 3, 1, 1), strict=True):
                await client.log_in()
                asked.append(asyncio.ensure_future(client.ask(get(size, 0))))
                await asyncio.sleep(0.02)
            clients[1].writer.close()
            await asyncio.sleep(0.02)
            destination.store.put([entry(1)])
            assert entry(1).raw in await asked[3]
            assert not any(asked[place].done() for place in (0, 2, 4))
            destination.store.put([entry(2), entry(3), entry(4)])
            assert (await asked[0]).count(entry(2).raw) == 2
            assert (await asked[4]).count(entry(4).raw) == 1
            destination.store.put([entry(5), entry(6)])
            await asyncio.sleep(0.02)
            assert not asked[2].done()
            destination.store.put([entry(7)])
            assert (await asked[2]).count(entry(5).raw) == 3
            with pytest.raises(asyncio.IncompleteReadError):
                await asked[1]
            for client in clients:
                client.writer.close()

    asyncio.run(run())


def test_one_entry_wakes_one_of_the_clients_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        destination = empty_destination()
        looks: list[int] = []
        full = Destination.full
        async with serving(destination) as address:
            clients = [Client(*await asyncio.open_connection(*address)) for _ in range(100)]
            await asyncio.gather(*[client.log_in() for client in clients])
            asked = [asyncio.ensure_future(client.ask(get(1, 0))) for client in clients]
            await asyncio.sleep(0.1)
            monkeypatch.setattr(Destination, "full", lambda one, size: looks.append(size) or full(one, size))
            destination.store.put([entry(1)])
            done, _ = await asyncio.wait(asked, return_when=asyncio.FIRST_COMPLETED)
            assert len(done) == 1
            assert len(looks) <= 4, "as with a single client"
            destination.store.close()
            assert (await asyncio.gather(*asked)).count(EMPTY) == 99
            for client in clients:
                client.writer.close()

    asyncio.run(run())


def test_a_stop_while_clients_wait_logs_no_error(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        async with serving(empty_destination()) as address, connected(address) as client:
            await client.log_in()
            asked = asyncio.ensure_future(client.ask(get(1, 0)))
            await asyncio.sleep(0.05)
            assert not asked.done()
        with pytest.raises(asyncio.IncompleteReadError):
            await asked

    asyncio.run(run())
    assert not caplog.records


def test_a_rollback_after_a_lost_connection_gives_out_again_and_its_batches_are_unknown() -> None:
    async def run() -> None:
        destination = empty_destination()
        destination.store.put([entry(1), entry(2)])
        async with serving(destination) as address:
            async with connected(address) as client:
                await client.log_in()
                assert await client.ask(get(1, -1)) == messages(1, [entry(1).raw])
            async with connected(address) as client:
                await client.read()
                assert await client.ask(AUTHENTICATE) == success()
                client.writer.write(packet(12, WHO))  # has no answer
                assert await client.ask(SUBSCRIBE) == success()
                unknown = await client.ask(packet(8, WHO + protobuf.integer(3, 1)))
                assert protobuf.integer(1, 400) in unknown
                assert b"clientId:1001 batchId:1 is not exist" in unknown
                assert await client.ask(get(1, -1)) == messages(2, [entry(1).raw])

    asyncio.run(run())


def test_a_rollback_after_the_end_of_a_subscription_has_no_answer() -> None:
    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address, connected(address) as client:
            await client.log_in()
            assert await client.ask(packet(5, WHO)) == success()
            client.writer.write(packet(12, WHO))
            assert b"should subscribe first" in await client.ask(get(1, -1))
            assert await client.ask(SUBSCRIBE) == success()

    asyncio.run(run())


def test_clients_that_do_not_log_in_make_place_for_others() -> None:
    async def run() -> None:
        destination = empty_destination()
        server = CanalServer({destination.name: destination}, Credentials(), most=4)
        address = await server.start("127.0.0.1", 0)
        async with AsyncExitStack() as stack:
            served = [await stack.enter_async_context(connected(address)) for _ in range(2)]
            for client in served:
                await client.log_in()
            silent = [await stack.enter_async_context(connected(address)) for _ in range(2)]
            for client in silent:
                await client.read()
            other = await stack.enter_async_context(connected(address))
            await other.log_in()  # instead of the first silent one
            assert await silent[0].reader.read() == b""
            assert server.connections == 4
            for client in served:
                assert await client.ask(get(1, -1)) == EMPTY
        await server.close()

    asyncio.run(run())


def test_a_server_full_of_clients_refuses_another_one(caplog: pytest.LogCaptureFixture) -> None:
    async def run() -> None:
        destination = empty_destination()
        server = CanalServer({destination.name: destination}, Credentials(), most=2)
        address = await server.start("127.0.0.1", 0)
        async with AsyncExitStack() as stack:
            served = [await stack.enter_async_context(connected(address)) for _ in range(2)]
            for client in served:
                await client.log_in()
            for _ in range(20):
                refused = await stack.enter_async_context(connected(address))
                with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
                    await refused.read()
            for client in served:
                assert await client.ask(get(1, -1)) == EMPTY
        await server.close()

    asyncio.run(run())
    assert len([text for text in caplog.messages if "no more are accepted" in text]) == 1


def test_clients_with_unfinished_frames_are_disconnected_when_their_memory_is_used_up() -> None:
    async def run() -> None:
        destination = empty_destination()
        async with serving(destination) as address, AsyncExitStack() as stack:
            greedy = [await stack.enter_async_context(connected(address)) for _ in range(20)]
            for client in greedy:
                await client.read()
                client.writer.write(MAX_FRAME.to_bytes(4, "big") + b"x" * (MAX_FRAME - 1))
                with suppress(OSError):
                    await client.writer.drain()
            closed = {asyncio.ensure_future(client.reader.read()) for client in greedy}
            await asyncio.wait(closed, return_when=asyncio.FIRST_COMPLETED)
            client = await stack.enter_async_context(connected(address))
            await client.log_in()
            for task in closed:
                task.cancel()
            await asyncio.gather(*closed, return_exceptions=True)

    asyncio.run(run())
