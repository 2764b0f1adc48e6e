"""Sinks that keep tables: the rows of the source as they are, with the position in the same transaction."""
