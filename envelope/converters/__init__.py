"""Converters: turn Connect's schemas and values into the bytes of keys and values, like Kafka Connect's classes.

A converter that needs a schema registry gets it as an object (:class:`~rowtide.envelope.converters.registry.Registry`):
this package does no input or output.
"""
