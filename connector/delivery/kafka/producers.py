"""Creates the producer that ``rowtide.producer`` names."""

import logging
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from typing import Any

from rowtide._version import __version__
from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.config.kafka.producer_settings import native_problems
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.kafka.native import NativeProducer
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.sink import SinkProducer
from rowtide.connector.delivery.kafka.tls import tls_context
from rowtide.connector.kafka_producer.batches.native import implementation
from rowtide.connector.kafka_producer.brokers import Brokers
from rowtide.connector.kafka_producer.connection.connection import Connection
from rowtide.connector.kafka_producer.connection.errors import ConnectionFailed
from rowtide.connector.kafka_producer.connection.settings import connection_settings
from rowtide.connector.kafka_producer.producer import Producer as KafkaProducer
from rowtide.connector.kafka_producer.settings import producer_settings
from rowtide.connector.kafka_producer.wire.error_codes import ErrorCode
from rowtide.connector.kafka_producer.wire.errors import WireError
from rowtide.connector.kafka_producer.wire.messages.cluster import FindCoordinatorRequest

log = logging.getLogger(__name__)

_SLOW = (
    f"makes record batches in {implementation.NAME}, which is slower: install rowtide on a machine with a C compiler"
)
"""The problem of the native producer without compiled code, as the end of a sentence."""


def new_producer(
    kind: ProducerKind,
    settings: Mapping[str, Any],
    *,
    quiet: Callable[[], AbstractContextManager[None]],
    show_keys: bool = False,
) -> SinkProducer:
    """Create a producer, and log its kind if ``kind`` does not determine it.

    Args:
        kind: the kind of producer.
        settings: librdkafka's settings, see ``producer_settings``.
        quiet: see :class:`RecordProducer`.
        show_keys: whether errors may show the keys of messages.

    Raises:
        DeliveryError: the settings are invalid, or the producer does not support them.
    """
    if kind is ProducerKind.AUTO:
        native = _native_or_reason(settings, show_keys=show_keys)
        if isinstance(native, NativeProducer):
            log.info("Kafka producer: native")
            return native
        log.info("Kafka producer: librdkafka, because %s", native)
    elif kind is ProducerKind.NATIVE:
        if implementation.native is None:
            log.warning("the native Kafka producer %s", _SLOW)
        return _native_producer(settings, show_keys=show_keys)
    return RecordProducer(settings, quiet=quiet, show_keys=show_keys)


def native_problem(settings: Mapping[str, Any]) -> str | None:
    """Return the reason why the native producer cannot be created with these settings; ``None`` if it can."""
    try:
        _native_producer(settings, show_keys=False).close()
    except DeliveryError as error:
        return str(error)
    return None


def native_warning() -> str | None:
    """Return a warning about the native producer in this environment; ``None`` if there is none."""
    return _SLOW if implementation.native is None else None


def sees_transactional_id(settings: Mapping[str, Any], transactional_id: str) -> bool | None:
    """Return whether the account may look up a transactional id, which fences no producer; ``None`` if unknown."""
    try:
        connection = connection_settings(settings)
        context = None if connection.tls is None else tls_context(connection.tls)
        with closing(Connection(connection.bootstrap, connection, context, __version__)) as broker:
            broker.open()
            found = broker.call(FindCoordinatorRequest.for_id(transactional_id)).coordinator(transactional_id)
    except (ValueError, ConnectionFailed, WireError) as error:  # Kerberos, for one, has only librdkafka
        log.debug("the transactional id %s cannot be looked up: %s", transactional_id, error)
        return None
    return None if found is None else found.error != ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED


def why_librdkafka(settings: Mapping[str, Any]) -> str | None:
    """Return the reason why ``auto`` chooses librdkafka; ``None`` if it chooses the native producer."""
    native = _native_or_reason(settings, show_keys=False)
    if isinstance(native, str):
        return native
    native.close()
    return None


def _native_or_reason(settings: Mapping[str, Any], *, show_keys: bool) -> NativeProducer | str:
    """Return the native producer, or the reason why ``auto`` does not use it."""
    if implementation.native is None:
        return f"the native producer {_SLOW}"
    try:
        return _native_producer(settings, show_keys=show_keys)
    except DeliveryError as error:
        return f"the native producer cannot be used: {error}"


def _native_producer(settings: Mapping[str, Any], *, show_keys: bool) -> NativeProducer:
    for problem in native_problems(settings):
        raise DeliveryError(str(problem))
    try:
        made, connection = producer_settings(settings), connection_settings(settings)
        context = None if connection.tls is None else tls_context(connection.tls)
        producer = KafkaProducer(
            made, lambda done: Brokers(connection, context, __version__, made.request_timeout_ms, done)
        )
    except ValueError as error:  # those of files for TLS are among them
        raise DeliveryError(f"the Kafka producer cannot be created: {error}") from error
    return NativeProducer(producer, show_keys=show_keys)
