"""Topics: ranges of offsets, the records in them, and the name of a topic's table."""
