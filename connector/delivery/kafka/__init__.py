"""Delivery to Kafka: the producer, the sinks with and without transactions, and the offsets topic.

Only the engine imports from here.
"""
