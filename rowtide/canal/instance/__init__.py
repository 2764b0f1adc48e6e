"""Instances of Canal: one source, whose entries the clients of a destination read.

``configuration`` reads Canal's files, ``filters`` selects tables, and ``positions`` has the form in which the positions
of clients are stored.
"""
