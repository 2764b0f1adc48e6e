"""Which code turns messages into Avro or Protobuf: compiled code where it can be used, otherwise Python."""

from rowtide.connector.protocol.native.compiled import compiled_module

__all__ = ["native"]

native, _ = compiled_module("rowtide.connector.records._native", __file__)
"""The compiled module, ``None`` if Python has to be used."""
