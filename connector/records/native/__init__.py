"""Compiled code that turns messages in JSON into Avro.

The code itself is ``transcode.c`` of this folder, which becomes ``rowtide.connector.records._native``.
"""
