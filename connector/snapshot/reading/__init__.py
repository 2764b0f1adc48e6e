"""Reads the rows of all tables of an initial snapshot."""
