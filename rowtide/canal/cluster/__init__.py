"""A cluster of servers by ZooKeeper: one of them runs a destination, and another one takes over.

===========  =======================================================
``cluster``  which destinations this server runs
``storage``  positions of clients and schema history in ZooKeeper
``history``  the schema history there
``nodes``    the nodes of a destination, which only its server changes
``paths``    the paths and contents of Canal's nodes
===========  =======================================================
"""
