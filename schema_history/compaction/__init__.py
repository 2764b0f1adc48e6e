"""A summary beside a long history, so that a start need not read all of it.

See ``schema.history.internal.compact.interval``.
"""
