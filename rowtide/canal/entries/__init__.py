"""Canal's entries and FlatMessages, built from the binlog and the schema history. Pure.

========================  ====================================================================
``sink``, ``filters``     which entries reach the clients
``pipeline``              from the events of a binlog stream to entries
``ddl``                   the event type and the table that Canal reads from a statement
``rows``                  from row images to the rows of an entry
``columns``               Canal's types and texts of column values
``flat_message``          FlatMessages: an entry as JSON
``entry``                 the entries themselves, and their protobuf form
``protobuf``              the wire format of protobuf, for writing
========================  ====================================================================
"""
