"""Spark jobs that turn topics into tables."""
