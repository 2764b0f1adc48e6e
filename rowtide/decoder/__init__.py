"""Reads records in Debezium's format from any producer, as changes like those of :class:`rowtide.Engine`."""
