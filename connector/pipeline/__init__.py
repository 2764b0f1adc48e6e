"""From events to batches of records, without input or output: the heart of the connector.

``pipeline`` takes one event after the other; ``statements`` handles DDL, ``structures`` finds the structure of the
table that rows belong to, ``resume_position`` knows from where a restart would go on. The reader and the replay import
:class:`~rowtide.connector.pipeline.pipeline.Pipeline`. It must not know sockets, files or Kafka.
"""
