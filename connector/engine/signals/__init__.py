"""How signals reach the reader's thread: the inbox, and the channels that fill it.

::

    kafka_channel ─┐
    file_channel  ─┼─► inbox ─► reader, between two transactions ─► pipeline.signals
    HTTP, a call  ─┘

Signals of the signal table need no channel: the reader meets them in the stream.
"""
