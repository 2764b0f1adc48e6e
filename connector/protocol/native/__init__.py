"""Compiled code for the usual events, and which code decodes them.

The code itself is ``events.c`` of this folder, which becomes ``rowtide.connector.protocol._native``.
"""
