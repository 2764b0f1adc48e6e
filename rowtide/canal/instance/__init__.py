"""Instances of Canal: one source, whose entries the clients of a destination read, or that go to Kafka.

``instance`` and ``kafka`` are the two kinds, ``base`` has their common part: ``reading`` reads a ``source``, after a
``snapshot`` if one is due, and ``client_positions`` stores the positions of clients in the form of ``positions``.
"""
