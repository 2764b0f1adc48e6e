"""Blocking snapshots: on a signal, tables are read at one position of the stream, which pauses there.

::

    signal ──► the stream reaches the end that the binlog had then ──► a view of the tables, at position S
           ──► the stream reaches S ──► the rows of the view ──► the stream continues after S

Debezium stops at the signal and reads the current tables, so changes in between follow rows that already include them,
and the structure may be a later one. Here, the stream and the view are at the same position: a consumer never sees an
older state of a row after a newer one.
"""
