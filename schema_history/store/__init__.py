"""History records in Debezium's JSON format, and their stores: a Kafka topic, a file, or memory."""
