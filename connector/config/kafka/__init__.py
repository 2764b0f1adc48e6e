"""Settings of Kafka clients: translates Java's names to librdkafka's, and sets what delivery requires of a producer."""
