"""The structure of every table at every position of the binlog.

::

    statement ──► ddl ──► structure ──► catalog ──► store ──► recovery
    text          parse   what the      all         topic     tables at
                          server does   tables      or file   a position

``model`` has the tables and columns, ``position`` the positions in a binlog, ``server`` the properties of a server.
A package imports only from packages before it in this list (a test checks the order):

    model  errors  position  server  ddl  structure  debezium_form  catalog  store  recovery  compaction  queries

Only the Kafka modules of ``store`` and ``compaction`` need a package outside the standard library.
"""
