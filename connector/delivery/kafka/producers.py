"""Makes the producer that ``rowtide.producer`` names. An edge: Kafka."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from rowtide import __version__
from rowtide.connector.config.choices import ProducerKind
from rowtide.connector.delivery.errors import DeliveryError
from rowtide.connector.delivery.kafka.native_producer.brokers import Brokers
from rowtide.connector.delivery.kafka.native_producer.connection.errors import NotSupported, TlsFileError
from rowtide.connector.delivery.kafka.native_producer.connection.settings import connection_settings
from rowtide.connector.delivery.kafka.native_producer.connection.tls import tls_context
from rowtide.connector.delivery.kafka.native_producer.producer import NativeProducer
from rowtide.connector.delivery.kafka.native_producer.settings import producer_settings
from rowtide.connector.delivery.kafka.producer import RecordProducer
from rowtide.connector.delivery.kafka.sink import Producer


def new_producer(
    kind: ProducerKind,
    settings: Mapping[str, Any],
    *,
    quiet: Callable[[], AbstractContextManager[None]],
    show_keys: bool,
) -> Producer:
    """Make a producer.

    Args:
        kind: which one.
        settings: librdkafka's settings, see ``producer_settings``.
        quiet: see :class:`RecordProducer`.
        show_keys: whether errors may show the keys of messages.

    Raises:
        DeliveryError: the settings are invalid, or the producer does not have them.
    """
    if kind is ProducerKind.LIBRDKAFKA:
        return RecordProducer(settings, quiet=quiet, show_keys=show_keys)
    try:
        made, connection = producer_settings(settings, show_keys=show_keys), connection_settings(settings)
        context = None if connection.tls is None else tls_context(connection.tls)
    except NotSupported as error:
        raise DeliveryError(f"{error}. Set rowtide.producer=librdkafka") from error
    except (ValueError, TlsFileError) as error:
        raise DeliveryError(f"the Kafka producer cannot be created: {error}") from error
    return NativeProducer(made, lambda done: Brokers(connection, context, __version__, made.request_timeout_ms, done))
