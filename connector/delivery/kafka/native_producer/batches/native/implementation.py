"""Decides whether records are encoded by compiled code, by the rules of the compiled row path."""

from rowtide.connector.rows.native.implementation import compiled_module

__all__ = ["native"]

native, _ = compiled_module("rowtide.connector.delivery.kafka.native_producer.batches._native", __file__)
"""The compiled module; ``None`` if Python is used."""
