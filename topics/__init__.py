"""Kafka topics: their names, settings, and which tables they belong to."""
