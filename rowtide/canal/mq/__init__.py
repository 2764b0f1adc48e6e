"""Canal's messages for Kafka: to which topics and partitions entries go, and their form. Pure.

``routing`` is Canal's choice of topics and partitions, ``messages`` makes FlatMessages or packets of entries.
"""
