"""Selects the code that decodes rows: compiled code if possible, otherwise Python."""

from rowtide.connector.protocol.native.compiled import compiled_module, name_of

__all__ = ["NAME", "STALE", "native"]

native, STALE = compiled_module("rowtide.connector.rows._native", __file__)
"""The compiled module, ``None`` if rows are decoded in Python; and what to do about compiled code that is not used
because it is older than its source, empty otherwise."""

NAME = name_of(native, STALE)
"""For the log and ``rowtide --version``."""
