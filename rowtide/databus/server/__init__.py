"""The databus server: publishes changes in databus' form, and serves dumps.

================  ============================================================
``worker``        runs a connector whose messages are those of databus
``dumping``       when dumps are made and announced
``tcp``           serves dumps to clients
``registration``  this server in ZooKeeper
``folder``        the files of dumps
``record_form``   makes the messages
``cells``         makes the texts of values
``statements``    names the database of each table in a statement
``structure``     describes the structure of a table
``settings``      checks the configuration
``source``        what a dump is made of
================  ============================================================
"""
