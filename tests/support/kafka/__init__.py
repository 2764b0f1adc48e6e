"""Brokers, real and simulated, topics, and recorded messages of Kafka's protocol."""
