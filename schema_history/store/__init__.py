"""Where history records are kept, and their form: Debezium's JSON, in a Kafka topic, a file or in memory."""
