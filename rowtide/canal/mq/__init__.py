"""Canal's messages for Kafka: their topics, partitions and form. Pure.

``routing`` is Canal's choice of topics and partitions, ``messages`` makes FlatMessages or packets of entries.
"""
