"""Reads the chunks of a table on connections of their own, and finds out what of the binlog they have seen."""
