"""Places in a binlog: file and position, GTID sets, and which place comes before which."""
