"""rowtide's own Kafka producer, instead of librdkafka's.

::

    messages ─► batches ─► machine ─► wire ─► connection ─► brokers
               record      which       bytes    sockets
               batches     batch goes
                           where, when
"""
