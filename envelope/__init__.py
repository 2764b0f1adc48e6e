"""Records as Debezium writes them: Connect schemas, row values, keys and envelopes."""
