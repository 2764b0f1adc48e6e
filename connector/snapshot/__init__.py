"""Snapshots: a consistent state of all captured tables, as records before the stream.

::

    decide ──► Snapshot ──► statements ──► structure, history entries, schema change messages
                  └───────► rows ────────► messages with op ``r``

:func:`decide` determines at every start whether a snapshot is needed. :class:`~.initial.Snapshot` takes it.
"""

from rowtide.connector.snapshot.decision import Decision, decide
from rowtide.connector.snapshot.status import SnapshotProgress

__all__ = ["Decision", "SnapshotProgress", "decide"]
