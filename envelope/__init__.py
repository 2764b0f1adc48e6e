"""Debezium's records: Connect schemas, keys, row values and envelopes, and their encodings.

    table ─► types (a column's schema and values)     transforms (single message transforms)
      └────► schema ─► json (text as JsonConverter writes it)

This package does no input or output.
"""
