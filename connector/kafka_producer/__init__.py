"""Sends records to Kafka brokers, instead of librdkafka. It imports nothing else of rowtide.

::

    messages ─► batches ─► machine ─► wire ─► connection ─► brokers
               record      which       bytes    sockets
               batches     batch goes
                           where, when
"""
