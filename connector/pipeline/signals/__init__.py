"""Signals: requests to a running connector, such as to take a snapshot of a table. Without input or output.

A channel brings signals: the signal table in the stream, a Kafka topic, a file, HTTP, or a call. ``signal`` parses
them, ``snapshot_requests`` their requests for snapshots, and ``snapshots`` is the seam to what carries these out.
"""
