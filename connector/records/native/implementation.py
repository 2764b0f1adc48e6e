"""Selects the code that converts messages to Avro or Protobuf: compiled code if possible, otherwise Python."""

from rowtide.connector.protocol.native.compiled import compiled_module

__all__ = ["native"]

native, _ = compiled_module("rowtide.connector.records._native", __file__)
"""The compiled module, ``None`` if Python has to be used."""
