"""Turns decoded rows into messages, and groups them into batches with their source offset.

``batch``, ``offset`` and ``settings`` are the values that all packages above share; ``codecs`` turns the rows of each
table into messages. It must not depend on where events come from or where messages go.
"""
