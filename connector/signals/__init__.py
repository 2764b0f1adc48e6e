"""Signals: requests to a running connector, such as to take a snapshot of a table.

Signals arrive through channels: the signal table in the stream (`receiver`), a Kafka topic, a file, HTTP, or a call.
They wait in the `inbox` until the reader's thread carries them out between two transactions (`actions`). `signalling`
has the data about them that outlives a connector's runs.
"""
