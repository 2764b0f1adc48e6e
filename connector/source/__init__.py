"""Access to the database server: connections, the replication stream, binlog files and their mirror, and queries.

Every connection to MySQL or MariaDB is opened here. ``snapshot``, ``check`` and ``engine`` import from this package. It
returns packets, rows and query results, and does not depend on how events and rows are processed.
"""
