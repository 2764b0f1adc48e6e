"""Record batches: messages of one partition as the bytes that Kafka stores, compressed and with a checksum.

::

    partitions ──► which messages belong to which partition
    builder ─────► an open batch, until it is full; close() gives a
    record_batch   closed batch, which takes the producer's numbers at the first sending

    compression               codecs, and the estimate of the compression ratio
    python_records, native    the code for each record, in Python and in C

``native.implementation`` decides which of the two is used. Both produce the same bytes and refuse the same messages.
"""
