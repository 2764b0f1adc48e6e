"""Reads records of Debezium's format, whoever wrote them, as the changes that :class:`rowtide.Engine` gives."""
