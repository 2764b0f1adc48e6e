"""Settings of Kafka clients: Java's names to librdkafka's, and what delivery demands of a producer."""
