"""Chunks that were read: they are emitted when the stream has passed them, or read again."""
