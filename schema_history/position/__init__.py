"""Positions in a binlog: file and position, GTID sets, and their order."""
