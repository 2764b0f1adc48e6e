"""The requests of a producer and their answers, with the fields of every version that rowtide uses.

The source is Kafka's own definitions (``clients/src/main/resources/common/message`` of Kafka 4.3); names follow them.
Times are milliseconds. ``error`` is the number of one of :mod:`..error_codes`. Brokers have ids; -1 is none.
"""
