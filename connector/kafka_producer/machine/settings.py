"""The settings for sending batches."""

from dataclasses import dataclass, field

from rowtide.connector.kafka_producer.machine.backoff import Backoff


@dataclass(frozen=True, slots=True)
class SenderSettings:
    """The settings for sending batches.

    Attributes:
        transactional_id: ``transactional.id``; ``""`` without transactions.
        transaction_timeout_ms: ``transaction.timeout.ms``.
        request_bytes: further batches are added to a request up to this many bytes.
        retry: the delays between attempts (``retry.backoff.ms``).
        reconnect: the delays between connections to a broker (``reconnect.backoff.ms``).
        metadata_max_age_s: ``metadata.max.age.ms``.
        missing_topic_s: the time after which a topic that no broker has does not exist.
        delivery_timeout_s: ``delivery.timeout.ms``; ``None`` to retry forever.
    """

    transactional_id: str = ""
    transaction_timeout_ms: int = 60_000
    request_bytes: int = 1_048_576
    retry: Backoff = field(default_factory=Backoff)
    reconnect: Backoff = field(default_factory=lambda: Backoff(first_s=0.05))
    metadata_max_age_s: float = 300.0
    missing_topic_s: float = 30.0
    delivery_timeout_s: float | None = None
