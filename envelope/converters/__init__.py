"""Converters: from Connect's schemas and values to the bytes of keys and values, as Kafka Connect's classes do it.

A converter that needs a schema registry gets it as an object (:class:`~rowtide.envelope.converters.registry.Registry`):
this package does no input or output.
"""
