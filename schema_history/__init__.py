"""The structure of every table at any position of the binlog."""
