"""The compiled row path: which code decodes rows, and the descriptions of columns that it interprets.

The code itself is in the C files of this folder, which become ``rowtide.connector.rows._native``; ``native.h`` is the
place to begin.
"""
