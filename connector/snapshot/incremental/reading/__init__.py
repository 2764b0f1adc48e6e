"""Reads the chunks of a table on separate connections, and finds out which part of the binlog they reflect."""
