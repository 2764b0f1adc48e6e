"""The databus server: publishes changes in databus' form, and serves dumps.

================  ============================================================
``worker``        runs a connector whose messages are those of databus
``service``       dumps for a connector, and the choice of the running server
``dumps``         dumps: all rows at one position of the binlog
``registration``  this server in ZooKeeper
``record_form``   makes the messages
``cells``         converts values to text
``statements``    names the database of each table in a statement
``structure``     describes the structure of a table
``settings``      checks the configuration
``check``         checks ZooKeeper and the requirements of dumps before a start
================  ============================================================
"""
