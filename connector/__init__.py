"""From the binlog to Kafka: everything between a MySQL or MariaDB server and the records of its changes.

::

    server ──► source ──► protocol ──► pipeline ──► delivery ──► Kafka
               sockets    events       │      ▲     event store,
               and SQL                 ▼      │     sinks
                 │                    rows ─► records
                 │                    images  messages
                 └──► snapshot ──────────────────► delivery
                      current tables

    config    properties, read once, as one tree of values       engine    wires all of this together and runs it
    check     checks the connector's requirements           worker    the process: Faust, status, metrics

A package imports only from the packages listed after it (a test checks the order):

    worker  engine  check  snapshot  source  delivery  pipeline  records  rows  protocol  config  kafka_producer  errors

``protocol``, ``rows``, ``records`` and ``pipeline`` do no input or output: sockets, files, clocks and threads are in
the other packages. ``kafka_producer`` imports nothing else of rowtide.
"""
