"""Parts of a table: the ranges of its key that a snapshot reads one by one, or several in parallel."""
