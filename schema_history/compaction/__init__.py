"""Summaries of a long history, so that a start reads only the records after the newest summary.

``schema.history.internal.compact.interval`` turns them on.
"""
