"""From the event store to a sink: batches wait, are sent in order, acknowledged, and their offset is stored.

``event_store`` is the bounded queue between the reader and ``loop``; ``sink`` and ``offset_store`` are the protocols
that ``kafka`` implements. It must not know how batches were made: it moves messages and offsets.
"""
