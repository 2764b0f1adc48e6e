"""Servers that take over from each other, by ZooKeeper. Canal's servers and those of databus use it.

=============  ==========================================================
``candidate``  when this server starts and stops running something
``fence``      nodes that only the running server changes
``session``    the session with ZooKeeper
=============  ==========================================================
"""
