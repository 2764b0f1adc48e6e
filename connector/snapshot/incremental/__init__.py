"""Incremental snapshots: tables are read in chunks while the stream continues.

::

    stream ──► row events ──► journal: the keys of emitted events ──┐
                                                                    ▼
    worker ──► chunk: SELECT … ──► end of the binlog ──► when the stream has passed it: rows whose key is not in the
                                                        journal become records with op ``r``

A chunk is read on another connection, so the stream does not wait for it. Before the SELECT, the worker makes sure that
it sees all changes that the stream has emitted. Keys are recorded from that point on until the rows are emitted. A row
whose key was recorded is omitted: the stream has emitted that state of the row, or a later one. So a consumer never
sees an older state of a row after a newer one.
"""
