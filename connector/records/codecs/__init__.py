"""Codecs: convert a table's row images, and are compiled once for each structure of the table.

``builder`` makes and caches the codecs; ``debezium_messages`` writes messages, ``python_changes`` Python values. A
codec must not depend on positions or transactions, which are in an event's context.
"""
