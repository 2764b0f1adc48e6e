"""Decides whether records are encoded by compiled code."""

from rowtide.connector.protocol.native.compiled import compiled_module, name_of

__all__ = ["NAME", "native"]

native, _STALE = compiled_module("rowtide.connector.delivery.kafka.native_producer.batches._native", __file__)
"""The compiled module; ``None`` if Python is used."""

NAME = name_of(native, _STALE)
"""For the log and ``rowtide --version``."""
