"""Settings of Kafka clients: translates Java's names to librdkafka's, and adds those that delivery requires."""
