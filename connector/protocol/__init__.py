"""The replication protocol and the binlog format: bytes in, values out. No sockets, files or clocks here."""
