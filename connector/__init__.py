"""The connector: binlog in, records out."""
