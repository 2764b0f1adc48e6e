"""From binlog events to batches of records, without input or output.

``pipeline`` processes one event after the other. ``statements`` applies DDL, ``captured_tables`` finds the structure
and the codec for rows, ``resume_position`` keeps the position from which a restart resumes. It must not import
sockets, files or Kafka.
"""
