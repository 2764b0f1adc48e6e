"""The databus server: publishes changes in databus' form, and serves dumps.

================  ============================================================
``worker``        runs a connector whose messages are those of databus
``service``       dumps for a connector, and which of several servers runs
``dumps``         dumps: all rows at one position of the binlog
``registration``  this server in ZooKeeper
``record_form``   makes the messages
``cells``         makes the texts of values
``statements``    names the database of each table in a statement
``structure``     describes the structure of a table
``settings``      checks the configuration
``check``         checks ZooKeeper, and what dumps need, before a start
================  ============================================================
"""
