"""Delivers batches from the event store to a sink, in order, and stores the offset once they are acknowledged.

``event_store`` is the bounded queue between the reader and ``delivery_loop``; ``sink`` and ``offset_store`` are the
protocols that ``kafka`` and ``sinks`` implement.
"""
