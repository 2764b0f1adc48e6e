"""Servers that take over from each other, coordinated by ZooKeeper: those of Canal and of databus.

=============  ==========================================================
``candidate``  when this server starts and stops running something
``fence``      nodes that only the running server changes
``session``    the session with ZooKeeper
=============  ==========================================================
"""
