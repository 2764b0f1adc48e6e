"""From the binlog to Kafka: everything between a MySQL or MariaDB server and the records of its changes.

::

    server ──► source ──► protocol ──► pipeline ──► delivery ──► Kafka
               sockets    events       │      ▲     event store,
               and SQL                 ▼      │     sinks
                 │                    rows ─► records
                 │                    images  messages
                 └──► snapshot ──────────────────► delivery
                      tables as they are now

    config    properties, read once, as one tree of values       engine    wires all of this together and runs it
    check     is everything as the connector needs it?           worker    the process: Faust, status, metrics

A room imports only from rooms that stand below it in this list (a test holds the order):

    worker  engine  check  snapshot  source  delivery  pipeline  records  rows  protocol  config  errors

``protocol``, ``rows``, ``records`` and ``pipeline`` do no input or output. Sockets, files, clocks and threads are in
the other rooms, in modules that ``tests/support/edges.py`` names.
"""
