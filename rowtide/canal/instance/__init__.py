"""Instances of Canal: one source, whose entries the clients of a destination read, or that go to Kafka.

``instance`` and ``kafka`` are the two kinds; for both, ``reading`` reads a ``source``, if due after a ``snapshot``.
``client_positions`` stores the positions of clients in the form of ``positions``.
"""
