"""The server: connections, TLS, the replication stream, binlog files, and SQL questions to it.

Snapshot, check and engine import from here. Everything that opens a connection to MySQL or MariaDB is in this room. It
must not know what becomes of events and rows: it hands on packets, rows of results and answers.
"""
