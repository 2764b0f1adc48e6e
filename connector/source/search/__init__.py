"""Searches binlog files: for positions by time or GTID, for XA transactions, and for statements."""
