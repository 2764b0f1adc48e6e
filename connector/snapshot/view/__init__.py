"""The consistent view of a snapshot: its locks, its binlog position, and the statements and tables that it shows."""
