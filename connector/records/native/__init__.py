"""Compiled code that turns messages in JSON into Avro or Protobuf.

The code itself is ``transcode.c`` of this folder, which becomes ``rowtide.connector.records._native``.
"""
