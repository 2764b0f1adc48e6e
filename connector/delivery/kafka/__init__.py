"""The Kafka side of delivery: the producer, the sink with and without transactions, and the offsets topic.

Only the engine imports from here. It must not know the event store.
"""
