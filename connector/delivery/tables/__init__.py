"""Sinks that keep tables: the current rows of the source, with the position in the same transaction."""
