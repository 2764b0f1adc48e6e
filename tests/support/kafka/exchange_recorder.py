"""Records exchanges with a real broker, for the tests that read them without one.

    .venv/bin/python -m tests.support.kafka.exchange_recorder

It writes ``exchanges.jsonl`` (see the README next to it): requests in every version that rowtide has, and the answers
to requests that a broker refuses.
"""

from __future__ import annotations

import json
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[3] / "docker"))

from aiokafka.record.default_records import DefaultRecordBatchBuilder
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from rowtide.connector.kafka_producer.connection.settings import addresses
from rowtide.connector.kafka_producer.wire.apis import (
    ADD_PARTITIONS_TO_TXN,
    API_VERSIONS,
    END_TXN,
    FIND_COORDINATOR,
    INIT_PRODUCER_ID,
    METADATA,
    PRODUCE,
    SASL_AUTHENTICATE,
    Api,
)
from rowtide.connector.kafka_producer.wire.errors import AuthenticationFailed
from rowtide.connector.kafka_producer.wire.frames import decode_answer, encode_request
from rowtide.connector.kafka_producer.wire.messages.cluster import (
    FindCoordinatorRequest,
    MetadataRequest,
    MetadataTopicName,
)
from rowtide.connector.kafka_producer.wire.messages.opening import (
    ApiVersionsRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from rowtide.connector.kafka_producer.wire.messages.produce import (
    PartitionData,
    ProduceRequest,
    TopicData,
)
from rowtide.connector.kafka_producer.wire.messages.transactions import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    TransactionTopic,
)
from rowtide.connector.kafka_producer.wire.sasl import (
    Password,
    start,
)
from rowtide.connector.kafka_producer.wire.schema import Request
from tests.support.kafka.listeners import PASSWORD, USER, listening, token
from tests.support.kafka.wire import GOLDEN

_NONCE = "fyko+d2lbbFgONRv9qkxdawL"
_TRANSACTION = "payments"
_UNKNOWN = bytes(15) + b"\x4d"
_LARGEST_KEPT = 10_000
_TRY_AGAIN = {14, 15, 16, 51}
"""The coordinator is starting, or the previous transaction is ending."""


class Recorder:
    """A connection that records what it sends and receives.

    Args:
        address: ``host:port``.
        found: where to add the exchanges.
    """

    def __init__(self, address: str, found: list[dict[str, Any]]) -> None:
        (place,) = addresses(address)
        self._socket = socket.create_connection((place.host, place.port), timeout=20)
        self._found = found
        self._count = 0

    def call(self, name: str, request: Request[Any], version: int, sent_version: int | None = None) -> Any:
        """Send a request, record the exchange, and return the answer.

        Args:
            name: of the exchange.
            request: what to send.
            version: the version of its form.
            sent_version: the version in its header, if it is another one.
        """
        self._count += 1
        sent, parts = encode_request(request, version, self._count, "rowtide")
        content = bytearray(b"".join(parts))
        if sent_version is not None:
            content[6:8] = sent_version.to_bytes(2, "big")
        self._socket.sendall(content)
        answer = self._exactly(int.from_bytes(self._exactly(4), "big"))
        kept = content[4:].hex() if len(content) <= _LARGEST_KEPT else ""
        self._found.append(
            {
                "name": name,
                "api": sent.api.name,
                "version": version,
                "correlation_id": self._count,
                "request": kept,
                "answer": answer.hex(),
            }
        )
        return decode_answer(sent, answer)

    def settled(self, name: str, request: Request[Any], version: int) -> Any:
        """Like ``call``, but again until the coordinator is ready; only the last exchange is kept."""
        while True:
            answer = self.call(name, request, version)
            if not _errors(answer) & _TRY_AGAIN:
                return answer
            self._found.pop()
            time.sleep(0.2)

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self._socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data


def _errors(answer: Any) -> set[int]:
    if hasattr(answer, "results_by_topic"):
        return {result.error for topic in answer.results_by_topic for result in topic.results_by_partition}
    if hasattr(answer, "coordinators"):
        found = answer.coordinator(_TRANSACTION)
        return {found.error} if found else set()
    return {answer.error}


def _every(api: Api) -> Iterable[int]:
    return range(api.lowest, api.highest + 1)


def _batch(producer: Any, sequence: int, count: int = 1, **more: Any) -> bytes:
    """A record batch."""
    values = {"key": b"k", "value": b"v", "transactional": False, "epoch": producer.producer_epoch, **more}
    builder = DefaultRecordBatchBuilder(
        2, 0, values["transactional"], producer.producer_id, values["epoch"], sequence, 1 << 21
    )
    for offset in range(count):
        builder.append(offset, 1_700_000_000_000 + offset, values["key"], values["value"], [])
    return bytes(builder.build())


def _produce(*batches: tuple[str, bytes, int, bytes], transaction: str | None = None) -> ProduceRequest:
    """A request with batches: the topic's name and id, the partition, and the records."""
    topics = dict.fromkeys((name, topic_id) for name, topic_id, _, _ in batches)
    return ProduceRequest(
        transactional_id=transaction,
        timeout_ms=10_000,
        topic_data=tuple(
            TopicData(
                name=name,
                topic_id=topic_id,
                partition_data=tuple(
                    PartitionData(index=index, records=records) for other, _, index, records in batches if other == name
                ),
            )
            for name, topic_id in topics
        ),
    )


def _metadata(*names: str) -> MetadataRequest:
    return MetadataRequest(topics=tuple(MetadataTopicName(name=name) for name in names))


def _new_producer(transaction: str | None = None, **more: int) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=transaction, transaction_timeout_ms=60_000, **more)


def record_cluster(recorder: Recorder) -> dict[str, bytes]:
    """Versions, metadata and coordinators; returns the ids of the topics."""
    versions = ApiVersionsRequest(client_software_name="rowtide", client_software_version="1.0")
    for version in _every(API_VERSIONS):
        recorder.call("versions", versions, version)
    recorder.call("versions that the broker does not have", versions, API_VERSIONS.highest, 9)
    for version in _every(METADATA):
        recorder.call("metadata", _metadata("orders", "missing"), version)
    recorder.call("metadata of no topics", MetadataRequest(topics=()), 12)
    everything = recorder.call("metadata of all topics", MetadataRequest(topics=None), 13)
    ids = {topic.name: topic.topic_id for topic in everything.topics}
    by_id = tuple(MetadataTopicName(name=None, topic_id=topic_id) for topic_id in (_UNKNOWN, ids["orders"]))
    recorder.call("metadata by id", MetadataRequest(topics=by_id), 12)
    recorder.call("metadata of an invalid name", _metadata("a b"), 13)
    coordinator = FindCoordinatorRequest.for_id(_TRANSACTION)
    for version in (3, 6):  # the topic of transactions does not exist yet
        recorder.call("coordinator that is not available", coordinator, version)
    for version in _every(FIND_COORDINATOR):
        recorder.settled("coordinator", coordinator, version)
    return ids


def record_produce(recorder: Recorder, ids: dict[str, bytes]) -> None:
    """Producer ids, and record batches without transactions."""
    producer: Any = None
    for version in _every(INIT_PRODUCER_ID):
        producer = recorder.settled("producer id", _new_producer(), version)
    mine = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    producer = recorder.settled("next epoch", _new_producer(**mine), INIT_PRODUCER_ID.highest)

    def call(name: str, version: int, *batches: tuple[str, int, bytes]) -> None:
        given = [(topic, ids.get(topic, _UNKNOWN), index, records) for topic, index, records in batches]
        recorder.call(name, _produce(*given), version)

    sequence = 0
    for version in _every(PRODUCE):
        call("produce", version, ("orders", 0, _batch(producer, sequence)))
        sequence += 1
    several = [("orders", 0, _batch(producer, sequence)), ("orders", 1, _batch(producer, 0, 3))]
    call("produce to several partitions", 12, *several, ("items", 0, _batch(producer, 0)))
    call("produce again", 12, several[0])
    sequence += 1
    call("produce with a gap", 12, ("orders", 0, _batch(producer, sequence + 5)))
    for version in (3, 8, 12):
        call("produce to a missing topic", version, ("missing", 0, _batch(producer, 0)))
    call("produce to an unknown topic id", 13, ("missing", 0, _batch(producer, 0)))
    call("produce to a missing partition", 12, ("orders", 7, _batch(producer, 0)))
    large = _batch(producer, sequence, value=b"x" * 1_100_000)
    call("produce a batch that is too large", 12, ("orders", 0, large))
    damaged = bytearray(_batch(producer, sequence))
    damaged[-1] ^= 1
    call("produce a damaged batch", 12, ("orders", 0, bytes(damaged)))
    later = producer.producer_epoch + 1
    call("produce with a later epoch", 12, ("orders", 0, _batch(producer, 0, epoch=later)))
    call("produce with an earlier epoch", 12, ("orders", 0, _batch(producer, 0)))
    for version in (7, 8, 13):
        records = _batch(producer, 0, 2, key=None, epoch=later)
        call("produce records without keys to a compacted topic", version, ("compacted", 0, records))


def record_transactions(recorder: Recorder, ids: dict[str, bytes]) -> None:
    """Transactions of both versions, and fencing."""

    def produce(name: str, version: int, topic: str, producer: Any, sequence: int) -> None:
        records = _batch(producer, sequence, transactional=True)
        recorder.call(name, _produce((topic, ids[topic], 0, records), transaction=_TRANSACTION), version)

    def mine(producer: Any) -> dict[str, Any]:
        return {
            "transactional_id": _TRANSACTION,
            "producer_id": producer.producer_id,
            "producer_epoch": producer.producer_epoch,
        }

    def end(name: str, version: int, producer: Any, *, committed: bool = True) -> Any:
        return recorder.settled(name, EndTxnRequest(**mine(producer), committed=committed), version)

    newest = INIT_PRODUCER_ID.highest
    producer = recorder.settled("producer id with a transaction", _new_producer(_TRANSACTION), newest)
    orders = TransactionTopic(name="orders", partitions=(0, 1))
    missing = TransactionTopic(name="missing", partitions=(0,))
    for version in _every(ADD_PARTITIONS_TO_TXN):
        recorder.settled("add partitions", AddPartitionsToTxnRequest(**mine(producer), topics=(orders,)), version)
        produce("produce in a transaction", 11, "orders", producer, version)
        end("commit", version, producer)
    both = AddPartitionsToTxnRequest(**mine(producer), topics=(missing, orders))
    recorder.settled("add partitions of a missing topic", both, ADD_PARTITIONS_TO_TXN.highest)
    for _ in range(2):  # the first answer depends on whether the coordinator has ended the last transaction
        produce("produce in a transaction without its partition", 11, "items", producer, 0)
        time.sleep(1)
    end("commit without a transaction", 4, producer)
    producer = recorder.settled("producer id again", _new_producer(_TRANSACTION), newest)
    produce("produce in a transaction of version 2", 12, "items", producer, 0)
    producer = end("commit", END_TXN.highest, producer)
    produce("produce in a transaction of version 2", 13, "orders", producer, 0)
    producer = end("abort", END_TXN.highest, producer, committed=False)
    recorder.settled("producer id that fences", _new_producer(_TRANSACTION), newest)
    produce("produce of a fenced producer", 12, "orders", producer, 0)
    for version in (1, END_TXN.highest):
        end("commit of a fenced producer", version, producer)
    old = {"producer_id": producer.producer_id, "producer_epoch": producer.producer_epoch}
    recorder.call("producer id of a fenced producer", _new_producer(_TRANSACTION, **old), newest)
    long = InitProducerIdRequest(transactional_id="other", transaction_timeout_ms=(1 << 31) - 1)
    recorder.call("producer id with a timeout that is too long", long, newest)


def record_logins(connect: Callable[[], Recorder]) -> None:
    """Logins by each mechanism, and refused ones."""

    def log_in(name: str, credentials: Password, version: int = SASL_AUTHENTICATE.highest) -> None:
        recorder = connect()
        recorder.call(name, SaslHandshakeRequest(mechanism=credentials.mechanism), 1)
        mechanism = start(credentials, _NONCE)
        message: bytes | None = mechanism.first()
        while message is not None:
            answer = recorder.call(name, SaslAuthenticateRequest(auth_bytes=message), version)
            if answer.error:
                return
            try:
                message = mechanism.next(answer.auth_bytes)
            except AuthenticationFailed:
                return

    for version in _every(SASL_AUTHENTICATE):
        log_in("PLAIN", Password("PLAIN", USER, PASSWORD), version)
    log_in("PLAIN with a wrong password", Password("PLAIN", USER, "wrong"))
    for name in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        log_in(name, Password(name, USER, PASSWORD))
        log_in(f"{name} with a wrong password", Password(name, USER, "wrong"))
        log_in(f"{name} with an unknown user", Password(name, "bo=b,", PASSWORD), 1)
    for name, message in (
        ("OAUTHBEARER", f"n,,\1auth=Bearer {token()}\1traceId=12\1\1"),
        ("OAUTHBEARER with an expired token", f"n,,\1auth=Bearer {token(1_700_000_001)}\1\1"),
    ):
        recorder = connect()
        recorder.call(name, SaslHandshakeRequest(mechanism="OAUTHBEARER"), 1)
        answer = recorder.call(name, SaslAuthenticateRequest(auth_bytes=message.encode()), SASL_AUTHENTICATE.highest)
        if answer.auth_bytes:  # the problem, which the client acknowledges
            recorder.call(name, SaslAuthenticateRequest(auth_bytes=b"\1"), SASL_AUTHENTICATE.highest)
    connect().call("an unknown mechanism", SaslHandshakeRequest(mechanism="GSSAPI"), 1)


def record() -> None:
    """Write the file."""
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, listening(Path(folder) / "tls") as listeners:
        admin = AdminClient({"bootstrap.servers": listeners.plain})
        compacted = NewTopic("compacted", 1, 1, config={"cleanup.policy": "compact"})
        for done in admin.create_topics([NewTopic("orders", 2, 1), NewTopic("items", 1, 1), compacted]).values():
            done.result()
        recorder = Recorder(listeners.plain, found)
        ids = record_cluster(recorder)
        record_produce(recorder, ids)
        record_transactions(recorder, ids)
        record_logins(lambda: Recorder(listeners.sasl, found))
    (GOLDEN / "exchanges.jsonl").write_text("".join(json.dumps(exchange) + "\n" for exchange in found))


if __name__ == "__main__":
    record()
