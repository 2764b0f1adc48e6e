"""A cluster of servers, coordinated by ZooKeeper: one runs a destination, and another takes over if it fails.

===========  =======================================================
``cluster``  which destinations this server runs
``storage``  positions of clients and schema history in ZooKeeper
``history``  the schema history there
``nodes``    Canal's nodes, and those of a destination, which only its server changes
===========  =======================================================
"""
