"""The connector as an object, without Faust: it wires the parts from a configuration and runs them.

``task`` restarts a ``run`` after temporary failures; a run checks, recovers the schema history, takes the snapshot and
streams. ``reader`` moves events from the source through the pipeline into the event store; ``replay`` does the same
with binlog files. The worker and the commands import from here. It must not depend on Faust, web pages or terminals.
"""
