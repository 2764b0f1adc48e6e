"""Protobuf as Confluent's ``ProtobufConverter`` writes it: the schema of a Connect schema, and the bytes of a value."""
