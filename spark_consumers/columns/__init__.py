"""Columns: from Connect schemas to Spark's types."""
