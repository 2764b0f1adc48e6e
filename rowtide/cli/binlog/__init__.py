"""The commands that read a binlog without running a connector."""
