"""Reads the chunks of a table on separate connections, and determines which part of the binlog they reflect."""
