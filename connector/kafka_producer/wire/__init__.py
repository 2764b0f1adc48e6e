"""Kafka's protocol: messages and their bytes in every version, error codes, and the opening of a connection. Pure.

::

    errors, primitives ─► schema ─► messages ─► apis ─► frames
                                                 └────► opening: versions, then sasl
"""
