"""Codecs: what a table's row images become, compiled once for each structure of the table.

``builder`` makes and caches the codecs; ``debezium_messages`` writes messages, ``python_changes`` Python values. A
codec must not know positions or transactions: an event's context brings them.
"""
