"""Delivers record batches to Kafka: order, sequence numbers, retries, leaders and transactions. Pure: no sockets.

``sender`` is the way in; ``messages`` has the types at its borders.
"""

from rowtide.connector.kafka_producer.machine.sender import Sender
from rowtide.connector.kafka_producer.machine.settings import SenderSettings

__all__ = ["Sender", "SenderSettings"]
