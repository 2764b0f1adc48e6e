"""What becomes of chunks that were read: emitted when the stream has passed them, or read again."""
