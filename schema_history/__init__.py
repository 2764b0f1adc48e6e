"""What every table looked like at every position of the binlog.

::

    statement ──► ddl ──► structure ──► catalog ──► store ──► recovery
    text          parse   what the      all         topic     structure at
                          server does   tables      or file   a position

``model`` has the values (tables, columns), ``position`` the places in a binlog, ``server`` what must be known of a
server.
A room imports only from rooms before it in this list (a test holds the order):

    model  errors  position  server  ddl  structure  debezium_form  catalog  store  recovery  compaction  queries

Nothing here needs a package beyond Python's own, except the Kafka modules of ``store`` and ``compaction``.
"""
