"""Servers that take over from each other, by ZooKeeper. Canal's servers and those of databus use it.

=============  ==========================================================
``candidate``  when this server begins and ends to run something
``fence``      nodes that only the running server changes
``session``    the session with ZooKeeper
=============  ==========================================================
"""
