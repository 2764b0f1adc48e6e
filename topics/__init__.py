"""Kafka topics: their names and settings, and the selection of tables and columns by name."""
