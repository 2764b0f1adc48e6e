"""Delivers record batches to Kafka: order, sequence numbers, retries, leaders and transactions. Pure: no sockets.

The entry point is ``sender``; ``messages`` has the types of its inputs and outputs.
"""

from rowtide.connector.kafka_producer.machine.sender import Sender, SenderSettings

__all__ = ["Sender", "SenderSettings"]
