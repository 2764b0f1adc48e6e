"""Which errors of Kafka mean that its brokers are away, and that the same may succeed later."""

from concurrent.futures import Future

import pytest
from confluent_kafka import KafkaError, KafkaException

from rowtide.connector.delivery.errors import OffsetStoreError, OffsetStoreUnavailable
from rowtide.connector.delivery.kafka.offset_store import KafkaOffsetStore
from rowtide.schema_history.store.topic_reader import Extent, TopicReader, TopicReadError
from rowtide.topics.admin.topic_admin import TopicAdmin
from rowtide.topics.errors import KafkaUnreachable, TopicError
from rowtide.topics.settings import TopicSettings

CLIENT = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
FENCED = "Unable to replicate the partition 1 time(s): All brokers are currently fenced."
TOO_FEW = "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached"


class FailingAdmin:
    """Raises an error wherever a topic is looked up."""

    def __init__(self, error: KafkaError) -> None:
        self._error = error

    def describe_topics(self, *_: object, **__: object) -> dict[str, Future[None]]:
        future: Future[None] = Future()
        future.set_exception(KafkaException(self._error))
        return {"t": future}


@pytest.mark.parametrize(
    ("error", "away"),
    [
        (KafkaError(KafkaError._TRANSPORT), True),
        (KafkaError(-137), True),  # "Broker handle destroyed without termination": a broker that was paused
        (KafkaError(KafkaError.NOT_CONTROLLER), True),
        (KafkaError(KafkaError.INVALID_REPLICATION_FACTOR, FENCED), True),
        (KafkaError(KafkaError.INVALID_REPLICATION_FACTOR, TOO_FEW), False),
        (KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), False),
    ],
)
def test_a_topic_cannot_be_created(error: KafkaError, away: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    admin = TopicAdmin(CLIENT)
    monkeypatch.setattr(admin, "_admin", FailingAdmin(error))
    with pytest.raises(TopicError) as caught:
        admin.ensure("t", TopicSettings(1, 3))
    assert isinstance(caught.value, KafkaUnreachable) is away


@pytest.mark.parametrize(
    "code", [KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.FENCED_LEADER_EPOCH, KafkaError._NOENT, -137]
)
def test_a_read_is_repeated_while_a_broker_starts(code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [KafkaException(KafkaError(code)), {0: Extent(0, 5)}]

    def query(*_: object) -> dict[int, Extent]:
        answer = answers.pop(0)
        if isinstance(answer, KafkaException):
            raise answer
        return answer

    reader = TopicReader(CLIENT, CLIENT)
    monkeypatch.setattr(reader, "_query", query)
    assert reader.extents("t") == {0: Extent(0, 5)}


@pytest.mark.parametrize(
    ("code", "kind"),
    [(KafkaError._TRANSPORT, OffsetStoreUnavailable), (KafkaError.TOPIC_AUTHORIZATION_FAILED, OffsetStoreError)],
)
def test_an_offset_cannot_be_loaded(code: int, kind: type[OffsetStoreError], monkeypatch: pytest.MonkeyPatch) -> None:
    def query(*_: object) -> None:
        raise KafkaException(KafkaError(code))

    monkeypatch.setattr(TopicReader, "_query", query)
    store = KafkaOffsetStore("t", "n", "p", producer=CLIENT, consumer=CLIENT, admin=CLIENT, timeout=0.2)
    with pytest.raises(OffsetStoreError) as caught:
        store.load()
    assert type(caught.value) is kind
    assert isinstance(caught.value.__cause__, TopicReadError)
