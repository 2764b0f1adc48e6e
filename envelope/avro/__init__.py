"""Avro as Confluent's ``AvroConverter`` writes it: the schema of a Connect schema, and the bytes of a value."""
