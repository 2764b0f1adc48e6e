"""Snapshots: the tables as they are now, read consistently, as records in front of the stream.

::

    decide ──► Snapshot ──► statements ──► structure, history entries, schema change messages
                  └───────► rows ────────► messages with op ``r``

:func:`decide` says at every start whether a snapshot is needed, :class:`Snapshot` takes it.
"""

from rowtide.connector.snapshot.decision import Decision, decide
from rowtide.connector.snapshot.initial import Snapshot, SnapshotProgress

__all__ = ["Decision", "Snapshot", "SnapshotProgress", "decide"]
